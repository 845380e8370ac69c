#include "dram/dram_stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace contraflow {

void LatencyCounts::add(const LatencyCounts& other) {
    if (other.counts_.size() > counts_.size()) {
        counts_.resize(other.counts_.size(), 0);
    }
    for (std::size_t i = 0; i < other.counts_.size(); ++i) {
        counts_[i] += other.counts_[i];
    }
}

std::uint64_t LatencyCounts::total() const {
    return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

double LatencyCounts::mean() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        sum += i * counts_[i];
    }
    const std::uint64_t count = total();
    return count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count);
}

Cycle LatencyCounts::percentile(double share) const {
    const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(total())));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        seen += counts_[i];
        if (seen >= std::max<std::uint64_t>(wanted, 1)) {
            return i;
        }
    }
    return 0;
}

DramStats& DramStats::operator+=(const DramStats& other) {
    reads += other.reads;
    writes += other.writes;
    read_bytes += other.read_bytes;
    written_bytes += other.written_bytes;
    for (std::size_t i = 0; i < commands.size(); ++i) {
        commands[i] += other.commands[i];
    }
    row_hits += other.row_hits;
    row_misses += other.row_misses;
    row_conflicts += other.row_conflicts;
    busy_cycles += other.busy_cycles;
    stall_refresh_cycles += other.stall_refresh_cycles;
    stall_timing_cycles += other.stall_timing_cycles;
    stall_full_cycles += other.stall_full_cycles;
    latency.add(other.latency);
    queueing_cycles += other.queueing_cycles;
    service_cycles += other.service_cycles;
    return *this;
}

}  // namespace contraflow
