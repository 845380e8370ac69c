// The machine that `run` and `trace` train on.
#pragma once

#include <memory>

#include "cli/command_line.h"
#include "contraflow/training_run.h"

namespace contraflow::cli {

// --mode, --values and --allow-overflow. Throws ConfigError, also for an --init without a name.
[[nodiscard]] TrainingOptions read_training_options(const CommandLine& line);

// With the design's data and the parameters of --init, if it is given. SystemC's reports go to stderr from here on.
// Throws ConfigError.
[[nodiscard]] std::unique_ptr<TrainingRun> build_run(const CommandLine& line, const TrainingOptions& options);

}  // namespace contraflow::cli
