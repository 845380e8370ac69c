// Replays requests on the channels of a DRAM alone: at most one enters per memory cycle, in order; one that finds its
// channel's queue full holds up all behind it. What is reported in cycles counts memory cycles.
#pragma once

#include <functional>
#include <vector>

#include "contraflow/config.h"
#include "dram/dram_channel.h"
#include "dram_trace/request_trace.h"

namespace contraflow {

struct ReplayedRequest {
    Cycle accepted = 0;
    Cycle done = 0;  // cycle after the last data beat
};

struct Replay {
    std::vector<ReplayedRequest> requests;  // as in the trace
    std::vector<DramStats> channels;
    Cycle total_cycles = 0;  // from the first request's cycle to the last one done

    [[nodiscard]] DramStats sum() const;
};

struct ReplayedCommand {
    std::size_t channel = 0;
    DramChannel::IssuedCommand issued;
};
using CommandObserver = std::function<void(const ReplayedCommand&)>;

[[nodiscard]] Replay replay(const DramConfig& config, const std::vector<TraceRequest>& requests,
                            const CommandObserver& observer = {});

}  // namespace contraflow
