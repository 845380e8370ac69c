#include "numerics/instruction_set.h"

#include <atomic>
#include <stdexcept>
#include <string>

#include "numerics/kernel_table.h"

namespace contraflow {
namespace {

const KernelTable* table_of(InstructionSet set) {
#ifdef CONTRAFLOW_NUMERICS_X86
    switch (set) {
        case InstructionSet::Portable:
            return &kPortableKernels;
        case InstructionSet::Avx2:
            return __builtin_cpu_supports("avx2") ? &kAvx2Kernels : nullptr;
        case InstructionSet::Avx512:
            return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")
                       ? &kAvx512Kernels
                       : nullptr;
    }
    return nullptr;
#else
    return set == InstructionSet::Portable ? &kPortableKernels : nullptr;
#endif
}

// Constant-initialised, so that a call before the static initialiser below has run is merely slow.
std::atomic<const KernelTable*> active_table{&kPortableKernels};

const bool fastest_chosen = [] {
#ifdef CONTRAFLOW_NUMERICS_X86
    __builtin_cpu_init();
#endif
    active_table = table_of(available_instruction_sets().back());
    return true;
}();

}  // namespace

const char* instruction_set_name(InstructionSet set) {
    switch (set) {
        case InstructionSet::Portable:
            return "portable";
        case InstructionSet::Avx2:
            return "avx2";
        case InstructionSet::Avx512:
            return "avx512";
    }
    return "unknown";
}

std::vector<InstructionSet> available_instruction_sets() {
    std::vector<InstructionSet> sets;
    for (const InstructionSet set : {InstructionSet::Portable, InstructionSet::Avx2, InstructionSet::Avx512}) {
        if (table_of(set) != nullptr) {
            sets.push_back(set);
        }
    }
    return sets;
}

InstructionSet instruction_set() {
    for (const InstructionSet set : available_instruction_sets()) {
        if (table_of(set) == &active_kernels()) {
            return set;
        }
    }
    return InstructionSet::Portable;
}

void force_instruction_set(InstructionSet set) {
    const KernelTable* const table = table_of(set);
    if (table == nullptr) {
        throw std::invalid_argument(std::string{"this host has no "} + instruction_set_name(set));
    }
    active_table.store(table, std::memory_order_relaxed);
}

const KernelTable& active_kernels() {
    return *active_table.load(std::memory_order_relaxed);
}

}  // namespace contraflow
