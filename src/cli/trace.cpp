// contraflow trace: a training step with its waveforms in a window of cycles.
#include <fmt/format.h>

#include <csignal>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/build_run.h"
#include "cli/command_line.h"
#include "cli/option_values.h"
#include "contraflow/error.h"
#include "contraflow/training_run.h"
#include "report/report_json.h"
#include "report/result_folder.h"
#include "report/run_report.h"

namespace contraflow::cli {

namespace po = boost::program_options;

namespace {

constexpr std::int64_t kMaxCycle = std::int64_t{1} << 53;
constexpr std::int64_t kMaxStep = 999'999;
constexpr int kInterrupted = 130;  // as shells report it

volatile std::sig_atomic_t interrupt_signal = 0;

extern "C" void note_interrupt(int signal) {
    interrupt_signal = signal;
}

CycleRange parse_cycles(const std::string& text) {
    const std::size_t colon = text.find(':');
    const auto first = parse_count(text.substr(0, colon));
    const auto last = colon == std::string::npos ? std::nullopt : parse_count(text.substr(colon + 1));
    if (!first || !last || *first > *last || *last > kMaxCycle) {
        throw ConfigError("--cycles " + text + ": expected FIRST:LAST, cycles as kernels.csv counts them");
    }
    return {static_cast<std::uint64_t>(*first), static_cast<std::uint64_t>(*last)};
}

TraceOptions read_options(const CommandLine& line) {
    TraceOptions options;
    if (!line.has("kernel") && !line.has("cycles")) {
        throw ConfigError("trace needs --kernel PATTERN or --cycles FIRST:LAST, or both");
    }
    if (!line.has("vcd")) {
        throw ConfigError("trace needs --vcd FILE");
    }
    options.vcd = line.text("vcd");
    options.gtkw = line.text("gtkw");
    options.kernels = line.text("kernel");
    if (line.has("kernel") && options.kernels.empty()) {
        throw ConfigError("--kernel: expected a pattern of kernel names");
    }
    if (line.has("cycles")) {
        options.cycles = parse_cycles(line.text("cycles"));
    }
    if (line.has("scope")) {
        options.scope = line.values["scope"].as<std::vector<std::string>>();
    }
    options.step = static_cast<std::uint32_t>(parse_count_option("step", line.text("step"), 0, kMaxStep));
    if (line.has("max-bytes")) {
        options.max_bytes = parse_count_option("max-bytes", line.text("max-bytes"), 1, kMaxCycle);
    }
    check_writable_file(options.vcd, "--vcd " + options.vcd);
    refuse_other_file("vcd", options.vcd, "VCD file", 1, [](const std::string& start) { return start == "$"; });
    if (line.has("gtkw")) {
        check_writable_file(options.gtkw, "--gtkw " + options.gtkw);
        refuse_other_file("gtkw", options.gtkw, "save file", 3,
                          [](const std::string& start) { return start == "[*]"; });
        if (options.gtkw == options.vcd) {
            throw ConfigError("--gtkw " + options.gtkw + ": is the file of --vcd; expected another name");
        }
    }
    options.interrupted = [] { return interrupt_signal != 0; };
    return options;
}

std::string summary_text(const TraceSummary& summary, const TraceOptions& options) {
    std::string text = fmt::format("{}: {} signals, {} cycles from {} to {}", options.vcd, summary.signals,
                                   summary.cycles, summary.first_cycle, summary.last_cycle);
    if (summary.windows > 1) {
        text += fmt::format(" in {} windows", summary.windows);
    }
    text += fmt::format(", {} bytes\n", summary.bytes);
    if (!options.gtkw.empty()) {
        text += fmt::format("{}: open it with gtkwave {}\n", options.gtkw, options.gtkw);
    }
    return text;
}

}  // namespace

int trace_command(const Arguments& args) {
    Syntax syntax;
    syntax.usage = "trace -c FILE --kernel PATTERN|--cycles FIRST:LAST --vcd FILE [--gtkw FILE] [options]";
    syntax.summary =
        "Runs training steps and writes the waveforms of a window: while kernels of a name run, in a range of cycles, "
        "or both\n"
        "(docs/waveforms.md).";
    syntax.takes_design = true;
    const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
    syntax.options.add_options()("kernel", text("PATTERN"), "while kernels of these names run; * and ? as in a shell");
    syntax.options.add_options()("cycles", text("FIRST:LAST"), "only these cycles, as kernels.csv counts them");
    syntax.options.add_options()("scope", po::value<std::vector<std::string>>()->value_name("PATTERN")->composing(),
                                 "only these signals or scopes, e.g. engine0, bram3, 'pe_*'; may be repeated");
    syntax.options.add_options()("vcd", text("FILE"), "the waveforms");
    syntax.options.add_options()("gtkw", text("FILE"), "a GTKWave save file that shows them");
    syntax.options.add_options()("step", text("N")->default_value("0"), "the training step, counted from 0");
    syntax.options.add_options()("max-bytes", text("N"), "end the trace, not the run, before the file is larger");
    syntax.options.add_options()("mode", text("leap|clocked")->default_value("leap"),
                                 "how time advances outside of the window; the results are the same");
    syntax.options.add_options()("values", text("on|off")->default_value("on"),
                                 "off: no values, and no accumulators to see");
    syntax.options.add_options()("init", text("FILE"), "start from this checkpoint (safetensors)");
    syntax.options.add_options()("allow-overflow", "simulate a design that does not fit the device");
    syntax.options.add_options()("json", "print the run's report as JSON, and nothing else");
    const auto line = parse_command(args, syntax);
    if (!line) {
        return 0;
    }
    const TraceOptions options = read_options(*line);
    const std::unique_ptr<TrainingRun> run = build_run(*line, read_training_options(*line));
    run->trace(options);
    std::signal(SIGINT, note_interrupt);
    std::signal(SIGTERM, note_interrupt);
    run->train(options.step + std::size_t{1});
    const TraceSummary summary = run->finish_trace();
    if (summary.full) {
        std::cerr << fmt::format("contraflow: note: --max-bytes {} ended the trace after {} cycles; the run went on\n",
                                 options.max_bytes, summary.cycles);
    }
    if (summary.interrupted) {
        std::cerr << fmt::format("contraflow: interrupted; {} holds {} cycles\n", options.vcd, summary.cycles);
        return kInterrupted;
    }
    std::cout << (line->has("json") ? report_json(run->report()).dump(2) + "\n" : summary_text(summary, options));
    return 0;
}

}  // namespace contraflow::cli
