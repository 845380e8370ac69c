// What planning needs to know of a step, found once: what each kernel touches and how long each tensor lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "contraflow/step.h"

namespace contraflow {

struct StepFacts {
    std::vector<TensorUses> uses;  // by kernel
    // By tensor: first and last kernel that needs its words. Activations and scratch live from their first use to their
    // last one, and so do tiles, the tensors from `first_tile` on; everything else the whole step.
    std::vector<std::pair<std::int32_t, std::int32_t>> lifetimes;

    StepFacts(const Step& step, std::size_t first_tile);
};

}  // namespace contraflow
