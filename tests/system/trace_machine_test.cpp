// Traces of whole runs of random machines: what is counted in the waveform is what the machine counted, and a trace
// changes nothing.
#include <fmt/format.h>

#include <fnmatch.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <string>

#include "contraflow/simulation.h"
#include "contraflow/weights.h"
#include "process/child_process.h"
#include "random_design.h"
#include "support/temporary_folder.h"
#include "support/vcd_reader.h"
#include "top/machine.h"

using namespace contraflow;
using namespace contraflow::test;

namespace {

using Counts = std::map<std::string, std::uint64_t>;

void compare(std::string& problems, const Counts& waveform, const Counts& machine) {
    for (const auto& [name, count] : machine) {
        const auto found = waveform.find(name);
        const std::uint64_t seen = found == waveform.end() ? 0 : found->second;
        if (seen != count) {
            problems += fmt::format("{}: {} in the waveform, {} in the machine\n", name, seen, count);
        }
    }
}

void add_activities(Counts& counts, const std::string& unit, const UnitCycles& cycles) {
    counts[unit + ".busy"] += cycles.busy;
    counts[unit + ".dependency"] += cycles.dependency;
    counts[unit + ".bank"] += cycles.bank;
    counts[unit + ".port"] += cycles.port;
    counts[unit + ".write_back"] += cycles.write_back;
    counts[unit + ".dram"] += cycles.dram;
    counts[unit + ".pipeline"] += cycles.pipeline;
}

Counts counts_of(const Simulation& simulation) {
    Counts counts;
    const Machine& machine = simulation.machine();
    for (std::size_t i = 0; i < machine.engines.size(); ++i) {
        add_activities(counts, fmt::format("engine{}", i), machine.engines[i]->stats().cycles);
    }
    for (std::size_t i = 0; i < machine.vector_units.size(); ++i) {
        add_activities(counts, fmt::format("vector{}", i), machine.vector_units[i]->stats().cycles);
    }
    add_activities(counts, "dma", machine.dma->stats().cycles);
    counts["dma.bursts"] = machine.dma->stats().num_bursts;
    const DramStats dram = machine.dram->sum_of_channels();
    for (std::size_t i = 0; i < kNumDramCommands; ++i) {
        counts[std::string("dram.") + to_string(static_cast<DramCommand>(i))] = dram.commands[i];
    }
    counts["grants"] = machine.interconnect->stats().num_grants;
    counts["kernels"] = machine.sequencer->stats().num_issued;
    for (std::uint32_t i = 0; i < simulation.program().rams.size(); ++i) {
        const RamStats& stats = machine.ram_stats(RamId{i});
        const std::string name = simulation.program().rams[i].name;
        counts[name + ".reads"] = stats.num_row_reads;
        counts[name + ".writes"] = stats.num_row_writes;
    }
    return counts;
}

Counts counts_of(const std::string& vcd, const Simulation& simulation) {
    Counts counts;
    VcdReader reader(vcd);
    std::vector<std::string> units{"dma"};
    for (const std::string& name : reader.names) {
        const std::string scope = name.substr(4, name.find('.', 4) - 4);
        if (name == "top." + scope + ".activity" && scope != "dma") {
            units.push_back(scope);
        }
    }
    struct BankPort {
        std::string en, we, ram;
    };
    std::vector<BankPort> ports;
    std::vector<std::string> grants, commands;
    for (const std::string& name : reader.names) {
        if (name.size() > 3 && name.substr(name.size() - 3) == "_en") {
            for (const RamGeometry& ram : simulation.program().rams) {
                if (name.find("." + ram.name + ".") != std::string::npos) {
                    ports.push_back({name, name.substr(0, name.size() - 3) + "_we", ram.name});
                }
            }
        } else if (name.find("_command") != std::string::npos) {
            commands.push_back(name);
        } else if (name.size() > 6 && name.substr(name.size() - 6) == "_grant") {
            grants.push_back(name);
        }
    }
    reader.for_each_edge("top.clk", [&](const VcdReader&) {
        for (const std::string& unit : units) {
            ++counts[unit + "." + reader.value("top." + unit + ".activity")];
        }
        for (const BankPort& port : ports) {
            if (reader.value(port.en) == "1") {
                ++counts[port.ram + (reader.value(port.we) == "1" ? ".writes" : ".reads")];
            }
        }
        for (const std::string& grant : grants) {
            counts["grants"] += reader.value(grant) == "1" ? 1 : 0;
        }
        counts["dma.bursts"] += reader.value("top.dma.dram_request") == "1" ? 1 : 0;
        counts["kernels"] += reader.value("top.sequencer.issue") == "1" ? 1 : 0;
    });
    VcdReader(vcd).for_each_edge("top.clk_mem", [&](const VcdReader& dram) {
        for (const std::string& command : commands) {
            ++counts["dram." + dram.value(command)];
        }
    });
    return counts;
}

void train(Simulation& simulation, const std::vector<Sample>& samples) {
    if (simulation.options().values) {
        for (const auto& [name, values] : initial_weights(simulation.config())) {
            simulation.set(simulation.step().find(name), values);
        }
    }
    simulation.run(samples);
}

// What is wrong with a trace of one whole step.
std::string check_counts(const Overrides& design) {
    return run_in_child(
        [&] {
            const MachineCase machine_case = case_of(design);
            const TemporaryFolder folder;
            Simulation simulation(machine_case.config, build_training_step(machine_case.config), machine_case.options);
            TraceOptions options;
            options.vcd = folder.file("all.vcd");
            options.cycles = CycleRange{0, 1'000'000'000};
            options.scope = {"clk",   "clk_mem", "activity", "dram_request", "*_grant",
                             "issue", "lutram",  "bram",     "uram",         "dram"};
            simulation.trace(options);
            train(simulation, {machine_case.samples.front()});
            (void)simulation.finish_trace();
            std::string problems;
            compare(problems, counts_of(options.vcd, simulation), counts_of(simulation));
            return problems;
        },
        120);
}

// What is wrong with traces of a few kernels: a trace may change nothing, and the cycles inside its windows are those
// of a machine that takes every edge anyway.
std::string check_windows(const Overrides& design, const std::string& kernels, std::optional<CycleRange> cycles) {
    const TemporaryFolder folder;
    MachineCase machine_case = case_of(design);
    machine_case.options.run_mode = RunMode::Leap;
    const Observations untraced = observe_in_child(machine_case);
    TraceOptions options;
    options.vcd = folder.file("leap.vcd");
    options.kernels = kernels;
    options.cycles = cycles;
    options.step = 1;
    options.scope = {"*"};
    machine_case.trace = options;
    std::string problems = differences(untraced, observe_in_child(machine_case));
    machine_case.options.run_mode = RunMode::Clocked;
    machine_case.trace->vcd = folder.file("clocked.vcd");
    problems += differences(untraced, observe_in_child(machine_case));
    const std::string leap = read_bytes(options.vcd);
    const std::string clocked = read_bytes(machine_case.trace->vcd);
    if (leap != clocked || leap.empty()) {
        const auto [left, right] = std::mismatch(leap.begin(), leap.end(), clocked.begin(), clocked.end());
        problems += fmt::format("the waveforms differ at byte {} of {} and {}\n", left - leap.begin(), leap.size(),
                                clocked.size());
    }
    return problems;
}

void check_designs(std::uint64_t first_seed, std::uint64_t count) {
    for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
        const Overrides design = random_design(seed);
        INFO("seed " << seed << ": configs/tiny.ini with\n" << ini_of(design));
        CHECK(check_counts(design) == "");
    }
}

}  // namespace

