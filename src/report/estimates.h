// Estimates of what the machine occupies beside its memories, and of the energy a run takes. Both are sums over
// operators and events with the vendor-tool figures stated in estimates.cpp; docs/report.md says what they leave out.
#pragma once

#include <cstdint>

#include "contraflow/config.h"
#include "contraflow/plan.h"

namespace contraflow {

struct ResourceEstimate {
    std::int64_t dsp = 0, lut = 0, ff = 0;
    std::int64_t bram36 = 0, uram = 0;
};

// Operators of the PEs and vector units, and the blocks of the plan's memories.
[[nodiscard]] ResourceEstimate estimate_resources(const Config& config, const BlockCount& blocks);

// Events of a run that take energy.
struct EnergyEvents {
    double seconds = 0;        // simulated
    std::uint64_t cycles = 0;  // fabric cycles
    std::uint64_t macs = 0;
    std::uint64_t vector_adds = 0, vector_multiplies = 0, vector_specials = 0;
    std::uint64_t lutram_words = 0;  // 32-bit accesses
    std::uint64_t bram_words = 0;    // accesses of up to 36 bits
    std::uint64_t uram_rows = 0;     // accesses of up to 72 bits
    std::uint64_t dram_bytes = 0;
};

// Joules.
struct EnergyEstimate {
    double device_static = 0, shell = 0, clock = 0, pe = 0, vector = 0, bram = 0, uram = 0, lutram = 0, dram = 0;

    [[nodiscard]] double total() const {
        return device_static + shell + clock + pe + vector + bram + uram + lutram + dram;
    }
};

[[nodiscard]] EnergyEstimate estimate_energy(const EnergyEvents& events, const ResourceEstimate& resources,
                                             const Config& config);

}  // namespace contraflow
