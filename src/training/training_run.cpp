#include "contraflow/training_run.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <systemc>

#include "contraflow/error.h"
#include "report/report_json.h"
#include "report/run_report.h"
#include "report/timeline.h"

namespace contraflow {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

std::int64_t peak_rss_bytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return std::int64_t{usage.ru_maxrss} * 1024;
}

SimulationOptions simulation_options(const TrainingOptions& options) {
    SimulationOptions result;
    result.run_mode = options.run_mode;
    result.values = options.values;
    result.known = options.known;
    return result;
}

}  // namespace

struct TrainingRun::Impl {
    Impl(const Config& config, const TrainingOptions& given, std::optional<Dataset> given_data)
        : options(given),
          data(given_data ? *std::move(given_data) : Dataset::load(config)),
          simulation(config, build_training_step(config), simulation_options(given)) {}

    void set_parameters(const Weights& weights) {
        for (const auto& [name, values] : weights) {
            const TensorId tensor = simulation.step().find(name);
            if (tensor == kNoTensor) {
                throw std::logic_error("the step has no parameter " + name);
            }
            simulation.set(tensor, values);
        }
    }

    Clock::time_point start = Clock::now();
    TrainingOptions options;
    Dataset data;
    Simulation simulation;
    std::vector<StepOutcome> outcomes;
    HostReport host;
};

TrainingRun::TrainingRun(const Config& config, const TrainingOptions& options, std::optional<Dataset> data,
                         std::optional<Weights> weights)
    : impl_(std::make_unique<Impl>(config, options, std::move(data))) {
    if (!plan().overflows.empty() && !options.allow_overflow) {
        throw DoesNotFit(plan().overflows);
    }
    if (weights) {
        impl_->set_parameters(*weights);
    } else if (options.values) {  // cycles do not depend on them
        impl_->set_parameters(initial_weights(config));
    }
    impl_->host.startup_seconds = seconds_since(impl_->start);
}

TrainingRun::~TrainingRun() = default;

void TrainingRun::train(std::size_t steps, const std::function<void(const StepOutcome&)>& on_step) {
    std::vector<StepOutcome>& outcomes = impl_->outcomes;
    const std::size_t before = outcomes.size();
    std::vector<Sample> samples;
    for (std::size_t i = 0; i < steps; ++i) {
        samples.push_back(impl_->data.sample(before + i));
    }
    const Clock::time_point begin = Clock::now();
    try {
        impl_->simulation.run(samples, [&](const StepOutcome& outcome) {
            outcomes.push_back(outcome);
            if (on_step) {
                on_step(outcome);
            }
        });
    } catch (const sc_core::sc_report& report) {
        const std::string where =
            report.get_process_name() == nullptr ? "" : fmt::format(" in {}", report.get_process_name());
        throw std::runtime_error(fmt::format("step {} of {} broke an invariant of the machine{}: {}", outcomes.size(),
                                             before + steps, where, report.get_msg()));
    }
    impl_->host.seconds += seconds_since(begin);
    impl_->host.peak_rss_bytes = peak_rss_bytes();
}

void TrainingRun::trace(const TraceOptions& options) {
    impl_->simulation.trace(options);
}

TraceSummary TrainingRun::finish_trace() {
    return impl_->simulation.finish_trace();
}

const std::vector<StepOutcome>& TrainingRun::outcomes() const {
    return impl_->outcomes;
}

const Plan& TrainingRun::plan() const {
    return impl_->simulation.plan();
}

Weights TrainingRun::weights() const {
    const Simulation& simulation = impl_->simulation;
    Weights weights;
    for (const ParameterSpec& spec : parameter_specs(simulation.config())) {
        weights.emplace(spec.name, simulation.get(simulation.step().find(spec.name)));
    }
    return weights;
}

RunReport TrainingRun::report() const {
    RunFacts facts;
    facts.allow_overflow = impl_->options.allow_overflow;
    facts.outcomes = impl_->outcomes;
    facts.data = impl_->data.counts(facts.outcomes.size());
    facts.host = impl_->host;
    return make_run_report(impl_->simulation, facts);
}

std::string TrainingRun::report_json() const {
    return contraflow::report_json(report()).dump(2) + "\n";
}

std::string TrainingRun::timeline_json() const {
    return contraflow::timeline_json(report(), impl_->simulation.step());
}

}  // namespace contraflow
