// The numerics' functions compiled for one instruction set. Private to src/numerics: each kernels_<set>.cpp compiles
// the same sources (special_function_kernels.h, tile_kernels.h) with its own compiler flags and fills one table.
#pragma once

#include <cstddef>

namespace contraflow {

struct KernelTable {
    using Map = void (*)(const float* in, float* out, std::size_t n);
    using AccumulateTile = void (*)(float* acc, std::size_t acc_stride, const float* a, std::size_t a_stride,
                                    const float* b, std::size_t b_stride, std::size_t rows, std::size_t cols,
                                    std::size_t depth);
    Map exp;
    Map erf;
    Map tanh;
    Map log;
    AccumulateTile accumulate_tile;
};

extern const KernelTable kPortableKernels;
extern const KernelTable kAvx2Kernels;    // x86-64 builds only
extern const KernelTable kAvx512Kernels;  // x86-64 builds only

// The table of instruction_set().
[[nodiscard]] const KernelTable& active_kernels();

}  // namespace contraflow
