// The machine that `run` and `trace` train on.
#pragma once

#include <memory>

#include "contraflow/dataset.h"
#include "contraflow/load_config.h"
#include "contraflow/training_run.h"
#include "contraflow/weights.h"

namespace contraflow::cli {

// SystemC's reports go to stderr from here on. Throws ConfigError.
[[nodiscard]] std::unique_ptr<TrainingRun> build_run(const LoadedConfig& design, const TrainingOptions& options,
                                                     Dataset data, Weights weights);

}  // namespace contraflow::cli
