// contraflow run: trains on the simulated machine and reports what that took.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <fstream>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <systemc>
#include <vector>

#include "cli/command_line.h"
#include "config/effective.h"
#include "contraflow/dataset.h"
#include "contraflow/error.h"
#include "contraflow/simulation.h"
#include "contraflow/weights.h"
#include "report/report_csv.h"
#include "report/report_json.h"
#include "report/report_text.h"
#include "report/result_folder.h"
#include "report/run_report.h"

namespace contraflow::cli {

namespace po = boost::program_options;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMaxSteps = 1'000'000;  // their samples and kernel records are kept until the end
constexpr std::chrono::milliseconds kProgressInterval{100};

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

std::int64_t peak_rss_bytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return std::int64_t{usage.ru_maxrss} * 1024;
}

struct RunOptions {
    std::size_t steps = 1;
    SimulationOptions simulation;
    std::optional<ResultFolder> out;
    std::string init, save;  // empty: not given
    bool allow_overflow = false;
    bool json = false;
};

std::string text_of(const CommandLine& line, const std::string& option) {
    return line.has(option) ? line.values[option].as<std::string>() : "";
}

std::size_t parse_steps(const std::string& text) {
    std::int64_t steps = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), steps);
    if (error != std::errc{} || end != text.data() + text.size() || steps < 1 || steps > kMaxSteps) {
        throw ConfigError(fmt::format("--steps {}: expected a whole number from 1 to {}", text, kMaxSteps));
    }
    return static_cast<std::size_t>(steps);
}

// True for the first of the two words.
bool parse_either(const std::string& option, const std::string& text, const char* first, const char* second) {
    if (text != first && text != second) {
        throw ConfigError(fmt::format("--{} {}: expected {} or {}", option, text, first, second));
    }
    return text == first;
}

// A checkpoint replaces a checkpoint, but no file that is something else.
void refuse_other_file(const std::string& save) {
    std::ifstream file(save, std::ios::binary);
    if (!file || !std::filesystem::is_regular_file(save) || std::filesystem::file_size(save) == 0) {
        return;
    }
    char start[9] = {};
    file.read(start, sizeof start);
    if (file.gcount() != sizeof start || start[8] != '{') {
        throw ConfigError("--save " + save + ": exists and is no checkpoint; expected a new name or a checkpoint");
    }
}

void refuse_inside(const std::string& out, const std::string& save) {
    if (!save.empty() && std::filesystem::weakly_canonical(save).parent_path() ==
                             std::filesystem::weakly_canonical(std::filesystem::path(out) / ".").parent_path()) {
        throw ConfigError("--save " + save + ": lies in --out " + out +
                          ", which is replaced as a whole; expected another folder");
    }
}

// Everything that can be wrong with the options is found here, before any work.
RunOptions read_options(const CommandLine& line) {
    RunOptions options;
    options.steps = parse_steps(text_of(line, "steps"));
    options.simulation.run_mode =
        parse_either("mode", text_of(line, "mode"), "leap", "clocked") ? RunMode::Leap : RunMode::Clocked;
    options.simulation.values = parse_either("values", text_of(line, "values"), "on", "off");
    options.init = text_of(line, "init");
    options.save = text_of(line, "save");
    options.allow_overflow = line.has("allow-overflow");
    options.json = line.has("json");
    if (line.has("init") && options.init.empty()) {
        throw ConfigError("--init: expected the name of a checkpoint file");
    }
    if (line.has("save")) {
        if (!options.simulation.values) {
            throw ConfigError("--save " + options.save + ": nothing is trained with --values off");
        }
        check_writable_file(options.save, "--save " + options.save);
        refuse_other_file(options.save);
    }
    if (line.has("out")) {
        options.out.emplace(text_of(line, "out"), line.has("force"));
        refuse_inside(text_of(line, "out"), options.save);
    } else if (line.has("force")) {
        throw ConfigError("--force has no effect without --out DIR");
    }
    return options;
}

// A data set's problems name the key that led to them.
Dataset load_data(const LoadedConfig& design) {
    const DataConfig& data = design.config.data;
    try {
        return Dataset::load(design.config);
    } catch (const ConfigError& error) {
        const auto is_folder = [](const std::filesystem::path& path) {
            std::error_code ignored;
            return std::filesystem::is_directory(path, ignored);
        };
        const std::filesystem::path base = data.path;
        const std::string first_value = fmt::format("data.first = {} ", data.first);
        std::vector<std::string> lines;
        for (const std::string& line : error.lines()) {
            if (line.compare(0, first_value.size(), first_value) == 0) {
                lines.push_back(design.prefix("data.first") +
                                line.substr(first_value.size() - 1 - fmt::formatted_size("{}", data.first)));
            } else if (data.path.empty() || !is_folder(base / "train")) {
                lines.push_back(design.prefix("data.path") + line);
            } else if (!is_folder(base / data.split)) {
                lines.push_back(design.prefix("data.split") + line);
            } else {
                lines.push_back(line);
            }
        }
        throw ConfigError(lines);
    }
}

// Infos are about SystemC's own doings; warnings are the user's to see, but not on stdout; errors end the run.
void handle_report(const sc_core::sc_report& report, const sc_core::sc_actions&) {
    if (report.get_severity() == sc_core::SC_WARNING) {
        std::cerr << "contraflow: warning: " << report.get_msg() << '\n';
    } else if (report.get_severity() > sc_core::SC_WARNING) {
        throw sc_core::sc_report(report);
    }
}

