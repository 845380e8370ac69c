// How fast a step could be at best, and which kernels made it as slow as it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/command.h"
#include "contraflow/config.h"
#include "sequencer/sequencer.h"

namespace contraflow {

// Fabric cycles that no schedule of one step on this configuration can go below.
struct LowerBound {
    std::uint64_t cycles = 0;  // the largest of the following
    std::uint64_t macs = 0;    // every PE starts a multiply-accumulate in every cycle
    std::uint64_t vector = 0;  // every vector unit is busy in every cycle
    std::uint64_t bytes = 0;   // the DRAM moves the step's transfers at its peak rate
    std::uint64_t chain = 0;   // longest chain of dependent kernels, each alone on all PEs and without any stall
};

// `records`: the kernels of one step, in any order. Of a vector kernel, its busy cycles are taken as the best case.
[[nodiscard]] LowerBound lower_bound(const Program& program, const Config& config,
                                     const std::vector<KernelRecord>& records);

// Indices into `records` (the kernels of one step) of the kernels that determined when the step ended, first to last:
// from the kernel that ended last back to what its start waited for, each time the one that ended last among its
// dependences and the kernels that had its unit before it (under the serial policy: any kernel before it).
[[nodiscard]] std::vector<std::size_t> critical_path(const Program& program, const Config& config,
                                                     const std::vector<KernelRecord>& records);

}  // namespace contraflow
