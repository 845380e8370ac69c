#include "numerics/tile_product.h"

#include <algorithm>
#include <cstring>

#include "numerics/kernel_table.h"

namespace contraflow {
namespace {

using Vector4 [[gnu::vector_size(16)]] = float;
constexpr std::size_t kBlockLanes = 4;    // a transposed block: 4 lanes ...
constexpr std::size_t kBlockDepths = 16;  // ... by the floats of one 64-byte cache line
constexpr std::size_t kShortRun = 4;      // runs shorter than this are gathered element by element

// Number of leading offsets that rise by 1. REQUIRES: count > 0.
std::size_t run_length(const std::int64_t* offsets, std::size_t count) {
    std::size_t length = 1;
    while (length < count && offsets[length] == offsets[length - 1] + 1) {
        ++length;
    }
    return length;
}

std::size_t run_count(const std::int64_t* offsets, std::size_t count) {
    std::size_t runs = count == 0 ? 0 : 1;
    for (std::size_t i = 1; i < count; ++i) {
        runs += offsets[i] != offsets[i - 1] + 1 ? 1 : 0;
    }
    return runs;
}

void gather(const float* base, const std::int64_t* lane_offsets, std::size_t lanes, const std::int64_t* depth_offsets,
            std::size_t depth, float* packed, std::size_t packed_stride) {
    for (std::size_t k = 0; k < depth; ++k) {
        const float* const source = base + depth_offsets[k];
        float* const row = packed + k * packed_stride;
        for (std::size_t i = 0; i < lanes; ++i) {
            row[i] = source[lane_offsets[i]];
        }
    }
}

// A run of `lanes` neighbouring lanes.
void copy_rows(const float* source, std::size_t lanes, const std::int64_t* depth_offsets, std::size_t depth,
               float* packed, std::size_t packed_stride) {
    for (std::size_t k = 0; k < depth; ++k) {
        const float* const from = source + depth_offsets[k];
        float* const to = packed + k * packed_stride;
        std::size_t i = 0;
        for (; i + 4 <= lanes; i += 4) {  // rows are short: a call of memcpy costs more than it copies
            std::memcpy(to + i, from + i, 4 * sizeof(float));
        }
        for (; i < lanes; ++i) {
            to[i] = from[i];
        }
    }
}

// 4 x 4: rows of `from` (one per lane) become columns of `to`.
void transpose4(const float* const (&from)[kBlockLanes], float* to, std::size_t to_stride) {
    Vector4 row[4];
    for (std::size_t i = 0; i < 4; ++i) {
        std::memcpy(&row[i], from[i], sizeof row[i]);
    }
    const Vector4 low01 = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
    const Vector4 high01 = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
    const Vector4 low23 = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
    const Vector4 high23 = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
    const Vector4 column[4] = {
        __builtin_shufflevector(low01, low23, 0, 1, 4, 5), __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
        __builtin_shufflevector(high01, high23, 0, 1, 4, 5), __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
    for (std::size_t k = 0; k < 4; ++k) {
        std::memcpy(to + k * to_stride, &column[k], sizeof column[k]);
    }
}

// A run of `depth` neighbouring depths, block by block so that each cache line of the source is used up at once.
void transpose(const float* source, const std::int64_t* lane_offsets, std::size_t lanes, std::size_t depth,
               float* packed, std::size_t packed_stride) {
    for (std::size_t k0 = 0; k0 < depth; k0 += kBlockDepths) {
        const std::size_t k1 = std::min(k0 + kBlockDepths, depth);
        std::size_t i = 0;
        for (; i + kBlockLanes <= lanes; i += kBlockLanes) {
            const float* lane[kBlockLanes] = {source + lane_offsets[i], source + lane_offsets[i + 1],
                                              source + lane_offsets[i + 2], source + lane_offsets[i + 3]};
            std::size_t k = k0;
            for (; k + 4 <= k1; k += 4) {
                const float* const from[kBlockLanes] = {lane[0] + k, lane[1] + k, lane[2] + k, lane[3] + k};
                transpose4(from, packed + k * packed_stride + i, packed_stride);
            }
            for (; k < k1; ++k) {
                for (std::size_t m = 0; m < kBlockLanes; ++m) {
                    packed[k * packed_stride + i + m] = lane[m][k];
                }
            }
        }
        for (; i < lanes; ++i) {
            for (std::size_t k = k0; k < k1; ++k) {
                packed[k * packed_stride + i] = source[lane_offsets[i] + static_cast<std::int64_t>(k)];
            }
        }
    }
}

}  // namespace

void accumulate_tile(float* acc, std::size_t acc_stride, const float* a, std::size_t a_stride, const float* b,
                     std::size_t b_stride, std::size_t rows, std::size_t cols, std::size_t depth) {
    active_kernels().accumulate_tile(acc, acc_stride, a, a_stride, b, b_stride, rows, cols, depth);
}

void pack(const float* base, const std::int64_t* lane_offsets, std::size_t lanes, const std::int64_t* depth_offsets,
          std::size_t depth, float* packed, std::size_t packed_stride) {
    const bool worth_a_look = depth > 1;  // one depth per simulated cycle: looking for runs costs more than it saves
    if (worth_a_look && run_count(lane_offsets, lanes) * kShortRun <= lanes) {
        for (std::size_t i = 0; i < lanes;) {
            const std::size_t length = run_length(lane_offsets + i, lanes - i);
            copy_rows(base + lane_offsets[i], length, depth_offsets, depth, packed + i, packed_stride);
            i += length;
        }
    } else if (worth_a_look && run_count(depth_offsets, depth) * kShortRun <= depth) {
        for (std::size_t k = 0; k < depth;) {
            const std::size_t length = run_length(depth_offsets + k, depth - k);
            transpose(base + depth_offsets[k], lane_offsets, lanes, length, packed + k * packed_stride, packed_stride);
            k += length;
        }
    } else {
        gather(base, lane_offsets, lanes, depth_offsets, depth, packed, packed_stride);
    }
}

}  // namespace contraflow
