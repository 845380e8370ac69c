// exp, erf, tanh and log of the vector unit's special lanes: float32 in, float32 out, a fixed list of float32
// operations on every host (no libm, no fused multiply-add), so that results are the same bits everywhere.
// Subnormal operands count as zero of their sign and subnormal results become zero, whether or not the calling thread
// flushes them itself. Every NaN result is the quiet NaN 0x7fc00000.
//
// Largest error over all 2^32 floats against libm in double, in units in the last place of the result:
// exp 0.99, erf 1.38, tanh 1.46, log 0.85.
#pragma once

#include <cstddef>

namespace contraflow {

[[nodiscard]] float special_exp(float x);   // above 88.7228 infinity, below -87.3365 (2^-126) +0
[[nodiscard]] float special_erf(float x);   // odd; exactly 1 from 4 on at the latest
[[nodiscard]] float special_tanh(float x);  // odd; exactly 1 from 10 on at the latest; one division
[[nodiscard]] float special_log(float x);   // log(+-0) = -infinity, log(negative) = NaN

// The same, element by element over arrays (in == out allowed, any other overlap not); vectorised, bit-identical to the
// scalar forms whatever the length, alignment and instruction set.
void special_exp(const float* in, float* out, std::size_t n);
void special_erf(const float* in, float* out, std::size_t n);
void special_tanh(const float* in, float* out, std::size_t n);
void special_log(const float* in, float* out, std::size_t n);

}  // namespace contraflow
