// The figures of DRAM channels as JSON: of a training run and of a replayed trace alike.
#pragma once

#include <nlohmann/json.hpp>

#include "contraflow/config.h"
#include "dram/dram_stats.h"

namespace contraflow {

// `cycles` memory cycles passed on each of `channels` channels, whose sum `stats` is.
[[nodiscard]] nlohmann::ordered_json dram_json(const DramStats& stats, const DramConfig& config, Cycle cycles,
                                               int channels);

// Bytes that bursts moved over the data bus per second, and what share of the peak that is.
[[nodiscard]] double dram_bandwidth(const DramStats& stats, const DramConfig& config, Cycle cycles);
[[nodiscard]] double dram_share_of_peak(const DramStats& stats, Cycle cycles, int channels);

}  // namespace contraflow