class Progress {
public:
    explicit Progress(std::size_t steps) : steps_(steps), shown_(isatty(STDERR_FILENO) == 1) { show(); }
    ~Progress() {
        if (shown_) {
            std::cerr << "\r\x1b[K" << std::flush;
        }
    }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void step_done() {
        ++done_;
        if (shown_ && (Clock::now() - last_ >= kProgressInterval || done_ == steps_)) {
            show();
        }
    }

private:
    void show() {
        if (shown_) {
            last_ = Clock::now();
            std::cerr << fmt::format("\r\x1b[Ksimulating: {} of {} steps done", done_, steps_) << std::flush;
        }
    }

    std::size_t steps_;
    bool shown_;
    std::size_t done_ = 0;
    Clock::time_point last_;
};

void set_parameters(Simulation& simulation, const Weights& weights) {
    for (const auto& [name, values] : weights) {
        const TensorId tensor = simulation.step().find(name);
        if (tensor == kNoTensor) {
            throw std::logic_error("the step has no parameter " + name);
        }
        simulation.set(tensor, values);
    }
}

void save_parameters(const Simulation& simulation, const std::string& path) {
    Weights weights;
    for (const ParameterSpec& spec : parameter_specs(simulation.config())) {
        weights.emplace(spec.name, simulation.get(simulation.step().find(spec.name)));
    }
    try {
        save_weights(path, simulation.config(), weights);
    } catch (const ConfigError& error) {  // it was writable before the run
        throw std::runtime_error(error.what());
    }
}

// Runs the steps; a broken invariant of the machine becomes an error of one line (more if the machine is stuck).
std::vector<StepOutcome> simulate(Simulation& simulation, const std::vector<Sample>& samples) {
    std::size_t done = 0;
    Progress progress(samples.size());
    try {
        return simulation.run(samples, [&](const StepOutcome&) {
            ++done;
            progress.step_done();
        });
    } catch (const sc_core::sc_report& report) {
        const std::string where =
            report.get_process_name() == nullptr ? "" : fmt::format(" in {}", report.get_process_name());
        throw std::runtime_error(fmt::format("step {} of {} broke an invariant of the machine{}: {}", done,
                                             samples.size(), where, report.get_msg()));
    }
}

void write_results(const ResultFolder& folder, const RunReport& report) {
    folder.write({{"report.json", report_json(report).dump(2) + "\n"},
                  {"kernels.csv", kernels_csv(report)},
                  {"memory.csv", memory_csv(report.memory)},
                  {"effective.ini", effective_ini(report.config)}});
}

}  // namespace

int train_command(const Arguments& args) {
    const Clock::time_point start = Clock::now();
    Syntax syntax;
    syntax.usage = "run -c FILE [options]";
    syntax.summary =
        "Trains for a number of steps on the simulated machine, one sample a step, and reports cycles, stalls, "
        "memory,\n"
        "DRAM traffic, energy and losses (docs/report.md).";
    syntax.takes_design = true;
    const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
    syntax.options.add_options()("steps", text("N")->default_value("1"), "training steps");
    syntax.options.add_options()("out", text("DIR"),
                                 "write report.json, kernels.csv, memory.csv and effective.ini there");
    syntax.options.add_options()("force", "replace a result that DIR holds");
    syntax.options.add_options()("mode", text("leap|clocked")->default_value("leap"),
                                 "how time advances; the results are the same");
    syntax.options.add_options()("values", text("on|off")->default_value("on"),
                                 "off: count cycles without computing the values");
    syntax.options.add_options()("init", text("FILE"), "start from this checkpoint (safetensors)");
    syntax.options.add_options()("save", text("FILE"), "write the trained parameters as a checkpoint (safetensors)");
    syntax.options.add_options()("allow-overflow", "simulate a design that does not fit the device");
    syntax.options.add_options()("json", "print the report as JSON, and nothing else");
    const auto line = parse_command(args, syntax);
    if (!line) {
        return 0;
    }
    const RunOptions options = read_options(*line);
    const Config& config = line->design.config;
    Dataset data = load_data(line->design);
    const Weights weights = options.init.empty() ? initial_weights(config) : load_weights(options.init, config);

    sc_core::sc_report_handler::set_handler(handle_report);
    Simulation simulation(config, build_training_step(config), options.simulation);
    if (!simulation.plan().overflows.empty() && !options.allow_overflow) {
        std::vector<std::string> lines = simulation.plan().overflows;
        lines.back() += "; --allow-overflow simulates it anyway";
        throw ConfigError(lines);
    }
    set_parameters(simulation, weights);
    std::vector<Sample> samples;
    for (std::size_t i = 0; i < options.steps; ++i) {
        samples.push_back(data.sample(i));
    }

    RunFacts facts;
    facts.allow_overflow = options.allow_overflow;
    facts.data = data.counts(options.steps);
    facts.host.startup_seconds = seconds_since(start);
    const Clock::time_point begin = Clock::now();
    facts.outcomes = simulate(simulation, samples);
    facts.host.seconds = seconds_since(begin);
    facts.host.peak_rss_bytes = peak_rss_bytes();
    const RunReport report = make_run_report(simulation, facts);

    if (options.out) {
        write_results(*options.out, report);
    }
    const auto lost = std::find_if(facts.outcomes.begin(), facts.outcomes.end(),
                                   [](const StepOutcome& step) { return !std::isfinite(step.loss); });
    const bool diverged = options.simulation.values && lost != facts.outcomes.end();
    if (!options.save.empty() && !diverged) {
        save_parameters(simulation, options.save);
    }
    std::cout << (options.json ? report_json(report).dump(2) + "\n" : report_text(report));
    if (diverged) {
        std::cout.flush();
        std::cerr << fmt::format("contraflow: the loss of step {} is not finite{}; a smaller train.lr may train\n",
                                 lost - facts.outcomes.begin(), options.save.empty() ? "" : ", nothing is saved");
    }
    return diverged && !options.save.empty() ? 1 : 0;
}

}  // namespace contraflow::cli
