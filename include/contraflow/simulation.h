// A planned step on the simulated machine: load tensors, run samples, read tensors, results and counters.
// One Simulation per process: SystemC elaborates once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "contraflow/config.h"
#include "contraflow/plan.h"
#include "contraflow/sample.h"
#include "contraflow/step.h"
#include "contraflow/trace.h"

namespace contraflow {

class Machine;
class Trace;
struct KnownContractions;

struct SimulationOptions {
    RunMode run_mode = RunMode::Clocked;
    bool values = true;                  // off: cycles only, no arithmetic
    bool keep_all = false;               // no two tensors share space, so that all can be read after a step
    bool reversed_blocks = false;        // instantiate the blocks in reverse order; nothing may change
    KnownContractions* known = nullptr;  // of this program's sweeps: saves time, changes nothing
};

struct StepOutcome {
    std::uint64_t start = 0, end = 0;  // fabric edges: doorbell and completion
    float intent_loss = 0, slot_loss = 0, loss = 0;
};

class Simulation {
public:
    Simulation(const Config& config, Step step, const SimulationOptions& options);
    ~Simulation();
    Simulation(const Simulation&) = delete;
    Simulation& operator=(const Simulation&) = delete;

    // The step as planned: with the transfers that tensors in DRAM need. Ids of the given step's tensors stay.
    [[nodiscard]] const Step& step() const { return step_; }
    [[nodiscard]] const Plan& plan() const;
    [[nodiscard]] const Program& program() const;
    [[nodiscard]] const Config& config() const { return config_; }
    [[nodiscard]] const SimulationOptions& options() const { return options_; }

    // Values of a tensor in row-major order; integers by bits. REQUIRES: as many values as the tensor has words.
    void set(TensorId tensor, const std::vector<float>& values);
    void set(TensorId tensor, const std::vector<std::int32_t>& values);
    [[nodiscard]] std::vector<float> get(TensorId tensor) const;
    // Puts a sample into the on-chip sample buffer, for steps without a DMA kernel that loads it.
    void set_sample(const Sample& sample);

    // Runs one training step per sample and returns their outcomes. May be called again.
    std::vector<StepOutcome> run(const std::vector<Sample>& samples,
                                 const std::function<void(const StepOutcome&)>& on_step = {});

    // Has waveforms written during the runs to come (docs/waveforms.md). REQUIRES: nothing has run, no other trace.
    // Throws ConfigError for options that match nothing.
    void trace(const TraceOptions& options);
    // Completes the files of the trace. Throws ConfigError if no cycle of the runs was to be traced, and then leaves no
    // file, std::runtime_error if one could not be written.
    TraceSummary finish_trace();

    [[nodiscard]] Machine& machine() { return *machine_; }
    [[nodiscard]] const Machine& machine() const { return *machine_; }

private:
    Config config_;
    Step step_;
    SimulationOptions options_;
    struct Planned;
    std::unique_ptr<Planned> planned_;
    std::unique_ptr<Machine> machine_;
    std::unique_ptr<Trace> trace_;
};

}  // namespace contraflow
