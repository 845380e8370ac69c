// The report as tables that a person reads.
#pragma once

#include <string>

#include "report/run_report.h"

namespace contraflow {

[[nodiscard]] std::string report_text(const RunReport& report);

// The network, its size, and where it lies; ends with the verdict whether it fits.
[[nodiscard]] std::string memory_text(const Config& config, const MemoryReport& memory);

}  // namespace contraflow
