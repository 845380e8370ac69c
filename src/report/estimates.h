// Estimates of what the machine occupies and of the energy a run takes: counts of components and of events times the
// constants of the [resources] and [energy] keys, whose rows name their sources; docs/report.md says what is left out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/command.h"
#include "contraflow/config.h"
#include "contraflow/plan.h"

namespace contraflow {

struct Primitives {
    double dsp = 0, lut = 0, ff = 0, bram36 = 0, uram = 0;

    Primitives& operator+=(const Primitives& other);
};

// Some number of one component in one part of the machine.
struct ResourceRow {
    std::string part;       // pe, vector, memory, interconnect, dma, dram_controller, sequencer
    std::string component;  // its keys are resources.<component>_<primitive>; of memories: their blocks
    double count = 0;
    Primitives use;
};

struct ResourceEstimate {
    std::vector<ResourceRow> rows;

    [[nodiscard]] Primitives total() const;
    [[nodiscard]] Primitives of_part(const std::string& part) const;
    [[nodiscard]] std::vector<std::string> parts() const;  // in order of first appearance
};

[[nodiscard]] ResourceEstimate estimate_resources(const Config& config, const BlockCount& blocks,
                                                  const std::vector<RamGeometry>& rams);

// Events of a run that take energy.
struct EnergyEvents {
    double seconds = 0;        // simulated
    std::uint64_t cycles = 0;  // fabric cycles
    std::uint64_t macs = 0;
    std::uint64_t write_back_adds = 0;  // of bias, residual and partial sums, in the engines
    std::uint64_t vector_adds = 0, vector_multiplies = 0, vector_compares = 0;
    std::uint64_t exps = 0, tanhs = 0, erfs = 0;
    std::uint64_t lutram_words = 0;  // 32-bit accesses
    std::uint64_t bram_words = 0;    // accesses of up to 36 bits
    std::uint64_t uram_rows = 0;     // accesses of up to 72 bits
    std::uint64_t moved_words = 0;   // through the interconnect
    std::uint64_t dram_bits = 0;     // over the data bus
    std::uint64_t dram_activates = 0, dram_refreshes = 0;
};

// Events of one kind in one part of the machine at the price of one constant.
struct EnergyRow {
    std::string group;     // kernel, memory, dram, clock, static, shell
    std::string part;      // engine, vector, lutram, ...
    std::string constant;  // the key
    double count = 0;
    double joules = 0;
};

struct EnergyEstimate {
    std::vector<EnergyRow> rows;

    [[nodiscard]] double total() const;
    [[nodiscard]] double of_group(const std::string& group) const;
};
inline constexpr const char* kEnergyGroups[] = {"kernel", "memory", "dram", "clock", "static", "shell"};

[[nodiscard]] EnergyEstimate estimate_energy(const EnergyEvents& events, const Primitives& resources,
                                             const Config& config);

}  // namespace contraflow
