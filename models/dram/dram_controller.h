// DRAM controller and DRAM, in the memory's own clock domain, behind TLM-2.0 sockets.
//
// A transaction is one AXI burst, approximately timed: BEGIN_REQ is answered with END_REQ, BEGIN_RESP with
// TLM_COMPLETED. It is cut into bursts of the DRAM, which go to the channels that hold them; each channel takes at most
// one per memory cycle, in order, while its queues have room (DramChannel). The response leaves when the last byte has
// been moved. controller_ns passes on the way, half of it before the request enters and half behind the data; at an
// edge later than the time of arrival, as between all clocks. transport_dbg reads and writes without time: the host's
// link.
// Back-pressure: port_queue transactions may have bursts that are not in the queues yet. One more is answered with
// TLM_ACCEPTED and gets its END_REQ at the edge at which the last burst of another has entered; what happens at one
// time on both sides of the socket is seen one edge later, so that the order of processes does not matter.
#pragma once

#include <tlm_utils/simple_target_socket.h>
#include <deque>
#include <functional>
#include <queue>
#include <tlm>
#include <unordered_map>
#include <vector>

#include "common/mailbox.h"
#include "contraflow/config.h"
#include "dram/dram_channel.h"

namespace contraflow {

class DramController : public Block {
public:
    struct Stats {
        std::uint64_t num_reads = 0, num_writes = 0;  // transactions
        std::uint64_t read_bytes = 0, written_bytes = 0;
    };

    tlm_utils::simple_target_socket<DramController> dma_target;   // timed requests of the DMA
    tlm_utils::simple_target_socket<DramController> host_target;  // transport_dbg of the host link

    DramController(const sc_core::sc_module_name& name, ClockDomain& clock, const DramConfig& config);

    [[nodiscard]] const Stats& stats() const { return stats_; }
    [[nodiscard]] std::size_t num_channels() const { return lanes_.size(); }
    [[nodiscard]] const DramStats& channel_stats(std::size_t channel) const { return lanes_[channel].channel.stats(); }
    [[nodiscard]] DramStats sum_of_channels() const;
    [[nodiscard]] const DramDevice& device(std::size_t channel) const { return lanes_[channel].channel.device(); }
    [[nodiscard]] std::string state_text() const;

    // Called with every command of the memory; slows down idle stretches. Within a window of the clock the commands
    // come at their cycles, else when the controller makes up for them. Empty: no longer.
    using Observer = std::function<void(std::size_t channel, const DramChannel::IssuedCommand& command)>;
    void observe(const Observer& observer);

private:
    struct Arrival {
        tlm::tlm_generic_payload* payload = nullptr;
        std::uint64_t ps = 0;  // at the controller
    };
    // A transaction between its arrival and its response.
    struct Open {
        tlm::tlm_generic_payload* payload = nullptr;
        std::size_t pieces = 0;   // bursts of the DRAM that are not scheduled yet
        std::size_t outside = 0;  // bursts that are not in the queues yet
        Cycle done = 0;
    };
    struct Piece {
        std::size_t open = 0;  // index into open_
        std::uint64_t address = 0;
        std::uint32_t bytes = 0;
        bool write = false;
    };
    struct Lane {
        explicit Lane(const DramConfig& config) : channel(config) {}
        DramChannel channel;
        std::deque<Piece> waiting;  // for room in its queues
        Cycle head_since = kNever;  // since when the first of them has waited
    };
    struct Response {
        Cycle done = 0;
        std::uint64_t number = 0;  // of responses at one edge the one scheduled first goes first
        std::size_t open = 0;
        bool operator<(const Response& other) const {  // latest first, for std::priority_queue
            return done != other.done ? done > other.done : number > other.number;
        }
    };

    void edge() override;
    [[nodiscard]] Cycle next_event() const override;
    void advance(Cycle n) override;
    [[nodiscard]] bool has_work() const override { return observed_ || num_open_ != 0 || !arriving_.empty(); }

    tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& tlm_phase,
                                       sc_core::sc_time& delay);
    unsigned transport_dbg(tlm::tlm_generic_payload& payload);
    void take_arrivals();
    void admit_refused();
    void release();
    [[nodiscard]] bool port_is_full() const;
    void accept(tlm::tlm_generic_payload& payload);
    void run_lane(Lane& lane);
    void respond();
    void move_data(tlm::tlm_generic_payload& payload);
    [[nodiscard]] bool in_range(const tlm::tlm_generic_payload& payload) const;

    static constexpr std::size_t kPageBytes = 4096;

    DramConfig config_;
    bool observed_ = false;
    std::uint64_t request_ps_, response_ps_;  // the controller's share of the way
    Mailbox<Arrival, 256> requests_;
    Mailbox<Arrival, 1> refused_;  // waits for its END_REQ
    std::deque<Arrival> arriving_;
    std::size_t held_ = 0;           // transactions from END_REQ until their last burst is in a queue
    std::uint64_t released_ps_ = 0;  // when the latest ones left, and how many at that time
    std::size_t num_released_ = 0;
    std::vector<Open> open_;
    std::vector<std::size_t> free_;  // unused entries of open_
    std::size_t num_open_ = 0;
    std::vector<Lane> lanes_;  // by channel
    std::priority_queue<Response> responses_;
    std::uint64_t num_scheduled_ = 0;
    std::unordered_map<std::uint64_t, std::vector<unsigned char>> pages_;
    Stats stats_;
};

}  // namespace contraflow
