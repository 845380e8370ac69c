// accumulate_tile for one instruction set. Private to src/numerics; included by every kernels_<set>.cpp, which is
// compiled for its set. Vectors run over independent outputs, never over the contraction index, and the compiler may
// not fuse (-ffp-contract=off), so every output sees the same operations in the same order whatever the width.
//
// A tile of kRows x kVectors vectors of accumulators stays in registers over the whole depth; all its dimensions are
// compile-time constants. Columns are cut into panels of such widths, rows into blocks of 16, 8, 4, 2, 1.
//
// All names have internal linkage: the same source compiled with different flags must not be merged by the linker.
#pragma once

#include <cstddef>
#include <cstring>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace contraflow {
namespace {

// Operands of one call; the strides as in accumulate_tile.
struct TileOperands {
    float* acc;
    std::size_t acc_stride;
    const float* a;
    std::size_t a_stride;
    const float* b;
    std::size_t b_stride;
    std::size_t depth;

    [[nodiscard]] TileOperands from_row(std::size_t row) const {
        TileOperands t = *this;
        t.acc += row * acc_stride;
        t.a += row;
        return t;
    }
    [[nodiscard]] TileOperands from_column(std::size_t column) const {
        TileOperands t = *this;
        t.acc += column;
        t.b += column;
        return t;
    }
};

// How kLanes neighbouring floats move between memory and a register. Value: arithmetic type of the compiler.
template <int kLanes>
struct FullVector {
    using Value [[gnu::vector_size(4 * kLanes)]] = float;
    static constexpr std::size_t kWidth = kLanes;

    [[gnu::always_inline]] Value load(const float* p) const {
        Value v;
        std::memcpy(&v, p, sizeof v);
        return v;
    }
    [[gnu::always_inline]] void store(float* p, Value v) const { std::memcpy(p, &v, sizeof v); }
};

template <>
struct FullVector<1> {
    using Value = float;
    static constexpr std::size_t kWidth = 1;

    [[gnu::always_inline]] Value load(const float* p) const { return *p; }
    [[gnu::always_inline]] void store(float* p, Value v) const { *p = v; }
};

#if defined(__AVX512F__)
// The first `count` < 16 lanes; the others compute on zeros and are not stored.
struct MaskedVector {
    using Value = FullVector<16>::Value;
    static constexpr std::size_t kWidth = 16;

    explicit MaskedVector(std::size_t count) : mask{static_cast<__mmask16>((1U << count) - 1U)} {}
    [[gnu::always_inline]] Value load(const float* p) const { return _mm512_maskz_loadu_ps(mask, p); }
    [[gnu::always_inline]] void store(float* p, Value v) const { _mm512_mask_storeu_ps(p, mask, v); }

    __mmask16 mask;
};
#endif

template <std::size_t kRows, std::size_t kVectors, typename Vector>
[[gnu::always_inline]] inline void tile(const TileOperands& t, const Vector vector) {
    constexpr std::size_t kWidth = Vector::kWidth;
    typename Vector::Value sum[kRows][kVectors];
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
        for (std::size_t v = 0; v < kVectors; ++v) {
            sum[i][v] = vector.load(t.acc + i * t.acc_stride + v * kWidth);
        }
    }
    const float* a = t.a;
    const float* b = t.b;
    for (std::size_t k = 0; k < t.depth; ++k) {
        typename Vector::Value right[kVectors];
#pragma GCC unroll 4
        for (std::size_t v = 0; v < kVectors; ++v) {
            right[v] = vector.load(b + v * kWidth);
        }
#pragma GCC unroll 16
        for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
            for (std::size_t v = 0; v < kVectors; ++v) {
                sum[i][v] += right[v] * a[i];
            }
        }
        a += t.a_stride;
        b += t.b_stride;
    }
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
        for (std::size_t v = 0; v < kVectors; ++v) {
            vector.store(t.acc + i * t.acc_stride + v * kWidth, sum[i][v]);
        }
    }
}

