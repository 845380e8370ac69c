// One training run, as `contraflow run` does it: plan a design, simulate some steps, read the report.
//
//     const Config config = load_config("configs/tiny.ini", {{"tt.rank", "4"}}).config;
//     TrainingRun run(config, {});
//     run.train(10);
//     std::cout << run.report_json();
//
// One TrainingRun per process: SystemC elaborates once.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "contraflow/config.h"
#include "contraflow/dataset.h"
#include "contraflow/simulation.h"
#include "contraflow/weights.h"

namespace contraflow {

struct RunReport;

struct TrainingOptions {
    RunMode run_mode = RunMode::Leap;
    bool values = true;                  // off: cycles only, no arithmetic
    bool allow_overflow = false;         // simulate a design that does not fit the device
    KnownContractions* known = nullptr;  // as in SimulationOptions
};

class TrainingRun {
public:
    // Plans the design and builds the machine. The samples are those of config.data unless `data` is given, the
    // parameters initial_weights(config) unless `weights` are. Throws ConfigError with one line per problem,
    // DoesNotFit with one per kind of memory that the device lacks.
    TrainingRun(const Config& config, const TrainingOptions& options, std::optional<Dataset> data = std::nullopt,
                std::optional<Weights> weights = std::nullopt);
    ~TrainingRun();
    TrainingRun(const TrainingRun&) = delete;
    TrainingRun& operator=(const TrainingRun&) = delete;

    // Takes `steps` more training steps, calling `on_step` after each. Throws std::runtime_error if an invariant of the
    // machine breaks.
    void train(std::size_t steps, const std::function<void(const StepOutcome&)>& on_step = {});

    // Simulation::trace and finish_trace, before and after training.
    void trace(const TraceOptions& options);
    TraceSummary finish_trace();

    [[nodiscard]] const std::vector<StepOutcome>& outcomes() const;  // of all steps so far
    [[nodiscard]] const Plan& plan() const;
    [[nodiscard]] Weights weights() const;  // the parameters as they are now

    // Of all steps so far, at least one: the text of report.json, and the kernels as a timeline (docs/report.md).
    [[nodiscard]] std::string report_json() const;
    [[nodiscard]] std::string timeline_json() const;
    // The numbers behind them, for this program's own commands: report/run_report.h is not installed.
    [[nodiscard]] RunReport report() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace contraflow
