// The floating-point state of a thread. The modelled operators flush subnormal operands and results to zero; the host
// does the same only after it was told to, once per thread.
#pragma once

namespace contraflow {

// From now on this thread takes subnormal operands as zero and returns zero for subnormal results (x86-64: FTZ and DAZ
// of MXCSR; AArch64: FZ of FPCR). New threads inherit the state of the thread that starts them on Linux; set it anyway.
// On other processors this does nothing: flush_to_zero_enabled() tells.
void set_flush_to_zero();
void clear_flush_to_zero();

// Whether both a subnormal operand and a subnormal result become zero on this thread, found by trying.
[[nodiscard]] bool flush_to_zero_enabled();

// Flush-to-zero within a scope; the destructor puts the thread's former state back.
class ScopedFlushToZero {
public:
    ScopedFlushToZero();
    ~ScopedFlushToZero();
    ScopedFlushToZero(const ScopedFlushToZero&) = delete;
    ScopedFlushToZero& operator=(const ScopedFlushToZero&) = delete;

private:
    unsigned long long saved_;  // the control register
};

}  // namespace contraflow
