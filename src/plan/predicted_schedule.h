// When each kernel of a step will run, roughly: what placement needs in order to keep apart what is moved at one time.
#pragma once

#include <cstdint>
#include <vector>

#include "contraflow/config.h"
#include "contraflow/step.h"

namespace contraflow {

struct KernelSpan {
    std::int64_t start = 0, end = 0;  // cycles
};

// List scheduling as the sequencer does it (longest chain first; equally urgent contractions share the engines), with
// durations from multiply-accumulates, element passes and words alone. Orders placement decisions, is reported nowhere.
// `dependences`: of each kernel, the earlier kernels it waits for.
[[nodiscard]] std::vector<KernelSpan> predict_schedule(const Step& step, const Config& config,
                                                       const std::vector<std::vector<std::uint32_t>>& dependences);

}  // namespace contraflow
