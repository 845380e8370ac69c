// How a tensor's index lies in a banked memory, and the translation of a step's accesses to word offsets.
//
// Word address a of a memory is in lane a mod lanes of bank (a / lanes) mod banks (RamGeometry), so that a layout is
// nothing but a table of offsets per index level:
//   dense     the row-major tensor;
//   skewed    rows padded until a step along any level moves to another bank: with stride s, coprime to B, element
//             (i, j) is in bank (i * s + j) mod B, the cyclic skew that serves reads by rows and by columns;
//   partition a dimension over banks of its own, cyclic or in blocks; reshape: words side by side in a row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/command.h"
#include "contraflow/config.h"
#include "contraflow/plan.h"
#include "contraflow/step.h"

namespace contraflow {

// Split points (row-major strides) of a tensor's index that the accesses of a step use. Ascending, 1 and the size of
// the tensor included. Where they do not divide each other there is only the size, and the tensor is laid out densely.
[[nodiscard]] std::vector<std::vector<std::int64_t>> split_points(const Step& step);

// Levels between split points. Skewed: each stride is the next multiple of `lanes` whose quotient shares no factor with
// `banks`. Otherwise strides are as in the row-major tensor.
[[nodiscard]] std::vector<LayoutLevel> make_levels(const std::vector<std::int64_t>& splits, int banks, int lanes,
                                                   bool skewed);

// Banks of a partitioned tensor: the product over its partitions.
[[nodiscard]] std::int64_t partition_banks(const std::vector<Partition>& partitions);

// Levels of a tensor whose dimensions are partitioned, with `lanes` words side by side. Throws ConfigError, naming the
// tensor, for a dimension that it lacks or that its accesses cut where the partition does not.
[[nodiscard]] std::vector<LayoutLevel> make_partitioned_levels(const Tensor& tensor,
                                                               const std::vector<std::int64_t>& splits,
                                                               const std::vector<Partition>& partitions, int lanes);
[[nodiscard]] std::int64_t occupied_words(const std::vector<LayoutLevel>& levels);

// Offsets of a mixed-radix index, first digit slowest.
[[nodiscard]] std::vector<std::int32_t> offset_table(const Placement& placement, const IndexMap& map);

// Physical form of a token's stride. REQUIRES: the stride is a split point, or 0. Throws ConfigError if the level is
// partitioned: a token's digit reaches the address through a multiplier, not a table.
[[nodiscard]] std::int64_t stride_of(const Placement& placement, std::int64_t dense);

}  // namespace contraflow
