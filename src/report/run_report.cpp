#include "report/run_report.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "top/machine.h"

namespace contraflow {

namespace {

constexpr double kBuffersPerStep = 2;  // over the host link: sample in, loss out
constexpr std::array kClasses{
    KernelClass::Merge,     KernelClass::Apply,  KernelClass::CoreGrad, KernelClass::Attention, KernelClass::Dense,
    KernelClass::Embedding, KernelClass::Vector, KernelClass::Loss,     KernelClass::Update,    KernelClass::Dma};

double ratio(std::uint64_t part, double whole) {
    return whole > 0 ? static_cast<double>(part) / whole : 0;
}

// The rest of `cycles`; an account that exceeds it is a broken model.
std::uint64_t idle_of(const BlockAccount& account) {
    std::uint64_t used = account.busy;
    for (const auto& [cause, cycles] : account.stalls) {
        used += cycles;
    }
    if (used > account.cycles) {
        throw std::logic_error("block " + account.name + " accounts for " + std::to_string(used) + " of " +
                               std::to_string(account.cycles) + " cycles");
    }
    return account.cycles - used;
}

class Collector {
public:
    Collector(const Simulation& simulation, RunFacts facts)
        : simulation_(simulation),
          machine_(simulation.machine()),
          program_(simulation.program()),
          config_(simulation.config()) {
        report_.config = config_;
        report_.run_mode = simulation.options().run_mode;
        report_.values = simulation.options().values;
        report_.outcomes = std::move(facts.outcomes);
        report_.steps = report_.outcomes.size();
        report_.data = facts.data;
        report_.host = facts.host;
        report_.memory =
            make_memory_report(config_, simulation.step(), simulation.plan(), program_, facts.allow_overflow);
        std::vector<KernelTimes> last;
        const std::vector<KernelRecord>& records = machine_.sequencer->kernels();
        for (const KernelRecord& record : records) {
            if (record.step == records.back().step) {
                last.push_back({record.kernel, record.start, record.end});
            }
        }
        add_simulated_peaks(simulation_.step(), simulation_.plan(), last, report_.memory);
        edges_ = machine_.last_cycle() + 1;
    }

    RunReport collect() {
        split_records();
        add_cycles();
        add_kernels();
        add_bounds();
        add_blocks();
        add_utilisation();
        add_ddr();
        add_ram_accesses();
        add_links();
        add_estimates();
        return std::move(report_);
    }

private:
    // The sequencer's records stand step by step.
    void split_records() {
        const std::vector<KernelRecord>& records = machine_.sequencer->kernels();
        for (std::size_t i = 0; i < records.size(); ++i) {
            while (step_begin_.size() <= records[i].step) {
                step_begin_.push_back(i);
            }
        }
        step_begin_.resize(report_.steps + 1, records.size());
    }

    struct Records {
        const KernelRecord* first;
        const KernelRecord* last;
        [[nodiscard]] const KernelRecord* begin() const { return first; }
        [[nodiscard]] const KernelRecord* end() const { return last; }
    };
    [[nodiscard]] Records records_of(std::size_t step) const {
        const KernelRecord* records = machine_.sequencer->kernels().data();
        return {records + step_begin_[step], records + step_begin_[step + 1]};
    }

    [[nodiscard]] const KernelCommand& kernel_of(const KernelRecord& record) const {
        return program_.kernels[record.kernel];
    }

    void add_cycles() {
        for (std::size_t i = 0; i < report_.steps; ++i) {
            const StepOutcome& outcome = report_.outcomes[i];
            const auto& phase_end = machine_.sequencer->steps()[i].phase_end;
            const auto end_of = [&](Phase phase) { return phase_end[static_cast<std::size_t>(phase)]; };
            const std::uint64_t forward_end = std::max(outcome.start, end_of(Phase::Forward));
            const std::uint64_t backward_end = std::max(forward_end, end_of(Phase::Backward));
            report_.cycles.forward += forward_end - outcome.start;
            report_.cycles.backward += backward_end - forward_end;
            report_.cycles.update += outcome.end - backward_end;
            report_.cycles.total += outcome.end - outcome.start;
            report_.step_cycles.push_back(outcome.end - outcome.start);
        }
        seconds_ = static_cast<double>(report_.cycles.total) / static_cast<double>(config_.fabric_hz);
        report_.latency_s = report_.steps == 0 ? 0 : seconds_ / static_cast<double>(report_.steps);
        report_.host_link_s = kBuffersPerStep * config_.device.link_seconds_per_buffer;
    }

