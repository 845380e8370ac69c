// contraflow run: trains on the simulated machine and reports what that took.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/build_run.h"
#include "cli/command_line.h"
#include "cli/option_values.h"
#include "config/effective.h"
#include "contraflow/error.h"
#include "contraflow/training_run.h"
#include "contraflow/weights.h"
#include "report/report_csv.h"
#include "report/report_json.h"
#include "report/report_text.h"
#include "report/result_folder.h"
#include "report/run_report.h"
#include "report/timeline.h"

namespace contraflow::cli {

namespace po = boost::program_options;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kProgressInterval{100};

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

struct RunOptions {
    std::size_t steps = 1;
    TrainingOptions training;
    std::optional<ResultFolder> out;
    std::string save, timeline;  // empty: not given
    bool json = false;
};

void refuse_inside(const std::string& out, const std::string& option, const std::string& file) {
    std::filesystem::path folder = std::filesystem::weakly_canonical(out);
    if (folder.filename().empty()) {
        folder = folder.parent_path();  // results/ is results
    }
    if (!file.empty() && std::filesystem::weakly_canonical(file).parent_path() == folder) {
        throw ConfigError("--" + option + " " + file + ": lies in --out " + out +
                          ", which is replaced as a whole; expected another folder");
    }
}

// Everything that can be wrong with the options is found here, before any work.
RunOptions read_options(const CommandLine& line) {
    RunOptions options;
    options.steps = parse_steps(line.text("steps"));
    options.training = read_training_options(line);
    options.save = line.text("save");
    options.json = line.has("json");
    if (line.has("save")) {
        if (!options.training.values) {
            throw ConfigError("--save " + options.save + ": nothing is trained with --values off");
        }
        check_writable_file(options.save, "--save " + options.save);
        refuse_other_file("save", options.save, "checkpoint", 9,
                          [](const std::string& start) { return start.back() == '{'; });
    }
    options.timeline = line.text("timeline");
    if (line.has("timeline")) {
        check_writable_file(options.timeline, "--timeline " + options.timeline);
        refuse_other_file("timeline", options.timeline, "timeline", kTimelineStart.size(),
                          [](const std::string& start) { return start == kTimelineStart; });
    }
    if (line.has("out")) {
        options.out.emplace(line.text("out"), line.has("force"));
        refuse_inside(line.text("out"), "save", options.save);
        refuse_inside(line.text("out"), "timeline", options.timeline);
    } else if (line.has("force")) {
        throw ConfigError("--force has no effect without --out DIR");
    }
    return options;
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

void save_parameters(const TrainingRun& run, const Config& config, const std::string& path) {
    try {
        save_weights(path, config, run.weights());
    } catch (const ConfigError& error) {  // it was writable before the run
        throw std::runtime_error(error.what());
    }
}

void write_results(const ResultFolder& folder, const RunReport& report) {
    folder.write({{"report.json", report_json(report).dump(2) + "\n"},
                  {"kernels.csv", kernels_csv(report)},
                  {"memory.csv", memory_csv(report.memory)},
                  {"memory_timeline.csv", memory_timeline_csv(report.memory)},
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
    syntax.options.add_options()(
        "out", text("DIR"), "write report.json, kernels.csv, memory.csv, memory_timeline.csv and effective.ini there");
    syntax.options.add_options()("force", "replace a result that DIR holds");
    syntax.options.add_options()("mode", text("leap|clocked")->default_value("leap"),
                                 "how time advances; the results are the same");
    syntax.options.add_options()("values", text("on|off")->default_value("on"),
                                 "off: count cycles without computing the values");
    syntax.options.add_options()("init", text("FILE"), "start from this checkpoint (safetensors)");
    syntax.options.add_options()("save", text("FILE"), "write the trained parameters as a checkpoint (safetensors)");
    syntax.options.add_options()("timeline", text("FILE"),
                                 "write the kernels as a timeline for Perfetto or chrome://tracing");
    syntax.options.add_options()("allow-overflow", "simulate a design that does not fit the device");
    syntax.options.add_options()("json", "print the report as JSON, and nothing else");
    const auto line = parse_command(args, syntax);
    if (!line) {
        return 0;
    }
    const RunOptions options = read_options(*line);
    const std::unique_ptr<TrainingRun> run = build_run(*line, options.training);
    const double startup_seconds = seconds_since(start);
    {
        Progress progress(options.steps);
        run->train(options.steps, [&](const StepOutcome&) { progress.step_done(); });
    }
    RunReport report = run->report();
    report.host.startup_seconds = startup_seconds;

    if (options.out) {
        write_results(*options.out, report);
    }
    if (!options.timeline.empty()) {
        write_file(options.timeline, run->timeline_json());
    }
    const auto lost = std::find_if(run->outcomes().begin(), run->outcomes().end(),
                                   [](const StepOutcome& step) { return !std::isfinite(step.loss); });
    const bool diverged = options.training.values && lost != run->outcomes().end();
    if (!options.save.empty() && !diverged) {
        save_parameters(*run, line->design.config, options.save);
    }
    std::cout << (options.json ? report_json(report).dump(2) + "\n" : report_text(report));
    if (diverged) {
        std::cout.flush();
        std::cerr << fmt::format("contraflow: the loss of step {} is not finite{}; a smaller train.lr may train\n",
                                 lost - run->outcomes().begin(), options.save.empty() ? "" : ", nothing is saved");
    }
    return diverged && !options.save.empty() ? 1 : 0;
}

}  // namespace contraflow::cli
