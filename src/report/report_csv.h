// The report's long lists as CSV: one header line, then one line per kernel or tensor.
#pragma once

#include <string>

#include "report/run_report.h"

namespace contraflow {

[[nodiscard]] std::string kernels_csv(const RunReport& report);  // the steps of RunReport::kernels_steps
[[nodiscard]] std::string memory_csv(const MemoryReport& memory);
[[nodiscard]] std::string memory_timeline_csv(const MemoryReport& memory);  // bytes alive by kernel and class

}  // namespace contraflow
