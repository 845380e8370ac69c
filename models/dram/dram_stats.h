// What one DRAM channel counts.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "common/cycle.h"
#include "dram/dram_device.h"

namespace contraflow {

// How often each latency occurred.
class LatencyCounts {
public:
    void add(Cycle latency) {
        if (latency >= counts_.size()) {
            counts_.resize(latency + 1, 0);
        }
        ++counts_[latency];
    }
    void add(const LatencyCounts& other);

    [[nodiscard]] std::uint64_t total() const;
    [[nodiscard]] double mean() const;  // 0 if there is none
    // The smallest latency that at least `share` of all are not above; 0 if there is none.
    [[nodiscard]] Cycle percentile(double share) const;
    [[nodiscard]] Cycle max() const { return counts_.empty() ? 0 : counts_.size() - 1; }

private:
    std::vector<std::uint64_t> counts_;  // by latency
};

struct DramStats {
    std::uint64_t reads = 0, writes = 0;  // bursts
    std::uint64_t read_bytes = 0, written_bytes = 0;
    std::array<std::uint64_t, kNumDramCommands> commands{};  // by DramCommand
    // Of the column commands: to a row that another had used since it was opened; to a freshly opened one; and of the
    // latter those whose bank held another row before.
    std::uint64_t row_hits = 0, row_misses = 0, row_conflicts = 0;
    std::uint64_t busy_cycles = 0;           // of the data bus
    std::uint64_t stall_refresh_cycles = 0;  // requests waited for a refresh, the data bus was idle
    std::uint64_t stall_timing_cycles = 0;   // requests were in the channel, the data bus was idle for another reason
    std::uint64_t stall_full_cycles = 0;     // a request found no room in the queues (beside the above)
    // Of reads, from acceptance to the cycle after the last beat: until the first command for it, and from there.
    LatencyCounts latency;
    std::uint64_t queueing_cycles = 0, service_cycles = 0;

    [[nodiscard]] std::uint64_t count(DramCommand command) const { return commands[static_cast<std::size_t>(command)]; }
    [[nodiscard]] std::uint64_t refreshes() const { return count(DramCommand::Ref); }
    // Cycles per read; 0 if there is none.
    [[nodiscard]] double mean_queueing() const { return per_read(queueing_cycles); }
    [[nodiscard]] double mean_service() const { return per_read(service_cycles); }
    DramStats& operator+=(const DramStats& other);

private:
    [[nodiscard]] double per_read(std::uint64_t sum) const {
        return reads == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(reads);
    }
};

}  // namespace contraflow
