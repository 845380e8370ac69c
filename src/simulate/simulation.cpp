#include "contraflow/simulation.h"

#include <cstring>
#include <stdexcept>

#include "plan/planner.h"
#include "top/machine.h"
#include "trace/trace.h"

namespace contraflow {

struct Simulation::Planned : PlannedStep {
    explicit Planned(PlannedStep planned) : PlannedStep(std::move(planned)) {}
};

Simulation::Simulation(const Config& config, Step step, const SimulationOptions& options)
    : config_(config), options_(options) {
    PlanOptions plan_options;
    plan_options.keep_all = options.keep_all;
    plan_options.known = options.known;
    planned_ = std::make_unique<Planned>(plan_step(std::move(step), config_, plan_options));
    step_ = std::move(planned_->step);
    MachineOptions machine_options;
    machine_options.run_mode = options.run_mode;
    machine_options.values = options.values;
    machine_options.reversed = options.reversed_blocks;
    machine_ = std::make_unique<Machine>("top", config_, planned_->program, machine_options);
}

Simulation::~Simulation() = default;

const Plan& Simulation::plan() const {
    return planned_->plan;
}

const Program& Simulation::program() const {
    return planned_->program;
}

void Simulation::set(TensorId tensor, const std::vector<float>& values) {
    const Placement& placement = planned_->plan.placements[index_of(tensor)];
    if (static_cast<std::int64_t>(values.size()) != step_.tensor(tensor).words()) {
        throw std::invalid_argument("tensor " + step_.tensor(tensor).name + " has another number of words");
    }
    if (placement.in_dram()) {
        std::vector<float> copy = values;  // a TLM payload points to writable data
        machine_->host->access_dram(false, static_cast<std::uint64_t>(placement.dram_address), copy.data(),
                                    copy.size() * sizeof(float));
        return;
    }
    float* words = machine_->words(RamId{placement.ram});
    for (std::size_t i = 0; i < values.size(); ++i) {
        words[placement.address(static_cast<std::int64_t>(i))] = values[i];
    }
}

void Simulation::set(TensorId tensor, const std::vector<std::int32_t>& values) {
    std::vector<float> bits(values.size());
    std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
    set(tensor, bits);
}

std::vector<float> Simulation::get(TensorId tensor) const {
    const Placement& placement = planned_->plan.placements[index_of(tensor)];
    std::vector<float> values(static_cast<std::size_t>(step_.tensor(tensor).words()));
    if (placement.in_dram()) {
        machine_->host->access_dram(true, static_cast<std::uint64_t>(placement.dram_address), values.data(),
                                    values.size() * sizeof(float));
        return values;
    }
    const float* words = machine_->words(RamId{placement.ram});
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = words[placement.address(static_cast<std::int64_t>(i))];
    }
    return values;
}

void Simulation::set_sample(const Sample& sample) {
    set(step_.sample, HostDriver::sample_words(sample));
}

std::vector<StepOutcome> Simulation::run(const std::vector<Sample>& samples,
                                         const std::function<void(const StepOutcome&)>& on_step) {
    std::vector<StepOutcome> outcomes;
    machine_->host->on_step = [&](const HostStep& step) {
        outcomes.push_back({step.start, step.end, step.intent_loss, step.slot_loss, step.loss});
        if (on_step) {
            on_step(outcomes.back());
        }
    };
    machine_->run(samples);
    machine_->host->on_step = nullptr;
    return outcomes;
}

void Simulation::trace(const TraceOptions& options) {
    trace_ = std::make_unique<Trace>(*machine_, planned_->program, config_, options_.values, options);
}

TraceSummary Simulation::finish_trace() {
    return trace_->finish();
}

}  // namespace contraflow
