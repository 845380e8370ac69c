// DRAM controller and DRAM, in the memory's own clock domain, behind TLM-2.0 sockets.
//
// A request is one AXI burst (nb_transport: BEGIN_REQ answered with END_REQ, BEGIN_RESP answered with TLM_COMPLETED).
// Requests are served in order of arrival per channel; addresses interleave over the channels by 512 bytes. The first
// data beat follows nRCD + nCL cycles after acceptance, then a burst of burst_length beats every burst_length / 2
// cycles. Every nREFI cycles, the first at nREFI after reset, the channel stops for nRFC cycles. transport_dbg reads
// and writes without time: the host's side of the link. Approximation: row-agnostic. Every request pays the activation
// of a closed row and none pays a precharge: too slow for row hits by nRCD on the first word of a request, too fast for
// row conflicts by nRP. Data-bus limits are exact for one stream; bank-group limits (tCCD_L) are not modelled:
// sequential streams on DDR4 without bank-group interleaving are up to a third too fast.
#pragma once

#include <tlm_utils/simple_target_socket.h>
#include <deque>
#include <memory>
#include <tlm>
#include <unordered_map>
#include <vector>

#include "common/mailbox.h"
#include "contraflow/config.h"

namespace contraflow {

class DramController : public Block {
public:
    struct Stats {
        std::uint64_t num_reads = 0, num_writes = 0;  // requests
        std::uint64_t read_bytes = 0, written_bytes = 0;
        std::uint64_t busy_cycles = 0;           // data-bus cycles, all channels
        std::uint64_t stall_refresh_cycles = 0;  // data-bus cycles that requests waited for a refresh
    };

    tlm_utils::simple_target_socket<DramController> dma_target;   // timed requests of the DMA
    tlm_utils::simple_target_socket<DramController> host_target;  // transport_dbg of the host link

    DramController(const sc_core::sc_module_name& name, ClockDomain& clock, const DramConfig& config);

    [[nodiscard]] const Stats& stats() const { return stats_; }
    // Refreshes that were due until a time, all channels.
    [[nodiscard]] std::uint64_t num_refreshes(std::uint64_t until_ps) const;
    [[nodiscard]] std::string state_text() const;

private:
    struct Pending {
        tlm::tlm_generic_payload* payload = nullptr;
        Cycle done = 0;
    };

    void edge() override;
    [[nodiscard]] Cycle next_event() const override;
    void advance(Cycle n) override;
    [[nodiscard]] bool has_work() const override { return !pending_.empty(); }

    tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& tlm_phase,
                                       sc_core::sc_time& delay);
    unsigned transport_dbg(tlm::tlm_generic_payload& payload);
    void accept(tlm::tlm_generic_payload& payload);
    void move_data(tlm::tlm_generic_payload& payload);
    [[nodiscard]] bool in_range(const tlm::tlm_generic_payload& payload) const;

    static constexpr std::size_t kPageBytes = 4096;
    static constexpr std::size_t kInterleaveBytes = 512;

    DramConfig config_;
    Mailbox<tlm::tlm_generic_payload*, 256> requests_;
    std::vector<Cycle> bus_free_;   // by channel
    std::vector<Pending> pending_;  // in order of acceptance
    std::unordered_map<std::uint64_t, std::vector<unsigned char>> pages_;
    Stats stats_;
};

}  // namespace contraflow