TEST_CASE("edges counted in the waveform are the machine's counters in random designs 1 to 10") {
    check_designs(1, 10);
}

TEST_CASE("edges counted in the waveform are the machine's counters in random designs 11 to 20") {
    check_designs(11, 10);
}

TEST_CASE(
    "a trace changes no counter or bit, and a window in a leap run is what clocked shows, random designs 1 to 12") {
    const std::vector<std::string> patterns{
        "encoder.0.attn.q.fwd*", "*.bwd.*", "*.upd", "encoder.0.ffn*.Y", "embed*", "loss*", "*.fwd.softmax*"};
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        const Overrides design = random_design(seed);
        INFO("seed " << seed << ": configs/tiny.ini with\n" << ini_of(design));
        bool found = false;
        const Step step = build_training_step(case_of(design).config);
        for (std::size_t i = 0; i < patterns.size() && !found; ++i) {
            const std::string& pattern = patterns[(seed + i) % patterns.size()];
            found = std::any_of(step.kernels.begin(), step.kernels.end(), [&](const Kernel& kernel) {
                return fnmatch(pattern.c_str(), kernel.name.c_str(), 0) == 0;
            });
            if (found) {
                INFO(pattern);
                CHECK(check_windows(design, pattern, std::nullopt) == "");
            }
        }
        CHECK(found);
    }
}

TEST_CASE("a window of cycles cuts kernels in the middle") {
    for (std::uint64_t seed = 21; seed <= 26; ++seed) {
        const Overrides design = random_design(seed);
        INFO("seed " << seed << ": configs/tiny.ini with\n" << ini_of(design));
        const Observations untraced = observe_in_child(case_of(design));
        std::uint64_t end = 0;  // of the run
        for (const auto& [name, value] : untraced) {
            end = name.find("end") != std::string::npos ? std::max(end, value) : end;
        }
        CHECK(check_windows(design, "", CycleRange{end * 3 / 4, end * 3 / 4 + 321}) == "");
    }
}
