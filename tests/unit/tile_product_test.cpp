// accumulate_tile and pack against naive loops, bit for bit, on every instruction set of the host.
#include "numerics/tile_product.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "numerics/float_environment.h"
#include "numerics/instruction_set.h"

namespace contraflow {
namespace {

constexpr float kGuard = 98765.0F;

struct RestoreInstructionSet {
    InstructionSet saved = instruction_set();
    ~RestoreInstructionSet() { force_instruction_set(saved); }
};

struct Shape {
    std::size_t rows;
    std::size_t cols;
    std::size_t depth;
};

// Operands of one call, with strides and a misaligned start. Exponents vary, so that the order of additions and a
// fused product both show in the bits.
struct Case {
    Shape shape;
    std::size_t acc_stride;
    std::size_t a_stride;
    std::size_t b_stride;
    std::size_t start;
    std::vector<float> acc;
    std::vector<float> a;
    std::vector<float> b;

    Case(const Shape& s, std::mt19937& random)
        : shape{s},
          acc_stride{s.cols + random() % 5},
          a_stride{s.rows + random() % 5},
          b_stride{s.cols + random() % 5},
          start{random() % 4},
          acc(start + s.rows * acc_stride + 32, kGuard),
          a(start + s.depth * a_stride + 1),
          b(start + s.depth * b_stride + 1) {
        for (std::vector<float>* operand : {&a, &b}) {
            for (float& x : *operand) {
                x = random_value(random);
            }
        }
        for (std::size_t i = 0; i < s.rows; ++i) {
            for (std::size_t j = 0; j < s.cols; ++j) {
                acc[start + i * acc_stride + j] = random_value(random);
            }
        }
    }

    static float random_value(std::mt19937& random) {
        const float mantissa = std::uniform_real_distribution<float>{-2.0F, 2.0F}(random);
        return std::ldexp(mantissa, static_cast<int>(random() % 8) - 4);
    }

    // The whole buffer after the product over [k0, k1).
    [[nodiscard]] std::vector<float> naive(std::size_t k0, std::size_t k1) const {
        std::vector<float> sum = acc;
        for (std::size_t i = 0; i < shape.rows; ++i) {
            for (std::size_t j = 0; j < shape.cols; ++j) {
                float& element = sum[start + i * acc_stride + j];
                for (std::size_t k = k0; k < k1; ++k) {
                    const volatile float product = a[start + k * a_stride + i] * b[start + k * b_stride + j];
                    element = element + product;
                }
            }
        }
        return sum;
    }

