// Everything a run has to tell, as plain numbers; report_json, report_text and report_csv write it down.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "contraflow/config.h"
#include "contraflow/dataset.h"
#include "contraflow/simulation.h"
#include "dram/dram_stats.h"
#include "report/bounds.h"
#include "report/estimates.h"
#include "report/memory_report.h"

namespace contraflow {

// Named cycle counts in a fixed order.
using StallCycles = std::vector<std::pair<std::string, std::uint64_t>>;
[[nodiscard]] StallCycles stalls_of(const UnitCycles& cycles);  // dependency, bank, port, write_back, dram, pipeline

// Fabric cycles from doorbell to completion. A step is forward until its last forward kernel ends, then backward until
// its last backward kernel ends, then update; the three sum to the total.
struct PhaseCycles {
    std::uint64_t total = 0, forward = 0, backward = 0, update = 0;
};

struct KernelReport {
    std::uint32_t step = 0;    // from 0
    std::uint32_t kernel = 0;  // index into the step's kernels
    std::string name;
    KernelClass kernel_class = KernelClass::Apply;
    Phase phase = Phase::Forward;
    std::uint64_t start = 0, end = 0;  // fabric edges since reset
    std::uint64_t macs = 0;
    UnitCycles cycles;  // of its (first) unit; sum to end - start
    std::string unit;
    UnitKind unit_kind = UnitKind::Engine;
    int first_unit = 0;  // among the units of its kind
    int units = 1;       // engines in the gang
    double pe_use = 0;   // contractions: multiply-accumulates / (PEs of the gang x busy cycles)
};

// Kernels of one class over all steps. Kernels that run side by side count each.
struct ClassTotals {
    KernelClass kernel_class = KernelClass::Apply;
    std::uint64_t kernels = 0, cycles = 0, macs = 0;
    std::array<std::uint64_t, 3> phase_cycles{};  // by Phase; sum to cycles
    std::uint64_t critical_cycles = 0;            // of those on the critical path of the last step
};

// Edges of one block by what it did; busy, stalls and idle sum to cycles.
struct BlockAccount {
    std::string name;
    std::uint64_t busy = 0;
    StallCycles stalls;
    std::uint64_t idle = 0;
    std::uint64_t cycles = 0;  // edges since reset; of the DRAM: memory-clock edges times channels
};

// What one side of a link counted as sent and the other as received.
struct LinkCount {
    std::string name;
    std::uint64_t sent = 0, received = 0;
};

// What moved through the ports of one on-chip memory.
struct RamAccesses {
    std::string ram;
    std::uint64_t reads = 0, writes = 0;  // of a row of one bank
    std::uint64_t words_read = 0, words_written = 0;
    std::uint64_t conflict_cycles = 0;  // port-cycles in which a bank was accessed again for words of one operation
};

struct Utilisation {
    double pe = 0;            // multiply-accumulates / (PEs x cycles)
    double engine = 0;        // cycles in which an engine's array worked / (engines x cycles)
    double vector = 0;        // busy cycles / (units x cycles)
    double dma = 0;           // busy cycles / cycles
    double dram_bus = 0;      // data-bus cycles / (channels x memory cycles)
    double memory_ports = 0;  // granted port-cycles / (ports of all memories x cycles)
};

// Contractions that leave most of their PEs without an output, over the listed steps.
struct IdlePes {
    std::uint64_t kernels = 0;
    std::uint64_t busy_cycles = 0;  // of their engines
    std::string worst;              // the kernel with the lowest use, first of equals
    double worst_use = 1;
};
inline constexpr double kLowPeUse = 0.25;

struct DdrReport {
    std::uint64_t reads = 0, writes = 0;  // transactions (AXI bursts)
    std::uint64_t read_bytes = 0, write_bytes = 0;
    std::uint64_t memory_cycles = 0;  // of each channel
    std::vector<DramStats> channels;
    DramStats sum;  // of the channels
};

struct HostReport {
    double startup_seconds = 0;  // from the start of the command to the first simulated edge
    double seconds = 0;          // simulation only
    std::int64_t peak_rss_bytes = 0;
};

struct RunReport {
    Config config;
    RunMode run_mode = RunMode::Leap;
    bool values = true;
    std::size_t steps = 0;
    PhaseCycles cycles;
    std::vector<std::uint64_t> step_cycles;
    double latency_s = 0;    // mean per step
    double host_link_s = 0;  // per step: one buffer in (the sample) and one out (the loss)
    std::vector<StepOutcome> outcomes;
    std::vector<std::uint32_t> kernels_steps;  // steps whose kernels are listed
    std::vector<KernelReport> kernels;
    std::vector<ClassTotals> classes;
    std::uint64_t macs = 0;  // executed by the PEs
    LowerBound bound;
    struct CriticalKernel {
        std::string name;
        std::uint64_t cycles = 0;
    };
    std::vector<CriticalKernel> critical_path;  // of the last step
    Utilisation utilisation;
    UnitCycles unit_cycles;  // summed over engines, vector units and DMA
    std::vector<BlockAccount> blocks;
    IdlePes idle_pes;
    ResourceEstimate resources;
    MemoryReport memory;
    std::vector<RamAccesses> ram_accesses;  // by memory, as memory.rams
    DdrReport ddr;
    EnergyEstimate energy;
    double joules_per_step = 0;  // mean
    DataCounts data;
    std::vector<LinkCount> links;
    HostReport host;

    // Mean cycles of a step / its lower bound.
    [[nodiscard]] double bound_ratio() const {
        return steps == 0 || bound.cycles == 0 ? 0
                                               : static_cast<double>(cycles.total) /
                                                     (static_cast<double>(steps) * static_cast<double>(bound.cycles));
    }
};

// Sentences of the ATIS training split: the steps of an epoch in reports.
inline constexpr std::uint64_t kEpochSentences = 4478;

// Runs with more steps list the kernels of the first and the last step only.
inline constexpr std::size_t kMaxListedSteps = 16;

// What only the caller knows.
struct RunFacts {
    bool allow_overflow = false;
    std::vector<StepOutcome> outcomes;  // of all steps
    DataCounts data;
    HostReport host;
};

// REQUIRES: `simulation` ran the steps of `facts` and no others.
[[nodiscard]] RunReport make_run_report(const Simulation& simulation, RunFacts facts);

}  // namespace contraflow
