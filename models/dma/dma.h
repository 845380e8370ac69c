// DMA engine: moves words between DRAM (TLM-2.0 initiator socket) and on-chip memory (interconnect).
//
// A transfer is cut into AXI bursts of dma.burst_beats x dma.beat_bytes, or of what the memory's port takes if that is
// less, that do not cross a 4 KB boundary. One request leaves per cycle, at most dma.outstanding are in flight. To the
// chip: request, data, then a port burst that writes one AXI beat per cycle (longer if its words share a bank). From
// the chip: a port burst, request, response. Latency beside the memory's: the adapter's cycles before a request and
// after a response, and half of interconnect_ns each way; a crossing ends at the first edge later than the time.
// While the DRAM has not taken a request (no END_REQ) no other leaves.
// Rows of a transfer are bursts of their own. Where tokens choose the rows, their ids are read first, one word per
// cycle.
#pragma once

#include <tlm_utils/simple_initiator_socket.h>
#include <deque>
#include <memory>
#include <string>
#include <tlm>
#include <vector>

#include "common/access_cost.h"
#include "common/burst_accesses.h"
#include "common/mailbox.h"
#include "common/memory_ports.h"
#include "common/messages.h"

namespace contraflow {

class Dma : public Block, public tlm::tlm_mm_interface {
public:
    struct Config {
        DmaConfig dma;
        int port_burst_bytes = 4096;  // longest burst of the memory's port
        const Program* program = nullptr;
        int client = 0;  // its number at the interconnect
    };

    struct Stats {
        UnitCycles cycles;
        std::uint64_t idle_cycles = 0;
        std::uint64_t num_kernels = 0;
        std::uint64_t num_bursts = 0;
        std::uint64_t read_bytes = 0, written_bytes = 0;          // of the DRAM
        std::uint64_t num_words_read = 0, num_words_written = 0;  // of on-chip memory
        std::uint64_t num_requests = 0;
    };

    // What the latest edge shows, for waveforms.
    struct Observation {
        Activity activity = Activity::Idle;
        bool active = false, to_chip = true;
        std::uint32_t kernel = 0;
        std::size_t in_flight = 0, completed = 0;  // AXI bursts
        bool sends = false;                        // a request left for the DRAM
        std::uint64_t address = 0;                 // of the latest request
        std::size_t bytes = 0;
        BurstView burst;  // the latest at the memory's port
    };

    sc_core::sc_export<MailboxIf<KernelStart>> start_in;     // kernel commands, from the sequencer
    sc_core::sc_export<MailboxIf<PortGrant>> grant_in;       // port grants, from the interconnect
    sc_core::sc_port<MailboxIf<PortRequest>> request_out;    // port requests, to the interconnect
    sc_core::sc_port<MailboxIf<KernelDone>> done_out;        // completion, to the sequencer
    tlm_utils::simple_initiator_socket<Dma> dram_initiator;  // AXI bursts, to the DRAM controller
    MemoryPorts memory;                                      // words of granted ports

    Dma(const sc_core::sc_module_name& name, ClockDomain& clock, const Config& config);

    [[nodiscard]] const Stats& stats() const { return stats_; }
    [[nodiscard]] std::string state_text() const;

    [[nodiscard]] Observation observe() const;
    // What the latest port burst does at its port.
    void list_burst(AccessCounter& counter, BurstAccesses& accesses) const;

    // tlm_mm_interface: a payload whose last reference is gone goes back to the pool.
    void free(tlm::tlm_generic_payload* payload) override;

private:
    struct Burst {
        std::uint64_t address = 0;
        std::int64_t first_word = 0, words = 0;
        std::vector<unsigned char> data;
        tlm::tlm_generic_payload* payload = nullptr;
    };
    struct Due {
        std::size_t burst = 0;
        Cycle at = 0;
    };
    struct Response {
        std::size_t burst = 0;
        std::uint64_t ps = 0;  // at the adapter
    };
    struct State {
        bool active = false;
        KernelStart start;
        std::size_t next_issue = 0;  // next burst to request of the DRAM
        std::size_t next_move = 0;   // from the chip: next burst to read
        std::size_t in_flight = 0;   // bursts between their first step and their last
        std::size_t completed = 0;
        Cycle issue_allowed = 0;
        bool requested = false;
        bool moving = false;
        bool refused = false;         // the DRAM has not taken the latest request yet (no END_REQ)
        bool tokens_pending = false;  // rows follow tokens that are not read yet
        std::size_t moving_burst = 0;
        bool token_burst = false;  // the latest port burst reads token ids
        Cycle move_begin = 0, move_end = 0;
        Cycle done_at = kNever;
    };

    void start_of_simulation() override;
    void edge() override;
    [[nodiscard]] Cycle next_event() const override;
    void advance(Cycle n) override;

    tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& tlm_phase,
                                       sc_core::sc_time& delay);
    void start_kernel(const KernelStart& start);
    void make_bursts();
    void start_tokens();
    void end_tokens();
    void take_grant();
    void take_responses();
    void end_move();
    void issue();
    void send(std::size_t burst);
    void request_port();
    void finish_kernel();
    void count(Cycle n, Cycle until, bool moves);
    template <typename Visit>
    std::uint64_t for_each_beat(const Burst& burst, AccessCounter& counter, const Visit& visit) const;
    [[nodiscard]] std::uint64_t move_cycles(const Burst& burst, std::int64_t* rows, std::int64_t* conflicts);
    [[nodiscard]] const DmaCommand& command() const { return config_.program->transfers[s_.start.command]; }

    Config config_;
    Mailbox<KernelStart> starts_;
    Mailbox<PortGrant> grants_;
    Mailbox<Response, 256> responses_;
    Mailbox<bool> request_ends_;              // END_REQ of a burst that the DRAM did not take at once
    std::uint64_t request_ps_, response_ps_;  // the interconnect's share of the way
    State s_;
    Stats stats_;
    UnitCycles kernel_cycles_;
    std::vector<Burst> bursts_;
    std::vector<std::int64_t> row_starts_;  // words from dram_address, where tokens choose the rows
    std::vector<std::size_t> asked_;        // bursts at the DRAM
    std::deque<Response> landing_;          // responses on their way through the interconnect
    std::deque<Due> arrived_;               // to the chip: data that waits for a port
    std::deque<Due> to_send_;               // from the chip: data on its way to the DRAM
    std::vector<std::unique_ptr<tlm::tlm_generic_payload>> pool_;
    std::vector<tlm::tlm_generic_payload*> free_payloads_;
    AccessCounter counter_;
    Cycle counted_until_ = 0;               // edges before this one are accounted for
    Activity counted_as_ = Activity::Idle;  // the latest of them
    Cycle sent_before_ = 0;                 // edge after that of the latest request to the DRAM
    std::uint64_t sent_address_ = 0;
    std::size_t sent_bytes_ = 0;
};

}  // namespace contraflow
