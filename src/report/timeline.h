// A run as a timeline in the Trace Event format, which Perfetto and chrome://tracing open.
#pragma once

#include <string>
#include <string_view>

#include "contraflow/step.h"
#include "report/run_report.h"

namespace contraflow {

// What every timeline file begins with.
inline constexpr std::string_view kTimelineStart = R"({"displayTimeUnit":"ns","otherData":{"clock_hz":)";

// One track per engine, vector unit, DMA and DRAM channel, and one of the steps. A kernel is one slice on each unit
// that ran it (a transfer: also on each DRAM channel, because addresses interleave over all of them) with shape, MACs
// and where its cycles went; the kernels are those of `report.kernels`. Times are microseconds of the fabric clock
// since reset; the exact edges stand in the slice's arguments. `step`: the step that ran.
[[nodiscard]] std::string timeline_json(const RunReport& report, const Step& step);

}  // namespace contraflow
