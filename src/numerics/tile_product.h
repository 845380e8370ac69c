// The multiply-accumulate of the contraction engine in its exact order, as fast as the host can do it, and the packing
// of strided operands into the form it reads. All paths (instruction_set.h) compute the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace contraflow {

// acc[i][j] = round(acc[i][j] + round(a[k][i] * b[k][j])) for k = 0 .. depth - 1 in this order, i < rows, j < cols:
// product and sum round separately to float32, so that depth n1 followed by depth n2 equals depth n1 + n2 bit by bit.
//   acc  rows x cols, element (i, j) at acc[i * acc_stride + j]
//   a    depth x rows (packed: one contraction index after the other), (k, i) at a[k * a_stride + i]
//   b    depth x cols, (k, j) at b[k * b_stride + j]
// Strides are in floats, at least as long as their rows, no alignment needed; nothing outside the three matrices is
// read or written. Any size may be 0. acc must not overlap a or b.
// Subnormals are flushed only if the calling thread says so: set_flush_to_zero() in float_environment.h, once per
// thread.
void accumulate_tile(float* acc, std::size_t acc_stride, const float* a, std::size_t a_stride, const float* b,
                     std::size_t b_stride, std::size_t rows, std::size_t cols, std::size_t depth);

// packed[k * packed_stride + i] = base[lane_offsets[i] + depth_offsets[k]] for i < lanes, k < depth; offsets in floats.
// Fast where either list rises by 1 over long runs: lanes then are copied row by row, depths transposed in blocks.
// packed must not overlap what is read.
void pack(const float* base, const std::int64_t* lane_offsets, std::size_t lanes, const std::int64_t* depth_offsets,
          std::size_t depth, float* packed, std::size_t packed_stride);

}  // namespace contraflow