    [[nodiscard]] std::string unit_name(const KernelRecord& record) const {
        switch (kernel_of(record).unit) {
            case UnitKind::Engine:
                return "engine" + std::to_string(record.unit);
            case UnitKind::Vector:
                return "vector" + std::to_string(record.unit);
            case UnitKind::Dma:
                break;
        }
        return "dma";
    }

    void add_kernels() {
        const bool all = report_.steps <= kMaxListedSteps;
        for (const KernelClass kernel_class : kClasses) {
            report_.classes.push_back({kernel_class, 0, 0, 0, {}, 0});
        }
        for (std::size_t i = 0; i < program_.kernels.size(); ++i) {
            const KernelTotals& own = machine_.sequencer->totals()[i];
            ClassTotals& totals = class_totals(program_.kernels[i].kernel_class);
            totals.kernels += own.count;
            totals.cycles += own.cycles;
            totals.phase_cycles[static_cast<std::size_t>(program_.kernels[i].phase)] += own.cycles;
            totals.macs += own.macs;
        }
        for (std::size_t i = 0; i < report_.steps; ++i) {
            if (!all && i != 0 && i + 1 != report_.steps) {
                continue;
            }
            report_.kernels_steps.push_back(static_cast<std::uint32_t>(i));
            report_.kernels.reserve(report_.kernels.size() + program_.kernels.size());
            for (const KernelRecord& record : records_of(i)) {
                const KernelCommand& command = kernel_of(record);
                KernelReport kernel;
                kernel.step = record.step;
                kernel.kernel = record.kernel;
                kernel.name = command.name;
                kernel.kernel_class = command.kernel_class;
                kernel.phase = command.phase;
                kernel.start = record.start;
                kernel.end = record.end;
                kernel.macs = record.macs;
                kernel.cycles = record.cycles;
                kernel.unit = unit_name(record);
                kernel.unit_kind = command.unit;
                kernel.first_unit = record.unit;
                kernel.units = record.gang_size;
                if (command.unit == UnitKind::Engine) {
                    add_pe_use(kernel);
                }
                report_.kernels.push_back(std::move(kernel));
            }
        }
    }

    void add_pe_use(KernelReport& kernel) {
        const double pes = static_cast<double>(kernel.units) * config_.engine.rows * config_.engine.cols;
        kernel.pe_use = ratio(kernel.macs, pes * static_cast<double>(kernel.cycles.busy));
        IdlePes& idle = report_.idle_pes;
        if (kernel.pe_use < kLowPeUse) {
            ++idle.kernels;
            idle.busy_cycles += kernel.cycles.busy * static_cast<std::uint64_t>(kernel.units);
        }
        if (kernel.pe_use < idle.worst_use) {
            idle.worst_use = kernel.pe_use;
            idle.worst = kernel.name;
        }
    }

    ClassTotals& class_totals(KernelClass kernel_class) {
        return *std::find_if(report_.classes.begin(), report_.classes.end(),
                             [&](const ClassTotals& totals) { return totals.kernel_class == kernel_class; });
    }

    void add_bounds() {
        if (report_.steps == 0) {
            return;
        }
        const Records records = records_of(report_.steps - 1);
        const std::vector<KernelRecord> last(records.begin(), records.end());
        report_.bound = lower_bound(program_, config_, last);
        for (const std::size_t index : critical_path(program_, config_, last)) {
            const KernelCommand& command = kernel_of(last[index]);
            const std::uint64_t cycles = last[index].end - last[index].start;
            report_.critical_path.push_back({command.name, cycles});
            class_totals(command.kernel_class).critical_cycles += cycles;
        }
    }

    // A block that counts its idle edges itself: what it says, so that a gap in its account shows.
    void add_unit(const std::string& name, const UnitCycles& cycles, std::uint64_t idle) {
        report_.unit_cycles += cycles;
        report_.blocks.push_back({name, cycles.busy, stalls_of(cycles), idle, edges_});
    }

