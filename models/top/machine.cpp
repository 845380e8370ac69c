#include "top/machine.h"

#include <algorithm>
#include <functional>

#include "common/sim_check.h"
#include "numerics/float_environment.h"

namespace contraflow {

namespace {

// Cycles without a burst granted or a kernel issued after which the machine counts as stuck.
const std::int64_t kStuckCycles = 50'000'000;

}  // namespace

Machine::Machine(const sc_core::sc_module_name& name, const Config& config, const Program& program,
                 const MachineOptions& options)
    : sc_core::sc_module(name),
      clk("clk", config.fabric_hz, options.run_mode),
      clk_mem("clk_mem", config.dram.clock_hz, options.run_mode),
      program_(program),
      options_(options),
      engine_config_(config.engine),
      timings_(std::make_unique<TimingCache>(engine_config_, program)) {
    const std::size_t num_engines = static_cast<std::size_t>(config.engine.count);
    const std::size_t num_vector = static_cast<std::size_t>(config.vector.count);
    engines.resize(num_engines);
    vector_units.resize(num_vector);

    std::vector<std::function<void()>> makers;
    makers.emplace_back([&] { lutram = std::make_unique<OnChipMemory>("lutram", program.rams, RamKind::Lutram); });
    makers.emplace_back([&] { bram = std::make_unique<OnChipMemory>("bram", program.rams, RamKind::Bram); });
    makers.emplace_back([&] { uram = std::make_unique<OnChipMemory>("uram", program.rams, RamKind::Uram); });
    makers.emplace_back([&] {
        interconnect = std::make_unique<Interconnect>("interconnect", clk, program.rams, num_engines + num_vector + 1);
    });
    for (std::size_t i = 0; i < num_engines; ++i) {
        makers.emplace_back([&, i] {
            ContractionEngine::Config engine;
            engine.engine = config.engine;
            engine.program = &program;
            engine.timings = timings_.get();
            engine.engines = &engines;
            engine.index = static_cast<int>(i);
            engine.values = options.values;
            engines[i] = std::make_unique<ContractionEngine>(("engine" + std::to_string(i)).c_str(), clk, engine);
        });
    }
    for (std::size_t i = 0; i < num_vector; ++i) {
        makers.emplace_back([&, i] {
            VectorUnit::Config vector;
            vector.vector = config.vector;
            vector.engine = config.engine;
            vector.program = &program;
            vector.index = static_cast<int>(i);
            vector.client = static_cast<int>(num_engines + i);
            vector.values = options.values;
            vector_units[i] = std::make_unique<VectorUnit>(("vector" + std::to_string(i)).c_str(), clk, vector);
        });
    }
    makers.emplace_back([&] {
        Dma::Config dma_config;
        dma_config.dma = config.dma;
        dma_config.port_burst_bytes = config.dram.port_burst_bytes;
        dma_config.program = &program;
        dma_config.client = static_cast<int>(num_engines + num_vector);
        dma = std::make_unique<Dma>("dma", clk, dma_config);
    });
    makers.emplace_back([&] { dram = std::make_unique<DramController>("dram", clk_mem, config.dram); });
    makers.emplace_back([&] {
        Sequencer::Config sequencer_config;
        sequencer_config.policy = config.schedule_policy;
        sequencer_config.look_ahead = config.schedule_look_ahead;
        sequencer_config.sequencer = config.sequencer;
        sequencer_config.program = &program;
        sequencer_config.engines = config.engine.count;
        sequencer_config.vector_units = config.vector.count;
        sequencer = std::make_unique<Sequencer>("sequencer", clk, sequencer_config);
    });
    makers.emplace_back([&] { host = std::make_unique<HostDriver>("host", clk); });
    if (options.reversed) {
        std::reverse(makers.begin(), makers.end());
    }
    for (const auto& make : makers) {
        make();
    }
    connect();
    if (options.run_mode == RunMode::Leap) {
        clk.run_ahead({&clk_mem});
        clk_mem.run_ahead({&clk});
    }
}

void Machine::connect() {
    const auto connect_memory = [&](MemoryPorts& memory) {
        memory.lutram.bind(lutram->port_in);
        memory.bram.bind(bram->port_in);
        memory.uram.bind(uram->port_in);
    };
    std::size_t client = 0;
    const auto connect_client = [&](auto& block) {
        block.request_out.bind(*interconnect->request_in[client]);
        interconnect->grant_out[client]->bind(block.grant_in);
        connect_memory(block.memory);
        ++client;
    };
    for (std::size_t i = 0; i < engines.size(); ++i) {
        connect_client(*engines[i]);
        sequencer->engine_out[i]->bind(engines[i]->start_in);
        engines[i]->done_out.bind(*sequencer->engine_in[i]);
    }
    for (std::size_t i = 0; i < vector_units.size(); ++i) {
        connect_client(*vector_units[i]);
        sequencer->vector_out[i]->bind(vector_units[i]->start_in);
        vector_units[i]->done_out.bind(*sequencer->vector_in[i]);
    }
    connect_client(*dma);
    sequencer->dma_out.bind(dma->start_in);
    dma->done_out.bind(sequencer->dma_in);
    dma->dram_initiator.bind(dram->dma_target);
    host->dram_initiator.bind(dram->host_target);
    host->doorbell_out.bind(sequencer->doorbell_in);
    sequencer->done_out.bind(host->done_in);
}

void Machine::run(const std::vector<Sample>& samples) {
    if (samples.empty()) {
        return;
    }
    const ScopedFlushToZero flush;
    host->queue(samples);
    const sc_core::sc_time slice = sc_core::sc_time::from_value(clk.edge_ps(static_cast<Cycle>(kStuckCycles)));
    while (!host->finished() && !stopped_) {
        const std::uint64_t grants = interconnect->stats().num_grants;
        const std::size_t kernels = sequencer->kernels().size();
        for (ClockDomain* domain : {&clk, &clk_mem}) {
            domain->set_horizon((sc_core::sc_time_stamp() + slice).value());
        }
        sc_core::sc_start(slice);
        const bool progress = interconnect->stats().num_grants != grants || sequencer->kernels().size() != kernels;
        SIM_CHECK(host->finished() || stopped_ || progress, "no block makes progress:\n" << states());
    }
    if (stopped_) {
        return;
    }
    const Cycle last = host->cycle();
    const auto settle = [last](Block& block) { block.catch_up(last); };
    for (auto& engine : engines) {
        settle(*engine);
    }
    for (auto& unit : vector_units) {
        settle(*unit);
    }
    settle(*interconnect);
    settle(*dma);
    dram->catch_up(clk_mem.first_edge_after(clk.edge_ps(last)) - 1);
    settle(*sequencer);
}

void Machine::stop() {
    stopped_ = true;
    for (ClockDomain* domain : {&clk, &clk_mem}) {
        domain->set_horizon(0);
    }
    sc_core::sc_pause();
}

float* Machine::words(RamId ram) {
    return memory_of(ram).words(ram);
}

const RamStats& Machine::ram_stats(RamId ram) const {
    return memory_of(ram).stats(ram);
}

OnChipMemory& Machine::memory_of(RamId ram) const {
    switch (program_.rams[index_of(ram)].kind) {
        case RamKind::Lutram:
            return *lutram;
        case RamKind::Bram:
            return *bram;
        case RamKind::Uram:
            break;
    }
    return *uram;
}

std::string Machine::states() const {
    std::string text;
    const auto add = [&text](const sc_core::sc_object& block, const std::string& state) {
        text += std::string("  ") + block.name() + ": " + state + '\n';
    };
    add(*sequencer, sequencer->state_text());
    for (const auto& engine : engines) {
        add(*engine, engine->state_text());
    }
    for (const auto& unit : vector_units) {
        add(*unit, unit->state_text());
    }
    add(*dma, dma->state_text());
    add(*dram, dram->state_text());
    return text;
}

}  // namespace contraflow