// All rows of a panel of kVectors vectors, in blocks of at most kRows.
template <std::size_t kRows, std::size_t kVectors, typename Vector>
void panel(const TileOperands& t, std::size_t rows, const Vector vector) {
    std::size_t i = 0;
    for (; i + kRows <= rows; i += kRows) {
        tile<kRows, kVectors>(t.from_row(i), vector);
    }
    if constexpr (kRows > 8) {
        if (i + 8 <= rows) {
            tile<8, kVectors>(t.from_row(i), vector);
            i += 8;
        }
    }
    if constexpr (kRows > 4) {
        if (i + 4 <= rows) {
            tile<4, kVectors>(t.from_row(i), vector);
            i += 4;
        }
    }
    if constexpr (kRows > 2) {
        if (i + 2 <= rows) {
            tile<2, kVectors>(t.from_row(i), vector);
            i += 2;
        }
    }
    if (i < rows) {
        tile<1, kVectors>(t.from_row(i), vector);
    }
}

// kCols <= 3 columns with vectors over the rows instead: too narrow to fill a vector the other way. Accumulators are
// strided in memory, so this pays only if the depth is not short.
template <std::size_t kCols, int kLanes>
[[gnu::always_inline]] inline void tile_of_columns(const TileOperands& t) {
    using Vector = FullVector<kLanes>;
    const Vector vector;
    typename Vector::Value sum[kCols];
    for (std::size_t j = 0; j < kCols; ++j) {
        float column[kLanes];
        for (std::size_t i = 0; i < kLanes; ++i) {
            column[i] = t.acc[i * t.acc_stride + j];
        }
        sum[j] = vector.load(column);
    }
    const float* a = t.a;
    const float* b = t.b;
    for (std::size_t k = 0; k < t.depth; ++k) {
        const typename Vector::Value left = vector.load(a);
#pragma GCC unroll 3
        for (std::size_t j = 0; j < kCols; ++j) {
            sum[j] += left * b[j];
        }
        a += t.a_stride;
        b += t.b_stride;
    }
    for (std::size_t j = 0; j < kCols; ++j) {
        float column[kLanes];
        vector.store(column, sum[j]);
        for (std::size_t i = 0; i < kLanes; ++i) {
            t.acc[i * t.acc_stride + j] = column[i];
        }
    }
}

template <std::size_t kCols, int kLanes>
void narrow_panel(const TileOperands& t, std::size_t rows) {
    constexpr std::size_t kShortDepth = 8;
    std::size_t i = 0;
    if (t.depth >= kShortDepth) {
        for (; i + kLanes <= rows; i += kLanes) {
            tile_of_columns<kCols, kLanes>(t.from_row(i));
        }
    }
    panel<4, kCols>(t.from_row(i), rows - i, FullVector<1>{});
}

template <int kLanes>
void narrow_panel_of(const TileOperands& t, std::size_t rows, std::size_t cols) {
    switch (cols) {
        case 1:
            return narrow_panel<1, kLanes>(t, rows);
        case 2:
            return narrow_panel<2, kLanes>(t, rows);
        case 3:
            return narrow_panel<3, kLanes>(t, rows);
        default:
            return;
    }
}

// One contraction index, once per simulated cycle: rows of a few vectors, b held in registers, and no struct or panel
// in between. No masks either: a load after a masked store of the cycle before would wait for the cache.
template <int kLanes, int... kMoreLanes>
struct RightRow {
    typename FullVector<kLanes>::Value right;
    RightRow<kMoreLanes...> more;

    [[gnu::always_inline]] explicit RightRow(const float* b) : right{FullVector<kLanes>{}.load(b)}, more{b + kLanes} {}
    [[gnu::always_inline]] void accumulate(float* acc, float a) const {
        const FullVector<kLanes> vector;
        vector.store(acc, vector.load(acc) + right * a);
        more.accumulate(acc + kLanes, a);
    }
};

template <int kLanes>
struct RightRow<kLanes> {
    typename FullVector<kLanes>::Value right;

    [[gnu::always_inline]] explicit RightRow(const float* b) : right{FullVector<kLanes>{}.load(b)} {}
    [[gnu::always_inline]] void accumulate(float* acc, float a) const {
        const FullVector<kLanes> vector;
        vector.store(acc, vector.load(acc) + right * a);
    }
};

// Not inlined: the caller below then is a bare jump, without registers to save.
template <int... kLanes>
[[gnu::noinline]] void outer_product(float* acc, std::size_t acc_stride, const float* a, const float* b,
                                     std::size_t rows) {
    const RightRow<kLanes...> row{b};
    for (; rows >= 2; rows -= 2) {
        row.accumulate(acc, a[0]);
        row.accumulate(acc + acc_stride, a[1]);
        acc += 2 * acc_stride;
        a += 2;
    }
    if (rows != 0) {
        row.accumulate(acc, a[0]);
    }
}

