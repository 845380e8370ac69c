// The arithmetic of exp, erf, tanh and log. Private to src/numerics; every kernels_<set>.cpp includes it, and so does
// the file of the scalar forms.
//
// One formula per function, all branches computed and selected, so that loops over it vectorise and every element runs
// the same list of float32 and integer operations. Subnormal operands count as signed zero and no selected value
// depends on a subnormal intermediate: the bits are the same with and without flush-to-zero on the thread.
//
// Polynomials: minimax fits (Remez exchange, 50 decimal digits, relative error of the function as weight), own
// computation, rounded to float32; the interval and the error after rounding stand at each.
//
// All names have internal linkage: the same source compiled with different flags must not be merged by the linker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace contraflow {
namespace {

#define CONTRAFLOW_KERNEL [[gnu::always_inline]] inline

constexpr std::uint32_t kSignMask = 0x80000000U;
constexpr float kInfinity = __builtin_inff();
constexpr float kQuietNan = __builtin_nanf("");  // every NaN result has these bits
constexpr float kSmallestNormal = 0x1p-126F;

CONTRAFLOW_KERNEL std::uint32_t to_bits(float x) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

CONTRAFLOW_KERNEL float to_float(std::uint32_t bits) {
    float x = 0.0F;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// ln 2 in two parts: the first has 15 significant bits, so that n * kLn2High is exact for |n| < 512.
constexpr float kLn2High = 0x1.62e4p-1F;
constexpr float kLn2Low = 0x1.7f7d1cp-20F;

// exp(x) for -87.3365 < x < 88.7229; any bits elsewhere.
CONTRAFLOW_KERNEL float exp_in_range(float x) {
    constexpr float kLog2E = 0x1.715476p0F;
    constexpr float kRounder = 0x1.8p23F;  // added: the low mantissa bits hold the nearest integer
    const float shifted = x * kLog2E + kRounder;
    const float n = shifted - kRounder;
    const float r = (x - n * kLn2High) - n * kLn2Low;
    // (exp(r) - 1 - r) / r^2 on [-0.348, 0.348], error 2^-27.7 of exp(r)
    float q = 0x1.6a2040p-10F;
    q = q * r + 0x1.123c44p-7F;
    q = q * r + 0x1.555900p-5F;
    q = q * r + 0x1.55548ep-3F;
    q = q * r + 0x1.fffffcp-2F;
    const float p = 1.0F + (r + (r * r) * q);
    return to_float(to_bits(p) + (to_bits(shifted) << 23U));  // n onto the exponent; the rounder's bits fall off
}

struct Exp {
    CONTRAFLOW_KERNEL static float apply(float x) {
        float y = exp_in_range(x);
        y = x < -0x1.5d589ep6F ? 0.0F : y;      // below: less than 2^-126
        y = x > 0x1.62e42ep6F ? kInfinity : y;  // above: at least 2^128
        return x != x ? kQuietNan : y;
    }
};

struct Erf {
    CONTRAFLOW_KERNEL static float apply(float x) {
        const std::uint32_t sign = to_bits(x) & kSignMask;
        const float a = to_float(to_bits(x) ^ sign);
        // erf(a) / a - 1 in a^2 on a <= 1, error 2^-27.7 of erf(a)
        const float s = a * a;
        float q = 0x1.496a34p-14F;
        q = q * s + -0x1.a3f7p-11F;
        q = q * s + 0x1.5405b2p-8F;
        q = q * s + -0x1.b7f90cp-6F;
        q = q * s + 0x1.ce2cf8p-4F;
        q = q * s + -0x1.81273ep-2F;
        q = q * s + 0x1.06eba8p-3F;
        const float small = a + a * q;
        // 1 - erf(a) in a - 2.5 on 1 <= a <= 4, absolute error 2^-26.4; erf(4) rounds to 1
        const float t = (a < 4.0F ? a : 4.0F) - 2.5F;
        float p = -0x1.e11894p-21F;
        p = p * t + -0x1.1172cep-21F;
        p = p * t + 0x1.088a2cp-16F;
        p = p * t + -0x1.28a65ep-16F;
        p = p * t + -0x1.54cffp-14F;
        p = p * t + 0x1.1b887p-12F;
        p = p * t + -0x1.0f09acp-12F;
        p = p * t + -0x1.25a28cp-11F;
        p = p * t + 0x1.6ea77cp-9F;
        p = p * t + -0x1.906118p-8F;
        p = p * t + 0x1.1a8c54p-7F;
        p = p * t + -0x1.11ab44p-7F;
        p = p * t + 0x1.64e34ap-8F;
        p = p * t + -0x1.1d7fe4p-9F;
        p = p * t + 0x1.aab886p-12F;
        const float large = 1.0F - p;
        float y = a < 1.0F ? small : large;
        y = a < 0x1p-100F ? a * 0x1.20dd76p0F : y;  // 2 / sqrt(pi): a * q above would be subnormal
        y = a < kSmallestNormal ? 0.0F : y;
        y = to_float(to_bits(y) | sign);
        return x != x ? kQuietNan : y;
    }
};

struct Tanh {
    CONTRAFLOW_KERNEL static float apply(float x) {
        const std::uint32_t sign = to_bits(x) & kSignMask;
        const float a = to_float(to_bits(x) ^ sign);
        // (tanh(a) / a - 1) / a^2 in a^2 on a <= 0.55, error 2^-27.8 of tanh(a)
        const float s = a * a;
        float q = -0x1.9b305cp-8F;
        q = q * s + 0x1.593d0cp-6F;
        q = q * s + -0x1.b9287cp-5F;
        q = q * s + 0x1.110d26p-3F;
        q = q * s + -0x1.55554ap-2F;
        const float small = a + (a * s) * q;
        const float e = exp_in_range(2.0F * (a < 10.0F ? a : 10.0F));  // tanh(10) rounds to 1
        const float large = 1.0F - 2.0F / (e + 1.0F);
        float y = a < 0.55F ? small : large;
        y = a < kSmallestNormal ? 0.0F : y;
        y = to_float(to_bits(y) | sign);
        return x != x ? kQuietNan : y;
    }
};

struct Log {
    CONTRAFLOW_KERNEL static float apply(float x) {
        constexpr std::uint32_t kSqrtHalf = 0x3f3504f3U;
        constexpr std::uint32_t kOne = 0x3f800000U;
        // x = 2^e * m, sqrt(1/2) <= m < sqrt(2)
        const std::uint32_t bits = to_bits(x);
        const std::int32_t exponent = static_cast<std::int32_t>((bits + (kOne - kSqrtHalf)) >> 23U) - 127;
        const float e = static_cast<float>(exponent);
        const float f = to_float(bits - (static_cast<std::uint32_t>(exponent) << 23U)) - 1.0F;
        // (log(1 + f) - f + f^2 / 2) / f^3 on [-0.2929, 0.4143], error 2^-28.2 of log(1 + f)
        float q = 0x1.14431cp-4F;
        q = q * f + -0x1.de33e4p-4F;
        q = q * f + 0x1.e6f4b2p-4F;
        q = q * f + -0x1.fc23a0p-4F;
        q = q * f + 0x1.233740p-3F;
        q = q * f + -0x1.555c40p-3F;
        q = q * f + 0x1.99a4b6p-3F;
        q = q * f + -0x1.000006p-2F;
        q = q * f + 0x1.555548p-2F;
        const float f2 = f * f;
        const float low = ((f2 * f) * q - 0.5F * f2) + e * kLn2Low;
        float y = (f + low) + e * kLn2High;
        y = x < kSmallestNormal ? -kInfinity : y;
        y = x <= -kSmallestNormal ? kQuietNan : y;
        y = x > 0x1.fffffep127F ? kInfinity : y;
        return x != x ? kQuietNan : y;
    }
};

// kSize results, computed before anything is stored. A fixed size becomes straight vector code.
template <typename F, std::size_t kSize>
struct Block {
    float values[kSize];

    CONTRAFLOW_KERNEL explicit Block(const float* in) {
        for (std::size_t i = 0; i < kSize; ++i) {
            values[i] = F::apply(in[i]);
        }
    }
    CONTRAFLOW_KERNEL void store(float* out) const {
        for (std::size_t i = 0; i < kSize; ++i) {
            out[i] = values[i];
        }
    }
};

// kSize <= n <= 2 * kSize: two blocks that may overlap.
template <typename F, std::size_t kSize>
CONTRAFLOW_KERNEL void map_two_blocks(const float* in, float* out, std::size_t n) {
    const Block<F, kSize> first{in};
    const Block<F, kSize> last{in + (n - kSize)};
    first.store(out);
    last.store(out + (n - kSize));
}

// out[i] = F(in[i]); in == out is allowed. The last, incomplete block overlaps the one before it: the results are the
// same, and a short array (the special lanes of one cycle) needs no element-wise remainder.
template <typename F>
void map(const float* in, float* out, std::size_t n) {
    constexpr std::size_t kBlock = 16;
    if (n > 2 * kBlock) {
        const Block<F, kBlock> last{in + (n - kBlock)};  // read before the loop overwrites its first part
        for (std::size_t i = 0; i + kBlock < n; i += kBlock) {
            Block<F, kBlock>{in + i}.store(out + i);
        }
        last.store(out + (n - kBlock));
    } else if (n >= kBlock) {
        map_two_blocks<F, kBlock>(in, out, n);
    } else if (n == kBlock / 2) {
        Block<F, kBlock / 2>{in}.store(out);
    } else if (n > kBlock / 2) {
        map_two_blocks<F, kBlock / 2>(in, out, n);
    } else if (n >= kBlock / 4) {
        map_two_blocks<F, kBlock / 4>(in, out, n);
    } else {
        for (std::size_t i = 0; i < n; ++i) {
            out[i] = F::apply(in[i]);
        }
    }
}

}  // namespace
}  // namespace contraflow
