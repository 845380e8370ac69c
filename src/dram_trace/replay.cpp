#include "dram_trace/replay.h"

#include <algorithm>

namespace contraflow {

namespace {

class Player {
public:
    Player(const DramConfig& config, const std::vector<TraceRequest>& requests, const CommandObserver& observer)
        : config_(config), requests_(requests) {
        replay_.requests.resize(requests.size());
        channels_.reserve(static_cast<std::size_t>(config.channels));
        for (std::size_t i = 0; i < static_cast<std::size_t>(config.channels); ++i) {
            channels_.emplace_back(config);
            if (observer) {
                channels_.back().observe([i, &observer](const DramChannel::IssuedCommand& issued) {
                    observer({i, issued});
                });
            }
        }
    }

    Replay play() {
        Cycle next = 0;  // first cycle at which a request may enter
        for (std::size_t i = 0; i < requests_.size(); ++i) {
            next = enter(i, std::max(requests_[i].cycle, next)) + 1;
        }
        Cycle last = 0;
        for (DramChannel& channel : channels_) {
            while (!channel.idle()) {
                channel.tick(channel.next_event());
            }
            take_completions(channel);
            replay_.channels.push_back(channel.stats());
        }
        for (const ReplayedRequest& request : replay_.requests) {
            last = std::max(last, request.done);
        }
        replay_.total_cycles = requests_.empty() ? 0 : last - requests_.front().cycle;
        return std::move(replay_);
    }

private:
    // Returns the cycle at which the request entered, `from` at the earliest.
    Cycle enter(std::size_t index, Cycle from) {
        const TraceRequest& request = requests_[index];
        const ChannelAddress place = channel_of(config_, request.address);
        DramChannel& channel = channels_[place.channel];
        Cycle now = from;
        channel.tick(now);
        while (!channel.has_room(request.write)) {
            now = channel.next_event();
            channel.tick(now);
        }
        channel.count_full(now - from);
        channel.accept(index, place.address, static_cast<std::uint32_t>(config_.burst_bytes()), request.write, now);
        replay_.requests[index].accepted = now;
        take_completions(channel);
        return now;
    }

    void take_completions(DramChannel& channel) {
        for (const DramChannel::Completion& completion : channel.completions()) {
            replay_.requests[completion.id].done = completion.done;
        }
        channel.clear_completions();
    }

    const DramConfig& config_;
    const std::vector<TraceRequest>& requests_;
    std::vector<DramChannel> channels_;
    Replay replay_;
};

}  // namespace

DramStats Replay::sum() const {
    DramStats sum;
    for (const DramStats& channel : channels) {
        sum += channel;
    }
    return sum;
}

Replay replay(const DramConfig& config, const std::vector<TraceRequest>& requests, const CommandObserver& observer) {
    return Player(config, requests, observer).play();
}

}  // namespace contraflow
