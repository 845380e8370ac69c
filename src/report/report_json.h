// The report as JSON; docs/report.md explains every field.
#pragma once

#include <nlohmann/json.hpp>

#include "report/memory_report.h"
#include "report/run_report.h"

namespace contraflow {

// Results: without "schema", "version", "config" and "host", which say nothing of what the machine did.
enum class ReportFields { All, Results };

// Fields in a fixed order. Deterministic but for "host"; no number is infinite or NaN (a loss that diverged is null).
[[nodiscard]] nlohmann::ordered_json report_json(const RunReport& report, ReportFields fields = ReportFields::All);

[[nodiscard]] nlohmann::ordered_json memory_json(const MemoryReport& memory);

}  // namespace contraflow
