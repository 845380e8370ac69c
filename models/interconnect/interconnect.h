// On-chip interconnect: grants memory ports to bursts.
//
// A client (engine, vector unit, DMA) asks for all the ports that one burst needs, with the length of the burst in
// cycles, which follows from the burst's own addresses. Requests are served in order of arrival (same edge: lower
// client first), all ports at once or none; a younger request may pass an older one only if it wants no memory that the
// older one waits for, so nobody starves. Arbitration takes one edge after the request: posted at edge e, granted at e
// + 1 at the earliest, first word moves at e + 2. A burst granted at edge g occupies its ports at edges g + 1 .. g +
// cycles; the next grant of them falls at g + cycles at the earliest, so bursts that wait follow each other without a
// gap. Data paths: each port delivers one row per bank and cycle to every member of the gang (broadcast). Not modelled:
// physical routing delay between distant banks (it would add pipeline registers, that is latency).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/mailbox.h"
#include "common/messages.h"

namespace contraflow {

class Interconnect : public Block {
public:
    struct Stats {
        std::uint64_t num_requests = 0;
        std::uint64_t num_grants = 0;
        std::uint64_t granted_port_cycles = 0;  // sum over grants of ports x cycles
        std::uint64_t busy_cycles = 0;          // edges at which something was granted
        std::uint64_t stall_port_cycles = 0;    // edges at which requests waited and none could be granted
    };

    // A burst's hold on a port: edges grant + 1 .. until.
    struct Hold {
        Cycle grant = 0, until = 0;  // none while until is 0
        std::uint16_t client = 0;    // first of its gang
        std::uint8_t channel = 0;

        [[nodiscard]] bool covers(Cycle edge) const { return grant < edge && edge <= until; }
    };

    using RequestIn = Mailbox<PortRequest, 4>;

    std::vector<std::unique_ptr<sc_core::sc_export<MailboxIf<PortRequest>>>> request_in;  // one per client
    std::vector<std::unique_ptr<sc_core::sc_port<MailboxIf<PortGrant>>>> grant_out;       // one per client

    Interconnect(const sc_core::sc_module_name& name, ClockDomain& clock, const std::vector<RamGeometry>& rams,
                 std::size_t num_clients);

    [[nodiscard]] const Stats& stats() const { return stats_; }
    [[nodiscard]] std::uint64_t num_requests_received() const;

    // For observers: who has a port at an edge (the present or the next one), the requests that wait, oldest first, and
    // the grants of the present edge.
    [[nodiscard]] const Hold* holder(RamId ram, int port, Cycle edge) const;
    [[nodiscard]] const std::vector<PortRequest>& waiting() const { return waiting_; }
    [[nodiscard]] bool granted(std::size_t client, std::uint8_t channel) const {
        return grants_[client][channel] == cycle() + 1;
    }

private:
    void edge() override;
    [[nodiscard]] Cycle next_event() const override;
    void advance(Cycle n) override;

    void take_requests();
    bool grant_waiting();
    [[nodiscard]] bool ports_free(const PortRequest& request) const;
    [[nodiscard]] bool claimed(const PortRequest& request) const;
    void grant(const PortRequest& request);

    std::vector<int> ram_ports_;                    // ports of each memory
    std::vector<std::array<Cycle, 2>> busy_until_;  // first edge at which a port may be granted again
    std::vector<std::uint32_t> claim_mark_;         // memories claimed by an older request, by arbitration round
    std::uint32_t round_ = 0;
    std::vector<std::unique_ptr<RequestIn>> requests_;       // by client
    std::vector<PortRequest> waiting_;                       // oldest first
    std::vector<std::array<std::array<Hold, 2>, 2>> holds_;  // by memory and port: the latest, and the one before
    std::vector<std::array<Cycle, 2>> grants_;               // by first client and channel: edge after the latest
    Stats stats_;
};

}  // namespace contraflow
