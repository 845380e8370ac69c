#include "numerics/float_environment.h"

#include <cstdint>
#include <cstring>
#include <limits>

#if defined(__SSE2__)
#include <pmmintrin.h>
#include <xmmintrin.h>
#endif

namespace contraflow {
namespace {

#if defined(__SSE2__)
constexpr unsigned long long kFlushBits = _MM_FLUSH_ZERO_ON | _MM_DENORMALS_ZERO_ON;
unsigned long long control_register() {
    return _mm_getcsr();
}
void set_control_register(unsigned long long value) {
    _mm_setcsr(static_cast<unsigned>(value));
}
#elif defined(__aarch64__)
constexpr unsigned long long kFlushBits = 1ULL << 24;  // FPCR.FZ
unsigned long long control_register() {
    unsigned long long value;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
}
void set_control_register(unsigned long long value) {
    asm volatile("msr fpcr, %0" : : "r"(value));
}
#else
constexpr unsigned long long kFlushBits = 0;
unsigned long long control_register() {
    return 0;
}
void set_control_register(unsigned long long) {}
#endif

}  // namespace

void set_flush_to_zero() {
    set_control_register(control_register() | kFlushBits);
}

void clear_flush_to_zero() {
    set_control_register(control_register() & ~kFlushBits);
}

bool flush_to_zero_enabled() {
    // volatile: the compiler would compute these in its own environment
    volatile float smallest_normal = std::numeric_limits<float>::min();
    volatile float smallest_subnormal = std::numeric_limits<float>::denorm_min();
    volatile float half = 0.5F;
    volatile float two_to_100 = 0x1p100F;
    const float subnormal_result = smallest_normal * half;
    const float scaled_operand = smallest_subnormal * two_to_100;
    // by its bits, because with DAZ a comparison does not tell a subnormal from zero
    std::uint32_t result_bits = 0;
    std::memcpy(&result_bits, &subnormal_result, sizeof result_bits);
    return result_bits == 0 && scaled_operand == 0.0F;
}

ScopedFlushToZero::ScopedFlushToZero() : saved_{control_register()} {
    set_flush_to_zero();
}

ScopedFlushToZero::~ScopedFlushToZero() {
    set_control_register(saved_);
}

}  // namespace contraflow