    void accumulate(std::vector<float>& sum, std::size_t k0, std::size_t k1) const {
        accumulate_tile(sum.data() + start, acc_stride, a.data() + start + k0 * a_stride, a_stride,
                        b.data() + start + k0 * b_stride, b_stride, shape.rows, shape.cols, k1 - k0);
    }
};

bool same_bits(const std::vector<float>& x, const std::vector<float>& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

// Compares with the naive loop, padding and surroundings of the accumulators included; then in two parts.
void check_case(const Case& c, std::size_t split) {
    const std::vector<float> expected = c.naive(0, c.shape.depth);
    for (const InstructionSet set : available_instruction_sets()) {
        force_instruction_set(set);
        std::vector<float> sum = c.acc;
        c.accumulate(sum, 0, c.shape.depth);
        std::vector<float> in_parts = c.acc;
        c.accumulate(in_parts, 0, split);
        c.accumulate(in_parts, split, c.shape.depth);
        if (!same_bits(sum, expected) || !same_bits(in_parts, expected)) {
            FAIL(instruction_set_name(set) << " differs for " << c.shape.rows << " x " << c.shape.cols << " x "
                                           << c.shape.depth << ", split at " << split);
        }
    }
}

TEST_CASE("a tile product equals the naive loop bit for bit, in one part and in two") {
    const RestoreInstructionSet restore;
    std::mt19937 random{7};
    for (int trial = 0; trial < 1500; ++trial) {
        const Shape shape{random() % 41, random() % 71, random() % 40};
        check_case(Case{shape, random}, random() % (shape.depth + 1));
    }
}

TEST_CASE("the shapes of tensor-train layers equal the naive loop bit for bit") {
    const RestoreInstructionSet restore;
    std::mt19937 random{8};
    const Shape shapes[] = {{8, 12, 1},   {8, 12, 768},  {32, 12, 768}, {32, 96, 12}, {256, 12, 32}, {768, 12, 32},
                            {26, 1, 768}, {129, 32, 96}, {30, 80, 30},  {1, 30, 100}, {16, 16, 1},   {12, 8, 1}};
    for (const Shape& shape : shapes) {
        check_case(Case{shape, random}, shape.depth / 3);
    }
}

TEST_CASE("every narrow and every short tile equals the naive loop bit for bit") {
    const RestoreInstructionSet restore;
    std::mt19937 random{9};
    for (std::size_t rows = 0; rows <= 18; ++rows) {
        for (std::size_t cols = 0; cols <= 34; ++cols) {
            for (const std::size_t depth : {0U, 1U, 2U, 9U}) {
                check_case(Case{Shape{rows, cols, depth}, random}, depth / 2);
            }
        }
    }
}

TEST_CASE("product and sum round separately") {
    // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24, whose last term a separate rounding drops and a fused one keeps.
    const RestoreInstructionSet restore;
    const float x = 1.0F + 0x1p-12F;
    for (const InstructionSet set : available_instruction_sets()) {
        force_instruction_set(set);
        for (const std::size_t depth : {std::size_t{1}, std::size_t{2}}) {
            const std::vector<float> a{x, 0.0F};
            std::vector<float> b(2 * 48, x);
            std::vector<float> acc(48, -1.0F - 0x1p-11F);
            accumulate_tile(acc.data(), 48, a.data(), 1, b.data(), 48, 1, 48, depth);
            CHECK(acc == std::vector<float>(48, 0.0F));
        }
    }
}

TEST_CASE("subnormal operands, products and sums become zero when the thread flushes") {
    const RestoreInstructionSet restore;
    const ScopedFlushToZero flush;
    for (const InstructionSet set : available_instruction_sets()) {
        force_instruction_set(set);
        for (const std::size_t cols : {1U, 4U, 12U, 16U, 48U}) {
            const float a[3] = {0x1p-130F, 0x1p-100F, -0x1.8p-126F};  // subnormal operand, product, sum
            std::vector<float> b(3 * cols);
            for (std::size_t j = 0; j < cols; ++j) {
                b[j] = 0x1p100F;
                b[cols + j] = 0x1p-40F;
                b[2 * cols + j] = 1.0F;
            }
            std::vector<float> acc(cols, 0x1p-126F);
            accumulate_tile(acc.data(), cols, a, 1, b.data(), cols, 1, cols, 2);
            CHECK(acc == std::vector<float>(cols, 0x1p-126F));
            accumulate_tile(acc.data(), cols, a + 2, 1, b.data() + 2 * cols, cols, 1, cols, 1);
            for (const float sum : acc) {
                std::uint32_t bits = 0;
                std::memcpy(&bits, &sum, sizeof bits);
                CHECK((bits & 0x7fffffffU) == 0U);
            }
        }
    }
}

TEST_CASE("forcing an instruction set is seen by the query") {
    const RestoreInstructionSet restore;
    CHECK(available_instruction_sets().front() == InstructionSet::Portable);
    CHECK(instruction_set() == available_instruction_sets().back());
    for (const InstructionSet set : available_instruction_sets()) {
        force_instruction_set(set);
        CHECK(instruction_set() == set);
    }
}

// Offsets in runs of consecutive numbers; run_length 1: no two neighbours are consecutive.
std::vector<std::int64_t> offsets_in_runs(std::size_t count, std::size_t run_length, std::int64_t step) {
    std::vector<std::int64_t> offsets(count);
    for (std::size_t i = 0; i < count; ++i) {
        offsets[i] = static_cast<std::int64_t>(i / run_length) * step + static_cast<std::int64_t>(i % run_length);
    }
    return offsets;
}

TEST_CASE("packing gathers every lane and depth for contiguous, strided and broken offsets") {
    std::mt19937 random{11};
    std::vector<float> source(200000);
    std::iota(source.begin(), source.end(), 1.0F);
    for (const std::size_t lane_run : {1U, 2U, 5U, 8U, 1000U}) {
        for (const std::size_t depth_run : {1U, 3U, 4U, 17U, 1000U}) {
            for (int trial = 0; trial < 20; ++trial) {
                const std::size_t lanes = random() % 40;
                const std::size_t depth = random() % 70;
                std::vector<std::int64_t> lane_offsets = offsets_in_runs(lanes, lane_run, 1013);
                const std::vector<std::int64_t> depth_offsets = offsets_in_runs(depth, depth_run, 601);
                if (trial % 2 == 1) {  // descending lanes, as a reversed axis gives
                    std::reverse(lane_offsets.begin(), lane_offsets.end());
                }
                const std::size_t stride = lanes + random() % 4;
                std::vector<float> expected(depth * stride + 8, kGuard);
                std::vector<float> packed = expected;
                for (std::size_t k = 0; k < depth; ++k) {
                    for (std::size_t i = 0; i < lanes; ++i) {
                        expected[k * stride + i] =
                            source[static_cast<std::size_t>(lane_offsets[i] + depth_offsets[k]) + 3];
                    }
                }
                pack(source.data() + 3, lane_offsets.data(), lanes, depth_offsets.data(), depth, packed.data(), stride);
                if (packed != expected) {
                    FAIL("lanes " << lanes << " in runs of " << lane_run << ", depth " << depth << " in runs of "
                                  << depth_run);
                }
            }
        }
    }
}

}  // namespace
}  // namespace contraflow
