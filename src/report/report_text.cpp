#include "report/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/table.h"

namespace contraflow {

namespace {

constexpr std::size_t kListedLosses = 10;  // more steps: the first and last few
constexpr std::size_t kLossesAtEnds = 3;

std::string bytes(std::int64_t count) {
    return with_prefix(static_cast<double>(count), "B");
}

std::string flow_name(Flow flow) {
    return flow == Flow::Btt ? "btt" : flow == Flow::Tt ? "tt" : "mm";
}

std::string counted(std::int64_t count, const std::string& what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string share(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? "-" : percent(static_cast<double>(part) / static_cast<double>(whole));
}

std::string network_text(const Config& config, const MemoryReport& memory) {
    const NetworkConfig& network = config.network;
    std::string text = fmt::format("Network: {}, flow {}, width {}, {} positions, {} heads\n",
                                   counted(network.encoders, "encoder block"), flow_name(network.flow), network.d_model,
                                   network.seq_len, network.heads);
    text += fmt::format("  parameters {} as trained, {} dense: {:.2f} times smaller\n", bytes(memory.parameters_bytes),
                        bytes(memory.dense_parameters_bytes), memory.compression);
    return text;
}

std::string machine_text(const Config& config) {
    const EngineConfig& engine = config.engine;
    const VectorConfig& vector = config.vector;
    return fmt::format(
        "Machine: {} of {} x {} PEs, {} of {} lanes ({} special), {}Hz, schedule {}\n"
        "  {}, {} of {}\n",
        counted(engine.count, "engine"), engine.rows, engine.cols, counted(vector.count, "vector unit"), vector.lanes,
        vector.special_lanes, with_prefix(static_cast<double>(config.fabric_hz), ""),
        config.schedule_policy == SchedulePolicy::Serial ? "serial" : "overlap", config.device.name,
        counted(config.dram.channels, "channel"), config.dram.name);
}

// How many kernels are on the critical path, what they leave to waiting, and the longest of them.
std::string critical_path_text(const RunReport& report) {
    constexpr std::size_t kLongest = 5;
    std::vector<RunReport::CriticalKernel> path = report.critical_path;
    if (path.empty()) {
        return "";
    }
    std::uint64_t cycles = 0;
    for (const auto& kernel : path) {
        cycles += kernel.cycles;
    }
    std::stable_sort(path.begin(), path.end(), [](const auto& a, const auto& b) { return a.cycles > b.cycles; });
    std::string text = fmt::format("\nCritical path of the last step: {}, {} of its {} cycles; the longest: ",
                                   counted(static_cast<std::int64_t>(path.size()), "kernel"), grouped(cycles),
                                   grouped(report.step_cycles.back()));
    for (std::size_t i = 0; i < std::min(kLongest, path.size()); ++i) {
        text += fmt::format("{}{} {}", i == 0 ? "" : ", ", path[i].name, grouped(path[i].cycles));
    }
    return text + "\n";
}

std::string cycles_text(const RunReport& report) {
    const PhaseCycles& cycles = report.cycles;
    TextTable phases({"phase", "cycles", "share"});
    phases.add({"forward", grouped(cycles.forward), share(cycles.forward, cycles.total)});
    phases.add({"backward", grouped(cycles.backward), share(cycles.backward, cycles.total)});
    phases.add({"update", grouped(cycles.update), share(cycles.update, cycles.total)});
    phases.add({"total", grouped(cycles.total), share(cycles.total, cycles.total)});
    std::string text = fmt::format("\nCycles of {}\n", counted(static_cast<std::int64_t>(report.steps), "step"));
    text += phases.text();

    TextTable classes(
        {"kernel class", "kernels", "forward", "backward", "update", "kernel cycles", "MACs", "critical path"});
    for (const ClassTotals& totals : report.classes) {
        if (totals.kernels > 0) {
            const auto& by_phase = totals.phase_cycles;
            classes.add({to_string(totals.kernel_class), grouped(totals.kernels), grouped(by_phase[0]),
                         grouped(by_phase[1]), grouped(by_phase[2]), grouped(totals.cycles), grouped(totals.macs),
                         grouped(totals.critical_cycles)});
        }
    }
    text += "\nKernels (kernels that run side by side count each; critical path: cycles in the last step)\n";
    text += classes.text();

    text += critical_path_text(report);
    const LowerBound& bound = report.bound;
    text += fmt::format(
        "\nNo schedule of a step takes less than {} cycles: MACs {}, vector {}, DRAM bytes {}, dependent chain {}; "
        "this "
        "one {:.3f} times as many\n",
        grouped(bound.cycles), grouped(bound.macs), grouped(bound.vector), grouped(bound.bytes), grouped(bound.chain),
        report.bound_ratio());
    return text;
}

std::string conflicts_text(const RunReport& report) {
    constexpr std::size_t kMost = 5;
    std::vector<RamAccesses> rams = report.ram_accesses;
    std::stable_sort(rams.begin(), rams.end(),
                     [](const auto& a, const auto& b) { return a.conflict_cycles > b.conflict_cycles; });
    std::string text;
    for (std::size_t i = 0; i < std::min(kMost, rams.size()) && rams[i].conflict_cycles > 0; ++i) {
        text += fmt::format("{}{} {}", i == 0 ? "" : ", ", rams[i].ram, grouped(rams[i].conflict_cycles));
    }
    return text.empty() ? text : "  most cycles with a bank accessed again: " + text + "\n";
}

std::string use_text(const RunReport& report) {
    const Utilisation& use = report.utilisation;
    std::string text = fmt::format(
        "\nUtilisation: PEs {}, engines {}, vector units {}, DMA {}, DRAM bus {}, ports {}\n", percent(use.pe),
        percent(use.engine), percent(use.vector), percent(use.dma), percent(use.dram_bus), percent(use.memory_ports));
    if (report.idle_pes.kernels > 0) {
        text += fmt::format(
            "Warning: {} contractions leave more than {} of their PEs idle ({} engine cycles); {} uses {}\n",
            grouped(report.idle_pes.kernels), percent(1 - kLowPeUse), grouped(report.idle_pes.busy_cycles),
            report.idle_pes.worst, percent(report.idle_pes.worst_use));
    }
    TextTable table(
        {"block", "busy", "dependency", "bank", "port", "write-back", "DRAM", "pipeline", "idle", "cycles"});
    for (const BlockAccount& block : report.blocks) {
        const auto stall = [&](const std::string& cause) {
            const auto found = std::find_if(block.stalls.begin(), block.stalls.end(),
                                            [&](const auto& entry) { return entry.first == cause; });
            return found == block.stalls.end() ? "" : grouped(found->second);
        };
        std::string dram = stall("dram");
        if (const std::string refresh = stall("refresh"); !refresh.empty()) {
            dram += ", refresh " + refresh;
        }
        table.add({block.name, grouped(block.busy), stall("dependency"), stall("bank"), stall("port"),
                   stall("write_back"), dram, stall("pipeline"), grouped(block.idle), grouped(block.cycles)});
    }
    text += "\nStalls by cause, in cycles of each block (DRAM: memory clock; its own stalls)\n";
    return text + table.text() + conflicts_text(report);
}

std::string resources_text(const RunReport& report) {
    TextTable table({"resources (estimate)", "DSP", "LUT", "FF", "BRAM36", "URAM"});
    const auto add = [&](const std::string& name, const Primitives& use) {
        const auto whole = [](double value) { return grouped(static_cast<std::uint64_t>(std::ceil(value))); };
        table.add({name, whole(use.dsp), whole(use.lut), whole(use.ff), whole(use.bram36), whole(use.uram)});
    };
    for (const std::string& part : report.resources.parts()) {
        add(part, report.resources.of_part(part));
    }
    const DeviceConfig& device = report.config.device;
    const Primitives total = report.resources.total();
    add("total", total);
    const auto of = [&](const char* name, std::int64_t dsps, std::int64_t luts, std::int64_t ffs, std::int64_t bram36,
                        std::int64_t urams) {
        const auto cell = [](double used, std::int64_t there) {
            return there == 0 ? "0"
                              : fmt::format("{} ({})", grouped(there), percent(used / static_cast<double>(there)));
        };
        table.add({name, cell(total.dsp, dsps), cell(total.lut, luts), cell(total.ff, ffs), cell(total.bram36, bram36),
                   cell(total.uram, urams)});
    };
    of("the shell leaves", device.available_dsps, device.available_luts, device.available_ffs, device.available_bram36,
       device.available_urams);
    of("chip", device.dsps, device.luts, device.ffs, device.bram36, device.urams);
    return "\n" + table.text();
}

std::string energy_text(const RunReport& report) {
    const auto joules = [](double value) { return with_prefix(value, "J"); };
    std::string text = fmt::format("\nEnergy (estimate): {}, of it", joules(report.energy.total()));
    const char* separator = " ";
    for (const char* group : kEnergyGroups) {
        text += fmt::format("{}{} {}", separator, group, joules(report.energy.of_group(group)));
        separator = ", ";
    }
    return text + fmt::format("; {} a step, {} an epoch of {} steps\n", joules(report.joules_per_step),
                              joules(report.joules_per_step * static_cast<double>(kEpochSentences)),
                              grouped(kEpochSentences));
}

std::string dram_text(const RunReport& report) {
    const DdrReport& ddr = report.ddr;
    return fmt::format("\nDRAM: {} reads, {}; {} writes, {}; {} row hits, {} misses; {} refreshes\n",
                       grouped(ddr.reads), bytes(static_cast<std::int64_t>(ddr.read_bytes)), grouped(ddr.writes),
                       bytes(static_cast<std::int64_t>(ddr.write_bytes)), grouped(ddr.sum.row_hits),
                       grouped(ddr.sum.row_misses), grouped(ddr.sum.refreshes()));
}

std::string losses_text(const RunReport& report) {
    if (!report.values) {
        return "\nLoss: not computed (values off)\n";
    }
    const std::size_t steps = report.outcomes.size();
    TextTable table({"step", "loss", "intent", "slot", "cycles"});
    for (std::size_t i = 0; i < steps; ++i) {
        if (steps > kListedLosses && i >= kLossesAtEnds && i + kLossesAtEnds < steps) {
            if (i == kLossesAtEnds) {
                table.add({"...", "...", "...", "...", "..."});
            }
            continue;
        }
        const StepOutcome& outcome = report.outcomes[i];
        table.add({std::to_string(i), fmt::format("{:.6f}", outcome.loss), fmt::format("{:.6f}", outcome.intent_loss),
                   fmt::format("{:.6f}", outcome.slot_loss), grouped(report.step_cycles[i])});
    }
    return "\nLoss\n" + table.text();
}

std::string data_text(const DataCounts& data) {
    if (data.unknown_words + data.unseen_slots + data.unseen_intents + data.cut_sentences == 0) {
        return "";
    }
    return fmt::format("  in the samples: {}, {}, {}, {}\n", counted(data.unknown_words, "unknown word"),
                       counted(data.unseen_slots, "unseen slot tag"), counted(data.unseen_intents, "unseen intent"),
                       counted(data.cut_sentences, "cut sentence"));
}

std::string speed_text(const RunReport& report) {
    const double here = report.steps == 0 ? 0 : report.host.seconds / static_cast<double>(report.steps);
    std::string text =
        fmt::format("\nA step takes {} on the FPGA (and {} of host link), {} here", with_prefix(report.latency_s, "s"),
                    with_prefix(report.host_link_s, "s"), with_prefix(here, "s"));
    if (report.latency_s > 0) {
        text += fmt::format(": {:.3g} times as long", here / report.latency_s);
    }
    return text + fmt::format(" ({} to start, {} of memory)\n", with_prefix(report.host.startup_seconds, "s"),
                              bytes(report.host.peak_rss_bytes));
}

}  // namespace

std::string memory_text(const Config& config, const MemoryReport& memory) {
    std::string text = network_text(config, memory);
    TextTable classes(
        {"tensors", "number", "bytes", "in LUTRAM", "in BRAM", "in URAM", "in DRAM", "BRAM36", "URAM", "bits used"});
    for (const ClassBytes& entry : memory.classes) {
        const auto on_chip = static_cast<double>(entry.bytes() - entry.dram_bytes) * 8;
        classes.add({to_string(entry.tensor_class), grouped(entry.tensors), bytes(entry.bytes()),
                     bytes(entry.lutram_bytes), bytes(entry.bram_bytes), bytes(entry.uram_bytes),
                     bytes(entry.dram_bytes), fmt::format("{:.1f}", entry.blocks.bram36),
                     fmt::format("{:.1f}", entry.blocks.urams),
                     entry.bits_occupied > 0 ? percent(on_chip / entry.bits_occupied) : "-"});
    }
    text += "\nMemory\n" + classes.text();
    TextTable blocks({"blocks", "used", "available", "chip", "of available"});
    const auto add = [&](const char* name, const BlockUse& use) {
        const std::string of =
            use.available == 0 ? "-" : percent(static_cast<double>(use.used) / static_cast<double>(use.available));
        blocks.add({name, grouped(use.used), grouped(use.available), grouped(use.chip), of});
    };
    add("BRAM36", memory.bram36);
    add("URAM", memory.uram);
    add("LUTs as RAM", memory.lutram_luts);
    text += "\n" + blocks.text();
    text += fmt::format(
        "  {} alive at most (in {}){}; {} of the blocks' bits hold words\n", bytes(memory.peak_on_chip_bytes),
        memory.peak_kernel, memory.shares_space ? ", tensors share space" : "",
        share(static_cast<std::uint64_t>(memory.bits_used), static_cast<std::uint64_t>(memory.bits_occupied)));
    if (memory.overflows.empty()) {
        text += fmt::format("  fits {}\n", config.device.name);
    }
    for (const std::string& line : memory.on_chip_overflows) {
        text += "  with everything on chip it would not fit: " + line + "\n";
    }
    if (memory.dram_bytes > 0) {
        text += fmt::format("  {} of DRAM for tensors, fetched and written back as kernels need them\n",
                            bytes(memory.dram_bytes));
    }
    for (const std::string& line : memory.overflows) {
        text += "  DOES NOT FIT: " + line + "\n";
    }
    return text;
}

std::string report_text(const RunReport& report) {
    return fmt::format("contraflow {}, {} mode\n\n", CONTRAFLOW_VERSION,
                       report.run_mode == RunMode::Leap ? "leap" : "clocked") +
           machine_text(report.config) + memory_text(report.config, report.memory) + cycles_text(report) +
           use_text(report) + dram_text(report) + resources_text(report) + energy_text(report) + losses_text(report) +
           data_text(report.data) + speed_text(report);
}

}  // namespace contraflow
