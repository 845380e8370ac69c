// Vector unit: `vector.lanes` lanes, each starting one FP32 add and one multiply per cycle, with `vector.special_lanes`
// lanes for exp, erf and tanh, a pipelined reduction tree, and one divider, square root and logarithm for row scalars.
//
// A kernel is a list of segments, a segment a list of passes over its rows (vector_passes.h). Rows move in bursts of
// about vector.burst_beats beats, whole rows, one port grant each; bursts of a pass follow each other without a gap;
// the next pass starts when the last result of the one before is there. Throughput and latency: docs/timing.md.
// Approximation: the ports of a pass's results are held during the same edges as those of its operands, not shifted by
// the pipeline's depth. Their number and length are right; another burst can be let in early or late by up to that
// depth (at most about 60 cycles), nothing is gained or lost within the unit. The column sums of a segment have a
// register each (2 x cols words of LUTRAM at most).
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/burst_accesses.h"
#include "common/mailbox.h"
#include "common/memory_ports.h"
#include "common/messages.h"
#include "common/number_key.h"
#include "vector/vector_function.h"
#include "vector/vector_passes.h"

namespace contraflow {

class VectorUnit : public Block {
public:
    struct Config {
        VectorConfig vector;
        EngineConfig engine;  // adder and multiplier latency
        const Program* program = nullptr;
        int index = 0;   // of this unit
        int client = 0;  // its number at the interconnect
        bool values = true;
    };

    struct Stats {
        UnitCycles cycles;
        std::uint64_t idle_cycles = 0;
        std::uint64_t num_kernels = 0;
        std::uint64_t num_elements = 0;                                    // element passes
        std::uint64_t num_adds = 0, num_compares = 0, num_multiplies = 0;  // on the lanes
        std::uint64_t num_exps = 0, num_erfs = 0, num_tanhs = 0;           // on the special lanes
        std::uint64_t num_words_read = 0, num_words_written = 0;
        std::uint64_t num_requests = 0;
    };

    enum class Stage : std::uint8_t { Idle, TokenIds, Request, Stream, Drain };

    // What the latest edge shows, for waveforms.
    struct Observation {
        Stage stage = Stage::Idle;
        bool active = false;
        bool streaming = false;  // its activity is that of the burst's edge (list_burst), else `activity`
        Activity activity = Activity::Idle;
        std::uint32_t kernel = 0;
        std::size_t segment = 0, pass = 0;
        std::int64_t first_row = 0, end_row = 0;  // of the latest burst
        BurstView burst;
    };

    sc_core::sc_export<MailboxIf<KernelStart>> start_in;   // kernel commands, from the sequencer
    sc_core::sc_export<MailboxIf<PortGrant>> grant_in;     // port grants, from the interconnect
    sc_core::sc_port<MailboxIf<PortRequest>> request_out;  // port requests, to the interconnect
    sc_core::sc_port<MailboxIf<KernelDone>> done_out;      // completion, to the sequencer
    MemoryPorts memory;                                    // words of granted ports

    VectorUnit(const sc_core::sc_module_name& name, ClockDomain& clock, const Config& config);

    [[nodiscard]] const Stats& stats() const { return stats_; }
    [[nodiscard]] std::string state_text() const;

    [[nodiscard]] Observation observe() const;
    // What the unit does at its ports in the latest burst, and where each of its edges goes (none for token ids).
    void list_burst(AccessCounter& counter, BurstAccesses& accesses, std::vector<Activity>& activities);

private:
    struct RowCosts {
        std::vector<RowCost> rows;  // by combined residue of the streams' row addresses
        std::vector<bool> known;
    };
    struct PassPlan {
        VectorPass pass;
        std::uint64_t latency_cycles = 0;
        RowCosts* costs = nullptr;  // shared by all passes whose rows cost the same
        bool uniform = false;       // every row has the residues of the first one
    };
    struct SegmentPlan {
        std::vector<PassPlan> passes;
        std::int64_t rows_per_burst = 1;
        bool needs_tokens = false;
    };
    struct State {
        bool active = false;
        KernelStart start;
        std::size_t segment = 0, pass = 0;
        std::int64_t group_begin = 0, group_end = 0;  // rows whose scalars are in the unit
        std::int64_t next_row = 0;
        bool tokens_pending = false;
        bool requested = false;
        bool streaming = false;
        std::int64_t burst_begin = 0, burst_end = 0;  // rows
        std::size_t burst_segment = 0, burst_pass = 0;
        bool token_burst = false;  // the latest burst reads token ids
        Cycle stream_begin = 0;    // of the latest burst
        Cycle stream_end = 0;
        Cycle start_allowed = 0;  // first edge at which the next burst may start
        bool complete = false;
        Cycle done_at = 0;
    };

    void start_of_simulation() override;
    void edge() override;
    [[nodiscard]] Cycle next_event() const override;
    void advance(Cycle n) override;

    void start_kernel(const KernelStart& start);
    void begin_segment();
    void take_grants();
    void end_burst();
    void next_pass(Cycle results_at);
    void request_burst();
    void finish_kernel();
    void run_edge();
    void count_edges(Cycle from, Cycle to);

    [[nodiscard]] SegmentPlan& plan();
    [[nodiscard]] RowCosts& costs_of(const VectorSegmentCommand& segment, const VectorPass& pass);
    [[nodiscard]] const VectorSegmentCommand& segment() const { return command_->segments[s_.segment]; }
    [[nodiscard]] std::int64_t pass_rows() const;
    [[nodiscard]] const RowCost& row_cost(PassPlan& plan, std::int64_t row);
    // Addresses of a row's words, by stream.
    void row_addresses(const VectorSegmentCommand& segment, const VectorPass& pass, std::int64_t row,
                       std::vector<std::int64_t>& addresses) const;
    [[nodiscard]] std::uint64_t burst_cycles(std::int64_t begin, std::int64_t end);
    void account_rows(const PassPlan& pass, const RowCost& cost, std::uint64_t rows);

    Config config_;
    Mailbox<KernelStart> starts_;
    Mailbox<PortGrant> grants_;
    State s_;
    Cycle now_ = 0;  // edge that is being worked on: the present one, or one slept through that is caught up with
    Stats stats_;
    UnitCycles kernel_cycles_;
    const VectorCommand* command_ = nullptr;
    std::vector<std::vector<SegmentPlan>> plans_;  // by command and segment, built on first use
    std::unordered_map<NumberKey, RowCosts, NumberKey::Hash> costs_;
    std::vector<std::int32_t> tokens_;
    VectorFunction function_;
    AccessCounter counter_;
    std::vector<std::int64_t> residues_;
    Cycle counted_until_ = 0;               // edges outside of bursts before this one are accounted for
    Activity counted_as_ = Activity::Idle;  // the latest of them
};

}  // namespace contraflow
