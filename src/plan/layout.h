// A tensor's index levels and their strides in memory, and the translation of a step's accesses to word offsets.
#pragma once

#include <cstdint>
#include <vector>

#include "common/command.h"
#include "contraflow/plan.h"
#include "contraflow/step.h"

namespace contraflow {

// Split points (row-major strides) of a tensor's index that the accesses of a step use. Ascending, 1 and the size of
// the tensor included. Where they do not divide each other there are only those two, and the tensor is laid out
// densely.
[[nodiscard]] std::vector<std::vector<std::int64_t>> split_points(const Step& step);

// Levels between split points, padded so that a step along any level moves to another bank: each stride is the next
// multiple of `lanes` whose quotient shares no factor with `banks`. Not padded: strides as in the row-major tensor.
[[nodiscard]] std::vector<LayoutLevel> make_levels(const std::vector<std::int64_t>& splits, int banks, int lanes,
                                                   bool padded);
[[nodiscard]] std::int64_t occupied_words(const std::vector<LayoutLevel>& levels);

// Offsets of a mixed-radix index, first digit slowest.
[[nodiscard]] std::vector<std::int32_t> offset_table(const Placement& placement, const IndexMap& map);

// Physical form of a token's stride. REQUIRES: the stride is a split point, or 0.
[[nodiscard]] std::int64_t stride_of(const Placement& placement, std::int64_t dense);

}  // namespace contraflow