    void add_blocks() {
        for (std::size_t i = 0; i < machine_.engines.size(); ++i) {
            const auto& stats = machine_.engines[i]->stats();
            add_unit("engine" + std::to_string(i), stats.cycles, stats.idle_cycles);
            engine_busy_ += stats.cycles.busy;
            report_.macs += stats.num_macs;
        }
        for (std::size_t i = 0; i < machine_.vector_units.size(); ++i) {
            const auto& stats = machine_.vector_units[i]->stats();
            add_unit("vector" + std::to_string(i), stats.cycles, stats.idle_cycles);
            vector_busy_ += stats.cycles.busy;
        }
        add_unit("dma", machine_.dma->stats().cycles, machine_.dma->stats().idle_cycles);

        const Sequencer::Stats& sequencer = machine_.sequencer->stats();
        report_.blocks.push_back({"sequencer",
                                  sequencer.busy_cycles,
                                  {{"dependency", sequencer.stall_dependence_cycles}},
                                  sequencer.idle_cycles,
                                  edges_});
        const Interconnect::Stats& interconnect = machine_.interconnect->stats();
        BlockAccount ports{
            "interconnect", interconnect.busy_cycles, {{"port", interconnect.stall_port_cycles}}, 0, edges_};
        ports.idle = idle_of(ports);
        report_.blocks.push_back(std::move(ports));
        const DramStats dram = machine_.dram->sum_of_channels();
        BlockAccount memory{"dram",
                            dram.busy_cycles,
                            {{"dram", dram.stall_timing_cycles}, {"refresh", dram.stall_refresh_cycles}},
                            0,
                            memory_edges() * static_cast<std::uint64_t>(config_.dram.channels)};
        memory.idle = idle_of(memory);
        report_.blocks.push_back(std::move(memory));
    }

    // Edges of the memory clock until the last fabric edge.
    [[nodiscard]] std::uint64_t memory_edges() const { return machine_.clk_mem.first_edge_after(last_ps()); }
    [[nodiscard]] std::uint64_t last_ps() const { return machine_.clk.edge_ps(machine_.last_cycle()); }

    void add_utilisation() {
        const auto total = static_cast<double>(report_.cycles.total);
        Utilisation& use = report_.utilisation;
        const double engines = config_.engine.count;
        use.pe = ratio(report_.macs, total * engines * config_.engine.rows * config_.engine.cols);
        use.engine = ratio(engine_busy_, total * engines);
        use.vector = ratio(vector_busy_, total * config_.vector.count);
        use.dma = ratio(machine_.dma->stats().cycles.busy, total);
        use.dram_bus = ratio(machine_.dram->sum_of_channels().busy_cycles,
                             static_cast<double>(memory_edges()) * static_cast<double>(config_.dram.channels));
        double ports = 0;
        for (const RamGeometry& ram : program_.rams) {
            ports += ram.ports;
        }
        use.memory_ports = ratio(machine_.interconnect->stats().granted_port_cycles, total * ports);
    }

    void add_ddr() {
        const DramController::Stats& dram = machine_.dram->stats();
        report_.ddr.reads = dram.num_reads;
        report_.ddr.writes = dram.num_writes;
        report_.ddr.read_bytes = dram.read_bytes;
        report_.ddr.write_bytes = dram.written_bytes;
        report_.ddr.memory_cycles = memory_edges();
        report_.ddr.sum = machine_.dram->sum_of_channels();
        for (std::size_t i = 0; i < machine_.dram->num_channels(); ++i) {
            report_.ddr.channels.push_back(machine_.dram->channel_stats(i));
        }
    }

    void add_ram_accesses() {
        for (std::uint32_t i = 0; i < program_.rams.size(); ++i) {
            const RamStats& stats = machine_.ram_stats(RamId{i});
            report_.ram_accesses.push_back({program_.rams[i].name, stats.num_row_reads, stats.num_row_writes,
                                            stats.num_words_read, stats.num_words_written, stats.num_conflict_cycles});
        }
    }

    void add_links() {
        std::uint64_t requests = machine_.dma->stats().num_requests;
        std::uint64_t read = machine_.dma->stats().num_words_read;
        std::uint64_t written = machine_.dma->stats().num_words_written;
        const auto add = [&](const auto& stats) {
            requests += stats.num_requests;
            read += stats.num_words_read;
            written += stats.num_words_written;
        };
        for (const auto& engine : machine_.engines) {
            add(engine->stats());
        }
        for (const auto& unit : machine_.vector_units) {
            add(unit->stats());
        }
        std::uint64_t ram_read = 0;
        std::uint64_t ram_written = 0;
        for (const RamAccesses& accesses : report_.ram_accesses) {
            ram_read += accesses.words_read;
            ram_written += accesses.words_written;
        }
        const auto& dram = machine_.dram->stats();
        const DramStats channels = machine_.dram->sum_of_channels();
        report_.links = {
            {"words_read", ram_read, read},
            {"words_written", written, ram_written},
            {"port_requests", requests, machine_.interconnect->num_requests_received()},
            {"port_grants", machine_.interconnect->num_requests_received(), machine_.interconnect->stats().num_grants},
            {"dram_read_bytes", dram.read_bytes, machine_.dma->stats().read_bytes},
            {"dram_written_bytes", machine_.dma->stats().written_bytes, dram.written_bytes},
            {"dram_channel_bytes", dram.read_bytes + dram.written_bytes, channels.read_bytes + channels.written_bytes},
            {"kernels", machine_.sequencer->stats().num_issued, machine_.sequencer->stats().num_kernels},
        };
    }

