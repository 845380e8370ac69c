#include "support/machine_harness.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <sstream>
#include <stdexcept>
#include <systemc>

#include "contraflow/load_config.h"
#include "contraflow/weights.h"
#include "process/child_process.h"
#include "reference/reference_machine.h"
#include "top/machine.h"

namespace contraflow::test {
namespace {

constexpr std::size_t kMaxDifferences = 12;

class Observer {
public:
    explicit Observer(Simulation& simulation) : simulation_(simulation) {}

    Observations observe(const std::vector<StepOutcome>& outcomes) {
        steps(outcomes);
        kernels();
        blocks();
        memories();
        tensors();
        return std::move(observations_);
    }

private:
    void add(const std::string& name, std::uint64_t value) { observations_.emplace_back(scope_ + " " + name, value); }
    void add_bits(const std::string& name, float value) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        add(name, bits);
    }
    void add(const UnitCycles& cycles) {
        add("busy", cycles.busy);
        add("dependency", cycles.dependency);
        add("bank", cycles.bank);
        add("port", cycles.port);
        add("write_back", cycles.write_back);
        add("dram", cycles.dram);
        add("pipeline", cycles.pipeline);
    }
    void require_equal(const std::string& what, std::uint64_t left, std::uint64_t right) const {
        if (left != right) {
            throw std::runtime_error(scope_ + ": " + what + ": " + std::to_string(left) + " is not " +
                                     std::to_string(right));
        }
    }

    void steps(const std::vector<StepOutcome>& outcomes) {
        for (std::size_t i = 0; i < outcomes.size(); ++i) {
            scope_ = "step " + std::to_string(i);
            add("start", outcomes[i].start);
            add("end", outcomes[i].end);
            scope_ = "value of step " + std::to_string(i);
            add_bits("intent loss", outcomes[i].intent_loss);
            add_bits("slot loss", outcomes[i].slot_loss);
            add_bits("loss", outcomes[i].loss);
        }
        const std::vector<StepRecord>& records = machine().sequencer->steps();
        for (std::size_t i = 0; i < records.size(); ++i) {
            scope_ = "sequencer step " + std::to_string(i);
            add("start", records[i].start);
            add("end", records[i].end);
        }
    }

    void kernels() {
        for (const KernelRecord& record : machine().sequencer->kernels()) {
            scope_ = "kernel " + std::to_string(record.step) + " " + simulation_.program().kernels[record.kernel].name;
            add("start", record.start);
            add("end", record.end);
            add("macs", record.macs);
            add("unit", record.unit);
            add("gang", record.gang_size);
            add(record.cycles);
            require_equal("cycles by cause and duration", record.cycles.total(), record.end - record.start);
        }
    }

    template <class Stats>
    void unit(const char* name, const Stats& stats) {
        scope_ = name;
        add(stats.cycles);
        add("idle", stats.idle_cycles);
        add("kernels", stats.num_kernels);
        add("words read", stats.num_words_read);
        add("words written", stats.num_words_written);
        add("requests", stats.num_requests);
        require_equal("cycles by cause and all cycles", stats.cycles.total() + stats.idle_cycles,
                      machine().last_cycle() + 1);
        requests_sent_ += stats.num_requests;
    }

    void channel(const DramStats& stats) {
        for (const std::uint64_t commands : stats.commands) {
            add("commands", commands);
        }
        add("channel reads", stats.reads);
        add("channel writes", stats.writes);
        add("channel bytes read", stats.read_bytes);
        add("channel bytes written", stats.written_bytes);
        add("row hits", stats.row_hits);
        add("row misses", stats.row_misses);
        add("row conflicts", stats.row_conflicts);
        add("bus busy", stats.busy_cycles);
        add("refresh stall", stats.stall_refresh_cycles);
        add("timing stall", stats.stall_timing_cycles);
        add("full stall", stats.stall_full_cycles);
        add("queueing", stats.queueing_cycles);
        add("service", stats.service_cycles);
        add("longest read", stats.latency.max());
        require_equal("hits and misses", stats.row_hits + stats.row_misses, stats.reads + stats.writes);
    }

