#include "report/dram_report.h"

namespace contraflow {

double dram_bandwidth(const DramStats& stats, const DramConfig& config, Cycle cycles) {
    const double bytes = static_cast<double>(stats.reads + stats.writes) * config.burst_bytes();
    return cycles == 0 ? 0 : bytes / (static_cast<double>(cycles) / static_cast<double>(config.clock_hz));
}

double dram_share_of_peak(const DramStats& stats, Cycle cycles, int channels) {
    return cycles == 0 ? 0 : static_cast<double>(stats.busy_cycles) / (static_cast<double>(cycles) * channels);
}

nlohmann::ordered_json dram_json(const DramStats& stats, const DramConfig& config, Cycle cycles, int channels) {
    nlohmann::ordered_json json;
    json["reads"] = stats.reads;
    json["writes"] = stats.writes;
    json["read_bytes"] = stats.read_bytes;
    json["write_bytes"] = stats.written_bytes;
    json["row_hits"] = stats.row_hits;
    json["row_misses"] = stats.row_misses;
    json["row_conflicts"] = stats.row_conflicts;
    json["refreshes"] = stats.refreshes();
    for (std::size_t i = 0; i < kNumDramCommands; ++i) {
        json["commands"][to_string(static_cast<DramCommand>(i))] = stats.commands[i];
    }
    json["bandwidth_gb_per_s"] = dram_bandwidth(stats, config, cycles) * 1e-9;
    json["percent_of_peak"] = dram_share_of_peak(stats, cycles, channels) * 100;
    json["bus_busy_cycles"] = stats.busy_cycles;
    json["stalls"] = {{"refresh", stats.stall_refresh_cycles},
                      {"timing", stats.stall_timing_cycles},
                      {"queue_full", stats.stall_full_cycles}};
    json["read_latency_cycles"] = {{"mean", stats.latency.mean()},           {"p50", stats.latency.percentile(0.5)},
                                   {"p99", stats.latency.percentile(0.99)},  {"max", stats.latency.max()},
                                   {"queueing_mean", stats.mean_queueing()}, {"service_mean", stats.mean_service()}};
    return json;
}

}  // namespace contraflow
