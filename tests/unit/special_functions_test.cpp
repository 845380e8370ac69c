// exp, erf, tanh and log of the special lanes: error against double, special values, and the same bits everywhere.
#include "contraflow/special_functions.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "numerics/float_environment.h"
#include "numerics/instruction_set.h"

namespace contraflow {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kSmallestNormal = std::numeric_limits<float>::min();
constexpr float kSubnormal = 0x1p-127F;

struct Function {
    const char* name;
    float (*scalar)(float);
    void (*array)(const float*, float*, std::size_t);
    double (*exact)(double);  // libm in double: its own error is below 1e-7 ulp of float
    double max_error_ulp;     // documented in the public header
};

const Function kFunctions[] = {
    {"exp", special_exp, special_exp, std::exp, 0.99},
    {"erf", special_erf, special_erf, std::erf, 1.38},
    {"tanh", special_tanh, special_tanh, std::tanh, 1.46},
    {"log", special_log, special_log, std::log, 0.85},
};

std::uint32_t bits_of(float x) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

float float_of(std::uint32_t bits) {
    float x = 0.0F;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

float flushed(float x) {
    return std::fabs(x) < kSmallestNormal ? std::copysign(0.0F, x) : x;
}

// Distance in units in the last place of a float of the size of `exact`.
double error_ulp(float result, double exact) {
    int exponent = 0;
    std::frexp(exact, &exponent);
    return std::fabs(static_cast<double>(result) - exact) / std::ldexp(1.0, exponent - 24);
}

// Every 997th float (a prime: all exponents and signs, varied mantissas), NaN and infinities among them.
std::vector<float> sampled_floats() {
    std::vector<float> values;
    for (std::uint64_t bits = 0; bits < (1ULL << 32U); bits += 997) {
        values.push_back(float_of(static_cast<std::uint32_t>(bits)));
    }
    return values;
}

struct RestoreInstructionSet {
    InstructionSet saved = instruction_set();
    ~RestoreInstructionSet() { force_instruction_set(saved); }
};

TEST_CASE("every function stays within its documented error over all floats") {
    const std::vector<float> values = sampled_floats();
    std::vector<float> results(values.size());
    for (const Function& f : kFunctions) {
        f.array(values.data(), results.data(), values.size());
        double worst = 0.0;
        float worst_at = 0.0F;
        std::size_t num_wrong_kind = 0;  // NaN, infinity or zero where there should be none, or the reverse
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double exact = f.exact(static_cast<double>(flushed(values[i])));
            const float rounded = static_cast<float>(exact);
            if (std::isnan(rounded)) {
                num_wrong_kind += std::isnan(results[i]) ? 0 : 1;
            } else if (std::isinf(rounded) || std::fabs(exact) < static_cast<double>(kSmallestNormal)) {
                num_wrong_kind += bits_of(results[i]) == bits_of(flushed(rounded)) ? 0 : 1;
            } else if (!std::isfinite(results[i])) {
                ++num_wrong_kind;
            } else if (const double error = error_ulp(results[i], exact); error > worst) {
                worst = error;
                worst_at = values[i];
            }
        }
        INFO(f.name << ": " << worst << " ulp at " << worst_at);
        CHECK(num_wrong_kind == 0);
        CHECK(worst <= f.max_error_ulp);
        CHECK(worst >= 0.5);  // a comparison that compares nothing would report less
    }
}

TEST_CASE("results do not depend on the thread's treatment of subnormals") {
    const std::vector<float> values = sampled_floats();
    std::vector<float> plain(values.size());
    std::vector<float> with_flush(values.size());
    for (const Function& f : kFunctions) {
        f.array(values.data(), plain.data(), values.size());
        {
            const ScopedFlushToZero flush;
            f.array(values.data(), with_flush.data(), values.size());
        }
        INFO(f.name);
        CHECK(std::memcmp(plain.data(), with_flush.data(), values.size() * sizeof(float)) == 0);
    }
}

TEST_CASE("array and scalar forms give the same bits on every instruction set, length and alignment") {
    const RestoreInstructionSet restore;
    std::mt19937 random{20240229};
    std::vector<float> in(200);
    for (const InstructionSet set : available_instruction_sets()) {
        force_instruction_set(set);
        for (const Function& f : kFunctions) {
            for (std::size_t n = 0; n <= 100; ++n) {
                const std::size_t in_at = random() % 16;
                const std::size_t out_at = random() % 16;
                for (float& x : in) {  // half over the range of interest, half any bits
                    x = random() % 2 == 0 ? std::uniform_real_distribution<float>{-12.0F, 12.0F}(random)
                                          : float_of(static_cast<std::uint32_t>(random()));
                }
                constexpr float kGuard = 12345.0F;
                std::vector<float> out(200, kGuard);
                f.array(in.data() + in_at, out.data() + out_at, n);
                std::vector<float> in_place = in;
                f.array(in_place.data() + in_at, in_place.data() + in_at, n);
                std::size_t num_different = 0;
                for (std::size_t i = 0; i < n; ++i) {
                    const std::uint32_t expected = bits_of(f.scalar(in[in_at + i]));
                    num_different += bits_of(out[out_at + i]) == expected ? 0 : 1;
                    num_different += bits_of(in_place[in_at + i]) == expected ? 0 : 1;
                }
                for (std::size_t i = 0; i < out.size(); ++i) {
                    num_different += (i < out_at || i >= out_at + n) && out[i] != kGuard ? 1 : 0;
                }
                for (std::size_t i = 0; i < in.size(); ++i) {
                    num_different += (i < in_at || i >= in_at + n) && bits_of(in_place[i]) != bits_of(in[i]) ? 1 : 0;
                }
                if (num_different != 0) {
                    FAIL(instruction_set_name(set)
                         << " " << f.name << " n=" << n << ": " << num_different << " elements differ");
                }
            }
        }
    }
}

TEST_CASE("every instruction set gives the same bits over all floats") {
    const RestoreInstructionSet restore;
    const std::vector<float> values = sampled_floats();
    for (const Function& f : kFunctions) {
        force_instruction_set(InstructionSet::Portable);
        std::vector<float> expected(values.size());
        f.array(values.data(), expected.data(), values.size());
        for (const InstructionSet set : available_instruction_sets()) {
            force_instruction_set(set);
            std::vector<float> results(values.size());
            f.array(values.data(), results.data(), values.size());
            INFO(f.name << " " << instruction_set_name(set));
            CHECK(std::memcmp(results.data(), expected.data(), values.size() * sizeof(float)) == 0);
        }
    }
}

// The bits are part of the contract: a run must give the same tensors after any change that is not meant to alter them.
// All are the nearest floats except erf(2), which is one below.
TEST_CASE("results at simple arguments keep their bits") {
    CHECK(bits_of(special_exp(1.0F)) == 0x402df854U);    // 2.7182817, the float nearest to e
    CHECK(bits_of(special_exp(-1.0F)) == 0x3ebc5ab2U);   // 0.36787945
    CHECK(bits_of(special_erf(0.5F)) == 0x3f053f7bU);    // 0.52049988
    CHECK(bits_of(special_erf(2.0F)) == 0x3f7ecd70U);    // 0.99532223
    CHECK(bits_of(special_tanh(0.25F)) == 0x3e7acbf5U);  // 0.24491866
    CHECK(bits_of(special_tanh(1.0F)) == 0x3f42f7d6U);   // 0.76159418
    CHECK(bits_of(special_log(2.0F)) == 0x3f317218U);    // 0.69314718
    CHECK(bits_of(special_log(10.0F)) == 0x40135d8eU);   // 2.3025851
}

TEST_CASE("exp overflows to infinity, underflows to plus zero and keeps NaN") {
    CHECK(special_exp(0.0F) == 1.0F);
    CHECK(special_exp(-0.0F) == 1.0F);
    CHECK(special_exp(kSubnormal) == 1.0F);
    CHECK(std::isfinite(special_exp(0x1.62e42ep6F)));  // the largest x below 128 ln 2
    CHECK(special_exp(std::nextafter(0x1.62e42ep6F, kInfinity)) == kInfinity);
    CHECK(special_exp(-0x1.5d589ep6F) >= kSmallestNormal);  // the smallest x above -126 ln 2
    CHECK(bits_of(special_exp(std::nextafter(-0x1.5d589ep6F, -kInfinity))) == 0U);
    CHECK(special_exp(kInfinity) == kInfinity);
    CHECK(bits_of(special_exp(-kInfinity)) == 0U);
    CHECK(std::isnan(special_exp(kNan)));
}

TEST_CASE("log of zero is minus infinity and of a negative number NaN") {
    CHECK(bits_of(special_log(1.0F)) == 0U);
    CHECK(special_log(0.0F) == -kInfinity);
    CHECK(special_log(-0.0F) == -kInfinity);
    CHECK(special_log(kSubnormal) == -kInfinity);
    CHECK(special_log(-kSubnormal) == -kInfinity);
    CHECK(std::isnan(special_log(-kSmallestNormal)));
    CHECK(std::isnan(special_log(-1.0F)));
    CHECK(std::isnan(special_log(-kInfinity)));
    CHECK(special_log(kInfinity) == kInfinity);
    CHECK(std::isnan(special_log(kNan)));
}

TEST_CASE("erf and tanh are odd, keep signed zero, flush subnormals and saturate exactly") {
    for (const Function& f : {kFunctions[1], kFunctions[2]}) {
        INFO(f.name);
        CHECK(bits_of(f.scalar(0.0F)) == 0U);
        CHECK(bits_of(f.scalar(-0.0F)) == 0x80000000U);
        CHECK(bits_of(f.scalar(kSubnormal)) == 0U);
        CHECK(bits_of(f.scalar(-kSubnormal)) == 0x80000000U);
        CHECK(f.scalar(kSmallestNormal) >= kSmallestNormal);
        CHECK(f.scalar(10.0F) == 1.0F);
        CHECK(f.scalar(kInfinity) == 1.0F);
        CHECK(f.scalar(-kInfinity) == -1.0F);
        CHECK(std::isnan(f.scalar(kNan)));
        std::size_t num_not_odd = 0;
        std::size_t num_above_one = 0;
        for (std::uint32_t bits = 0; bits < 0x7f800000U; bits += 9973) {
            const float x = float_of(bits);
            num_not_odd += bits_of(f.scalar(-x)) == (bits_of(f.scalar(x)) | 0x80000000U) ? 0 : 1;
            num_above_one += f.scalar(x) <= 1.0F ? 0 : 1;
        }
        CHECK(num_not_odd == 0);
        CHECK(num_above_one == 0);
    }
    CHECK(special_erf(3.8F) < 1.0F);
    CHECK(special_erf(4.0F) == 1.0F);
    CHECK(special_tanh(8.9F) < 1.0F);
    CHECK(special_tanh(9.2F) == 1.0F);
}

TEST_CASE("flush to zero is on inside its scope only") {
    const bool before = flush_to_zero_enabled();
    clear_flush_to_zero();
    CHECK_FALSE(flush_to_zero_enabled());
    {
        const ScopedFlushToZero flush;
        CHECK(flush_to_zero_enabled());
    }
    CHECK_FALSE(flush_to_zero_enabled());
    set_flush_to_zero();
    CHECK(flush_to_zero_enabled());
    if (!before) {
        clear_flush_to_zero();
    }
}

}  // namespace
}  // namespace contraflow