    // Adds beside the multiply-accumulates: bias, residual, and the partial sums of each output.
    [[nodiscard]] std::uint64_t write_back_adds() const {
        std::uint64_t adds = 0;
        for (std::size_t i = 0; i < program_.kernels.size(); ++i) {
            if (program_.kernels[i].unit != UnitKind::Engine) {
                continue;
            }
            const ContractionCommand& work = program_.contractions[program_.kernels[i].command];
            const std::int64_t per_output = (work.bias.present ? 1 : 0) + (work.residual.present ? 1 : 0) +
                                            std::min<std::int64_t>(config_.engine.partial_sums, work.depth) - 1;
            adds += machine_.sequencer->totals()[i].count *
                    static_cast<std::uint64_t>(work.batch * work.rows * work.cols * per_output);
        }
        return adds;
    }

    void add_estimates() {
        report_.resources = estimate_resources(config_, simulation_.plan().blocks, program_.rams);
        EnergyEvents events;
        events.seconds = seconds_;
        events.cycles = report_.cycles.total;
        events.macs = report_.macs;
        events.write_back_adds = write_back_adds();
        for (const auto& unit : machine_.vector_units) {
            events.vector_adds += unit->stats().num_adds;
            events.vector_multiplies += unit->stats().num_multiplies;
            events.vector_compares += unit->stats().num_compares;
            events.exps += unit->stats().num_exps;
            events.tanhs += unit->stats().num_tanhs;
            events.erfs += unit->stats().num_erfs;
        }
        for (std::uint32_t i = 0; i < program_.rams.size(); ++i) {
            const RamGeometry& ram = program_.rams[i];
            const RamAccesses& accesses = report_.ram_accesses[i];
            const std::uint64_t rows = accesses.reads + accesses.writes;
            events.moved_words += accesses.words_read + accesses.words_written;
            const auto lanes = static_cast<std::uint64_t>(ram.lanes);
            switch (ram.kind) {
                case RamKind::Lutram:
                    events.lutram_words += rows * lanes;
                    break;
                case RamKind::Bram:
                    events.bram_words += rows * lanes;
                    break;
                case RamKind::Uram:
                    events.uram_rows += rows * ((lanes + 1) / 2);  // two words in 72 bits
                    break;
            }
        }
        const DramStats& dram = report_.ddr.sum;
        events.dram_bits = (dram.reads + dram.writes) * static_cast<std::uint64_t>(config_.dram.burst_bytes()) * 8;
        events.dram_activates = dram.count(DramCommand::Act);
        events.dram_refreshes = dram.refreshes();
        report_.energy = estimate_energy(events, report_.resources.total(), config_);
        report_.joules_per_step = report_.steps == 0 ? 0 : report_.energy.total() / static_cast<double>(report_.steps);
    }

    const Simulation& simulation_;
    const Machine& machine_;
    const Program& program_;
    const Config& config_;
    std::uint64_t edges_ = 0;
    double seconds_ = 0;
    std::uint64_t engine_busy_ = 0, vector_busy_ = 0;
    std::vector<std::size_t> step_begin_;  // index of each step's first record, and one behind the last
    RunReport report_;
};

}  // namespace

StallCycles stalls_of(const UnitCycles& cycles) {
    return {{"dependency", cycles.dependency}, {"bank", cycles.bank}, {"port", cycles.port},
            {"write_back", cycles.write_back}, {"dram", cycles.dram}, {"pipeline", cycles.pipeline}};
}

RunReport make_run_report(const Simulation& simulation, RunFacts facts) {
    return Collector(simulation, std::move(facts)).collect();
}

}  // namespace contraflow
