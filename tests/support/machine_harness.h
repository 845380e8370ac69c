// Runs whole steps on the simulated machine and reduces a run to a list of named numbers, so that two runs can be
// compared number by number. One run per process: further ones go into child processes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "contraflow/config.h"
#include "contraflow/sample.h"
#include "contraflow/simulation.h"

namespace contraflow::test {

// Everything that can be counted or compared: start, end and cycles of every kernel, counters of every block and
// memory, losses as bits, and a hash of every tensor's bits.
using Observations = std::vector<std::pair<std::string, std::uint64_t>>;

struct MachineCase {
    Config config;
    SimulationOptions options;
    std::vector<Sample> samples;
    std::optional<TraceOptions> trace;  // waveforms on the way
};

// A design with keys replaced; configs/tiny.ini with keys replaced.
using Overrides = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] Config config_of(const std::string& ini_path, const Overrides& overrides);
[[nodiscard]] Config tiny_config(const Overrides& overrides);

// Random sentences that fit the configuration, drawn from train.seed.
[[nodiscard]] std::vector<Sample> random_samples(const Config& config, int count);

// Trains the samples from initial_weights(config) in this process. Throws std::runtime_error if an identity that
// holds in every run is broken: a block's cycles by cause sum to all cycles, a kernel's to its duration, as many
// requests arrive at the interconnect as were sent; and if SystemC made a report.
[[nodiscard]] Observations observe(const MachineCase& machine_case);
// The same in a child process, killed after `limit_seconds`. Throws ChildError.
[[nodiscard]] Observations observe_in_child(const MachineCase& machine_case, unsigned limit_seconds = 60);

// Runs the machine in a child and the plain interpreter of the step beside it; names the tensors whose bits differ.
// Space is not shared between tensors, whatever the options say.
[[nodiscard]] std::string difference_from_reference(MachineCase machine_case, unsigned limit_seconds = 60);

// The cycles alone: without losses and tensors.
[[nodiscard]] Observations without_values(const Observations& observations);
// Losses and tensors alone.
[[nodiscard]] Observations only_values(const Observations& observations);

// The first differences, one line each ("kernel 3 encoder.0.attn.q.fwd.U end: 120 and 121"); empty if equal.
[[nodiscard]] std::string differences(const Observations& left, const Observations& right);

}  // namespace contraflow::test
