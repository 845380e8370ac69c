// exp, erf, tanh and log of the vector unit's special lanes: float32 in, float32 out, a fixed list of float32
// operations on every host (no libm, no fused multiply-add), so that results are the same bits everywhere.
// Subnormal results flush to zero. Errors in ulp are stated at each function and tested.
#pragma once

#include <cstddef>

namespace contraflow {

[[nodiscard]] float special_exp(float x);
[[nodiscard]] float special_erf(float x);
[[nodiscard]] float special_tanh(float x);
[[nodiscard]] float special_log(float x);

// The same, element by element over arrays (in == out allowed); vectorised, bit-identical to the scalar forms.
void special_exp(const float* in, float* out, std::size_t n);
void special_erf(const float* in, float* out, std::size_t n);
void special_tanh(const float* in, float* out, std::size_t n);
void special_log(const float* in, float* out, std::size_t n);

}  // namespace contraflow
