// The machine: wires the blocks. No behaviour in here.
//
//   host -- doorbell/done -- sequencer -- commands/completions -- engine0.. vector0.. dma
//   engines, vector units, dma -- port requests/grants -- interconnect;  their words -- lutram, bram, uram
//   dma -- TLM-2.0 -- dram (own clock) -- TLM-2.0 (no time) -- host
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "contraflow/config.h"
#include "dma/dma.h"
#include "dram/dram_controller.h"
#include "engine/contraction_engine.h"
#include "host/host_driver.h"
#include "interconnect/interconnect.h"
#include "memory/on_chip_memory.h"
#include "sequencer/sequencer.h"
#include "vector/vector_unit.h"

namespace contraflow {

struct MachineOptions {
    RunMode run_mode = RunMode::Clocked;
    bool values = true;
    bool reversed = false;  // instantiate the blocks in reverse order (nothing may change)
};

class Machine : public sc_core::sc_module {
public:
    // REQUIRES: `program` outlives the machine and fits the configuration.
    Machine(const sc_core::sc_module_name& name, const Config& config, const Program& program,
            const MachineOptions& options);

    // Runs the samples, one training step each. Throws sc_report when an invariant breaks, or when the machine makes no
    // progress: the message lists each block's state.
    void run(const std::vector<Sample>& samples);
    // Ends the run at once, in mid-step; the machine cannot go on. To be called while it runs.
    void stop();

    // The words of an on-chip memory, to load parameters before and to inspect results after a run.
    [[nodiscard]] float* words(RamId ram);

    [[nodiscard]] Cycle last_cycle() const { return host->cycle(); }
    [[nodiscard]] const RamStats& ram_stats(RamId ram) const;

    ClockDomain clk;      // fabric clock
    ClockDomain clk_mem;  // DRAM clock
    std::unique_ptr<OnChipMemory> lutram, bram, uram;
    std::unique_ptr<Interconnect> interconnect;
    std::vector<std::unique_ptr<ContractionEngine>> engines;
    std::vector<std::unique_ptr<VectorUnit>> vector_units;
    std::unique_ptr<Dma> dma;
    std::unique_ptr<DramController> dram;
    std::unique_ptr<Sequencer> sequencer;
    std::unique_ptr<HostDriver> host;

private:
    void connect();
    [[nodiscard]] OnChipMemory& memory_of(RamId ram) const;
    [[nodiscard]] std::string states() const;

    bool stopped_ = false;
    const Program& program_;
    MachineOptions options_;
    EngineConfig engine_config_;
    std::unique_ptr<TimingCache> timings_;
};

}  // namespace contraflow