    void blocks() {
        for (const auto& engine : machine().engines) {
            unit(engine->basename(), engine->stats());
            add("tiles", engine->stats().num_tiles);
            add("macs", engine->stats().num_macs);
        }
        for (const auto& vector : machine().vector_units) {
            const VectorUnit::Stats& stats = vector->stats();
            unit(vector->basename(), stats);
            add("elements", stats.num_elements);
            add("adds", stats.num_adds);
            add("multiplies", stats.num_multiplies);
            add("compares", stats.num_compares);
            add("specials", stats.num_exps + stats.num_erfs + stats.num_tanhs);
        }
        const Dma::Stats& dma = machine().dma->stats();
        unit("dma", dma);
        add("bursts", dma.num_bursts);
        add("bytes read", dma.read_bytes);
        add("bytes written", dma.written_bytes);

        scope_ = "dram";
        const DramController::Stats& dram = machine().dram->stats();
        add("reads", dram.num_reads);
        add("writes", dram.num_writes);
        add("bytes read", dram.read_bytes);
        add("bytes written", dram.written_bytes);
        for (std::size_t i = 0; i < machine().dram->num_channels(); ++i) {
            channel(machine().dram->channel_stats(i));
        }
        const DramStats sum = machine().dram->sum_of_channels();
        require_equal("bytes read and the channels'", dram.read_bytes, sum.read_bytes);
        require_equal("bytes written and the channels'", dram.written_bytes, sum.written_bytes);
        require_equal("bytes read and the DMA's", dram.read_bytes, dma.read_bytes);
        require_equal("bytes written and the DMA's", dram.written_bytes, dma.written_bytes);

        scope_ = "interconnect";
        const Interconnect::Stats& interconnect = machine().interconnect->stats();
        add("requests", interconnect.num_requests);
        add("grants", interconnect.num_grants);
        add("granted port cycles", interconnect.granted_port_cycles);
        add("busy", interconnect.busy_cycles);
        add("port stall", interconnect.stall_port_cycles);
        require_equal("requests sent and received", requests_sent_, machine().interconnect->num_requests_received());

        scope_ = "sequencer";
        const Sequencer::Stats& sequencer = machine().sequencer->stats();
        add("busy", sequencer.busy_cycles);
        add("dependence stall", sequencer.stall_dependence_cycles);
        add("idle", sequencer.idle_cycles);
        add("kernels", sequencer.num_kernels);
        add("steps", sequencer.num_steps);
        require_equal("cycles by cause and all cycles",
                      sequencer.busy_cycles + sequencer.stall_dependence_cycles + sequencer.idle_cycles,
                      machine().last_cycle() + 1);
        scope_ = "machine";
        add("last cycle", machine().last_cycle());
    }

    void memories() {
        const std::vector<RamGeometry>& rams = simulation_.program().rams;
        for (std::size_t i = 0; i < rams.size(); ++i) {
            scope_ = "ram " + std::to_string(i) + " " + rams[i].name;
            const RamStats& stats = machine().ram_stats(static_cast<RamId>(i));
            add("words read", stats.num_words_read);
            add("words written", stats.num_words_written);
            add("row reads", stats.num_row_reads);
            add("row writes", stats.num_row_writes);
            add("conflicts", stats.num_conflict_cycles);
        }
    }

    void tensors() {
        scope_ = "value of tensor";
        // Tiles of tensors in DRAM pass through, their buffers hold something else by now.
        for (std::size_t i = 0; i < simulation_.plan().num_tensors; ++i) {
            const auto id = static_cast<TensorId>(i);
            std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a over 32-bit words
            for (const float value : simulation_.get(id)) {
                std::uint32_t bits = 0;
                std::memcpy(&bits, &value, sizeof bits);
                hash = (hash ^ bits) * 1099511628211ULL;
            }
            add(simulation_.step().tensor(id).name, hash);
        }
    }

    [[nodiscard]] Machine& machine() const { return simulation_.machine(); }

    Simulation& simulation_;
    Observations observations_;
    std::string scope_;
    std::uint64_t requests_sent_ = 0;
};

bool is_value(const std::string& name) {
    return name.compare(0, 5, "value") == 0;
}

template <class Keep>
Observations filtered(const Observations& observations, Keep keep) {
    Observations kept;
    for (const auto& observation : observations) {
        if (keep(observation.first)) {
            kept.push_back(observation);
        }
    }
    return kept;
}

void require_no_reports() {
    for (const sc_core::sc_severity severity : {sc_core::SC_WARNING, sc_core::SC_ERROR, sc_core::SC_FATAL}) {
        if (sc_core::sc_report_handler::get_count(severity) != 0) {
            throw std::runtime_error("SystemC made a report of severity " + std::to_string(severity));
        }
    }
}

}  // namespace

Config config_of(const std::string& ini_path, const Overrides& overrides) {
    return load_config(ini_path, overrides).config;
}

Config tiny_config(const Overrides& overrides) {
    return config_of(std::string(CONTRAFLOW_SOURCE_DIR) + "/configs/tiny.ini", overrides);
}

