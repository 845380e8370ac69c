// Which vector instructions the numerics use. Every path computes the same bits: an instruction set is a matter of
// speed only, so that a result does not depend on the host.
#pragma once

#include <vector>

namespace contraflow {

enum class InstructionSet { Portable, Avx2, Avx512 };  // Portable: SSE2 on x86-64, the compiler's baseline elsewhere

[[nodiscard]] const char* instruction_set_name(InstructionSet set);

// What this host (processor and operating system) and this build can run, slowest first; Portable is always there.
[[nodiscard]] std::vector<InstructionSet> available_instruction_sets();

// The set in use: the fastest available one unless forced.
[[nodiscard]] InstructionSet instruction_set();

// For tests and measurements: from now on every thread uses `set`. Throws std::invalid_argument if the host lacks it.
void force_instruction_set(InstructionSet set);

}  // namespace contraflow
