// Puts tensors into on-chip memories.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/command.h"
#include "contraflow/config.h"
#include "contraflow/plan.h"
#include "contraflow/step.h"
#include "plan/predicted_schedule.h"
#include "plan/step_facts.h"

namespace contraflow {

// What the configuration says of each tensor: the class keys, then memory.tensors, later rules first.
struct TensorWish {
    RamPlace place = RamPlace::Auto;
    std::vector<Partition> partitions;
    int reshape = 0;
    std::string group;
};
// Throws ConfigError for a rule that matches no tensor, and for one that asks DRAM for a tensor that must be on chip
// (the buffers of the host's sample and loss).
[[nodiscard]] std::vector<TensorWish> tensor_wishes(const Step& step, const MemoryPolicy& memory);

struct PlacementRequest {
    const Step& step;
    const StepFacts& facts;
    const std::vector<KernelSpan>& spans;  // by kernel
    const Config& config;
    const std::vector<TensorWish>& wishes;                 // by tensor
    const std::vector<std::vector<std::int64_t>>& splits;  // by tensor: split_points
    const std::vector<std::int64_t>& dram_homes;           // by tensor: address in DRAM, or -1: on chip
    const std::vector<int>& stream_buffers;                // by tensor: the buffer a tile passes through, or -1
    bool share = false;                                    // tensors with disjoint lifetimes may overlap
};

struct PlacedTensors {
    std::vector<Placement> placements;  // by tensor
    std::vector<RamGeometry> rams;
    // Pairs (earlier, later) of tensors that occupy the same words one after the other.
    std::vector<std::pair<std::size_t, std::size_t>> successions;
};

// layout naive: every tensor is a memory of its own, row-major. auto: rows are skewed, and tensors share memories: each
// goes where the fewest cycles are predicted in which more tensors are moved than the memory has ports, or into a new
// memory if that is worth it and the device has room. Partitioned, reshaped and
// grouped tensors are laid out as their rules say, under either.
[[nodiscard]] PlacedTensors place_tensors(const PlacementRequest& request);

}  // namespace contraflow