std::vector<Sample> random_samples(const Config& config, int count) {
    std::mt19937_64 random(config.train.seed);
    const auto below = [&](int limit) {
        return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(limit));
    };
    std::vector<Sample> samples;
    for (int i = 0; i < count; ++i) {
        Sample sample;
        sample.words = 1 + below(config.network.seq_len - 1);
        sample.intent = below(config.network.intents);
        for (int position = 0; position < config.network.seq_len; ++position) {
            const bool word = position >= 1 && position <= sample.words;
            sample.real.push_back(position <= sample.words ? 1 : 0);
            sample.tokens.push_back(word ? below(config.network.vocab) : position == 0 ? 2 : 0);
            sample.slot_labels.push_back(word ? below(config.network.slots) : 0);
        }
        samples.push_back(sample);
    }
    return samples;
}

Observations observe(const MachineCase& machine_case) {
    Simulation simulation(machine_case.config, build_training_step(machine_case.config), machine_case.options);
    for (const auto& [name, values] : initial_weights(machine_case.config)) {
        simulation.set(simulation.step().find(name), values);
    }
    if (machine_case.trace) {
        simulation.trace(*machine_case.trace);
    }
    const std::vector<StepOutcome> outcomes = simulation.run(machine_case.samples);
    if (machine_case.trace) {
        (void)simulation.finish_trace();
    }
    require_no_reports();
    return Observer(simulation).observe(outcomes);
}

Observations observe_in_child(const MachineCase& machine_case, unsigned limit_seconds) {
    const auto work = [&] {
        std::ostringstream text;
        for (const auto& [name, value] : observe(machine_case)) {
            text << value << ' ' << name << '\n';
        }
        return text.str();
    };
    std::istringstream text(run_in_child(work, limit_seconds));
    Observations observations;
    std::uint64_t value = 0;
    while (text >> value) {
        std::string name;
        std::getline(text.ignore(), name);
        observations.emplace_back(name, value);
    }
    return observations;
}

std::string difference_from_reference(MachineCase machine_case, unsigned limit_seconds) {
    machine_case.options.keep_all = true;
    const auto work = [&] {
        const Config& config = machine_case.config;
        const Step step = build_training_step(config);
        Simulation simulation(config, step, machine_case.options);
        ReferenceMachine reference(step, config.engine.partial_sums);
        for (const auto& [name, values] : initial_weights(config)) {
            simulation.set(step.find(name), values);
            reference.tensor(name) = values;
        }
        std::ostringstream text;
        for (std::size_t i = 0; i < machine_case.samples.size(); ++i) {
            const StepOutcome outcome = simulation.run({machine_case.samples[i]}).at(0);
            reference.load_sample(machine_case.samples[i]);
            reference.run_step();
            if (std::vector<float>{outcome.intent_loss, outcome.slot_loss, outcome.loss} != reference.stored_loss()) {
                text << "step " << i << ": the losses differ\n";
            }
            for (std::size_t t = 0; t < step.tensors.size(); ++t) {
                const auto id = static_cast<TensorId>(t);
                const std::vector<float> got = simulation.get(id);
                const bool whole = step.tensor(id).element == ElementType::I32;
                const void* wanted = whole ? static_cast<const void*>(reference.integers(id).data())
                                           : static_cast<const void*>(reference.tensor(id).data());
                if (std::memcmp(got.data(), wanted, got.size() * sizeof(float)) != 0) {
                    text << "step " << i << ": " << step.tensor(id).name << " differs\n";
                }
            }
        }
        require_no_reports();
        return text.str();
    };
    return run_in_child(work, limit_seconds);
}

Observations without_values(const Observations& observations) {
    return filtered(observations, [](const std::string& name) { return !is_value(name); });
}

Observations only_values(const Observations& observations) {
    return filtered(observations, is_value);
}

std::string differences(const Observations& left, const Observations& right) {
    std::ostringstream text;
    std::size_t count = 0;
    for (std::size_t i = 0; i < std::max(left.size(), right.size()) && count < kMaxDifferences; ++i) {
        if (i >= left.size() || i >= right.size() || left[i].first != right[i].first) {
            text << "number " << i << ": " << (i < left.size() ? left[i].first : "nothing") << " and "
                 << (i < right.size() ? right[i].first : "nothing") << '\n';
            break;
        }
        if (left[i].second != right[i].second) {
            text << left[i].first << ": " << left[i].second << " and " << right[i].second << '\n';
            ++count;
        }
    }
    return text.str();
}

}  // namespace contraflow::test