#if defined(__AVX512F__)
constexpr auto& outer_product16 = outer_product<16>;
#elif defined(__AVX2__)
constexpr auto& outer_product16 = outer_product<8, 8>;
#else
constexpr auto& outer_product16 = outer_product<4, 4, 4, 4>;
#endif
#if defined(__AVX2__)
constexpr auto& outer_product12 = outer_product<8, 4>;
constexpr auto& outer_product8 = outer_product<8>;
#else
constexpr auto& outer_product12 = outer_product<4, 4, 4>;
constexpr auto& outer_product8 = outer_product<4, 4>;
#endif

[[gnu::noinline]] void outer_products(float* acc, std::size_t acc_stride, const float* a, const float* b,
                                      std::size_t rows, std::size_t cols) {
    for (; cols >= 16; cols -= 16, acc += 16, b += 16) {
        outer_product16(acc, acc_stride, a, b, rows);
    }
    for (; cols >= 4; cols -= 4, acc += 4, b += 4) {
        outer_product<4>(acc, acc_stride, a, b, rows);
    }
    for (; cols >= 1; --cols, ++acc, ++b) {
        outer_product<1>(acc, acc_stride, a, b, rows);
    }
}

#if defined(__AVX512F__)

// 32 registers: 8 x 32 takes 16 accumulators, 16 x 16 takes 16.
[[gnu::noinline]] void panels(const TileOperands& t, std::size_t rows, std::size_t cols) {
    constexpr std::size_t kNarrow = 3;
    std::size_t j = 0;
    for (; j + 32 <= cols; j += 32) {
        panel<8, 2>(t.from_column(j), rows, FullVector<16>{});
    }
    if (j + 16 <= cols) {
        panel<16, 1>(t.from_column(j), rows, FullVector<16>{});
        j += 16;
    }
    const std::size_t rest = cols - j;
    if (rest > kNarrow || (rest != 0 && (rows < 16 || t.depth < 8))) {
        panel<16, 1>(t.from_column(j), rows, MaskedVector{rest});
    } else {
        narrow_panel_of<16>(t.from_column(j), rows, rest);
    }
}

#elif defined(__AVX2__)

// 16 registers: 4 x 16 takes 8 accumulators and 2 of b, 8 x 8 takes 8 and 1.
[[gnu::noinline]] void panels(const TileOperands& t, std::size_t rows, std::size_t cols) {
    std::size_t j = 0;
    for (; j + 16 <= cols; j += 16) {
        panel<4, 2>(t.from_column(j), rows, FullVector<8>{});
    }
    if (j + 8 <= cols) {
        panel<8, 1>(t.from_column(j), rows, FullVector<8>{});
        j += 8;
    }
    if (j + 4 <= cols) {
        panel<8, 1>(t.from_column(j), rows, FullVector<4>{});
        j += 4;
    }
    narrow_panel_of<8>(t.from_column(j), rows, cols - j);
}

#else

// 16 registers on SSE2: 4 x 8 takes 8 accumulators and 2 of b; a broadcast and a product need one each.
[[gnu::noinline]] void panels(const TileOperands& t, std::size_t rows, std::size_t cols) {
    std::size_t j = 0;
    for (; j + 8 <= cols; j += 8) {
        panel<4, 2>(t.from_column(j), rows, FullVector<4>{});
    }
    if (j + 4 <= cols) {
        panel<8, 1>(t.from_column(j), rows, FullVector<4>{});
        j += 4;
    }
    narrow_panel_of<4>(t.from_column(j), rows, cols - j);
}

#endif

[[maybe_unused]] void accumulate_tile_kernel(float* acc, std::size_t acc_stride, const float* a, std::size_t a_stride,
                                             const float* b, std::size_t b_stride, std::size_t rows, std::size_t cols,
                                             std::size_t depth) {
    if (depth == 1) {
        switch (cols) {  // the usual widths of a PE array
            case 16:
                return outer_product16(acc, acc_stride, a, b, rows);
            case 12:
                return outer_product12(acc, acc_stride, a, b, rows);
            case 8:
                return outer_product8(acc, acc_stride, a, b, rows);
            default:
                return outer_products(acc, acc_stride, a, b, rows, cols);
        }
    }
    if (depth > 1) {
        panels(TileOperands{acc, acc_stride, a, a_stride, b, b_stride, depth}, rows, cols);
    }
}

}  // namespace
}  // namespace contraflow
