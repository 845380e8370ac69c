#include "contraflow/special_functions.h"

#include "numerics/kernel_table.h"
#include "numerics/special_function_kernels.h"

namespace contraflow {

float special_exp(float x) {
    return Exp::apply(x);
}
float special_erf(float x) {
    return Erf::apply(x);
}
float special_tanh(float x) {
    return Tanh::apply(x);
}
float special_log(float x) {
    return Log::apply(x);
}

void special_exp(const float* in, float* out, std::size_t n) {
    active_kernels().exp(in, out, n);
}
void special_erf(const float* in, float* out, std::size_t n) {
    active_kernels().erf(in, out, n);
}
void special_tanh(const float* in, float* out, std::size_t n) {
    active_kernels().tanh(in, out, n);
}
void special_log(const float* in, float* out, std::size_t n) {
    active_kernels().log(in, out, n);
}

}  // namespace contraflow
