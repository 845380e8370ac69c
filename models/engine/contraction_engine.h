// Contraction engine: R x C PEs, output stationary, operands broadcast along PE rows and columns.
//
// A kernel arrives as one command; its output tiles (tile_timing.h) run one after another. A gang of engines runs one
// kernel in lockstep: every member gets the same command and the same grants and keeps the same counters; the first
// member alone asks the interconnect for ports. Accumulators are double buffered: while tile t streams, tile t - 1 is
// written back, so in steady state a tile takes the longest of compute, operand fetch and write-back.
//
// Throughput: one multiply-accumulate per PE and cycle while enough outputs are interleaved to cover the adder.
// Latency of a kernel run alone, from the edge that posts the command to the edge that sees it done, with T tiles of
// stream cost D and write cost W that never wait for each other: docs/timing.md, "Engine".
// A kernel that addresses memory by token id first reads the ids into a register file, one word per cycle.
// Approximation: one register stage stands for the broadcast across the array, whatever its size; optimistic by a cycle
// per further stage and tile fill above about 16 x 16 PEs.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/burst_accesses.h"
#include "common/mailbox.h"
#include "common/memory_ports.h"
#include "common/messages.h"
#include "engine/tile_accesses.h"
#include "engine/tile_timing.h"
#include "engine/tile_values.h"

namespace contraflow {

// Tile timings by command and gang size, built on first use; commands whose tiles cost the same share them. A pure
// function of the configuration, so the engines of a machine share one.
class TimingCache {
public:
    TimingCache(const EngineConfig& engine, const Program& program)
        : engine_(engine), program_(program), timings_(program.contractions.size()) {}
    [[nodiscard]] TileTiming& get(std::uint32_t command, std::size_t gang_size);
    // The same tiles for observers.
    [[nodiscard]] std::unique_ptr<TileAccesses> accesses(std::uint32_t command, std::size_t gang_size) const;

private:
    const EngineConfig& engine_;
    const Program& program_;
    std::vector<std::vector<std::unique_ptr<TileTiming>>> timings_;
};

class ContractionEngine : public Block {
public:
    struct Config {
        EngineConfig engine;
        const Program* program = nullptr;
        TimingCache* timings = nullptr;
        const std::vector<std::unique_ptr<ContractionEngine>>* engines = nullptr;  // of the machine, by index
        int index = 0;                                                             // of this engine
        bool values = true;                                                        // compute, not only time
    };

    struct Stats {
        UnitCycles cycles;  // over all kernels
        std::uint64_t idle_cycles = 0;
        std::uint64_t num_kernels = 0;
        std::uint64_t num_tiles = 0;
        std::uint64_t num_macs = 0;                               // of this engine's own PEs
        std::uint64_t num_words_read = 0, num_words_written = 0;  // by the gangs this engine led
        std::uint64_t num_requests = 0;
    };

    enum class Stage : std::uint8_t { Idle, TokenIds, Wait, Stream, Drain };  // of the operand side
    enum class WriteBack : std::uint8_t { Idle, Request, Write };

    // What the latest edge shows, for waveforms. Within a window of the clock (ClockDomain::open_window) only.
    struct Observation {
        Activity activity = Activity::Idle;
        Stage stage = Stage::Idle;
        WriteBack write_back = WriteBack::Idle;
        bool active = false, leads = false;
        std::uint32_t kernel = 0;
        std::int64_t tile = 0, write_tile = 0, num_tiles = 0;
        std::int64_t k = 0, slot = 0;               // contraction index and slot of the array's step
        bool a_valid = false, b_valid = false;      // the operand's words pass its port
        std::int64_t a_address = 0, b_address = 0;  // word address of the first PE row's (column's) word, while valid
        bool accumulating = false;                  // the PEs hold sums of the present kernel
        BurstView operands, write;                  // the latest bursts
    };

    sc_core::sc_export<MailboxIf<KernelStart>> start_in;   // kernel commands, from the sequencer
    sc_core::sc_export<MailboxIf<PortGrant>> grant_in;     // port grants, from the interconnect
    sc_core::sc_port<MailboxIf<PortRequest>> request_out;  // port requests, to the interconnect
    sc_core::sc_port<MailboxIf<KernelDone>> done_out;      // completion, to the sequencer
    MemoryPorts memory;                                    // words of granted ports

    ContractionEngine(const sc_core::sc_module_name& name, ClockDomain& clock, const Config& config);

    [[nodiscard]] const Stats& stats() const { return stats_; }
    [[nodiscard]] std::string state_text() const;  // for the report of a run that makes no progress

    [[nodiscard]] Observation observe();
    // The sum that a PE added to last (`slot` of the observation), and that of its first output. As in all of the
    // simulator, a sum is there when its operands have been issued; the hardware's is pipeline_cycles later. 0 without
    // values. REQUIRES: Observation::accumulating.
    [[nodiscard]] float latest_sum(std::int64_t pe_row, std::int64_t pe_col) const;
    [[nodiscard]] float first_sum(std::int64_t pe_row, std::int64_t pe_col) const;
    // What the gang does at its ports in the latest burst on a channel.
    void list_burst(std::uint8_t channel, AccessCounter& counter, BurstAccesses& accesses);

private:
    struct State {
        bool active = false;
        KernelStart start;
        bool tokens_pending = false;  // the token register file is not loaded yet
        bool operand_requested = false;
        bool streaming = false;
        std::int64_t next_tile = 0;      // next tile to stream
        Cycle operands_begin = 0;        // first edge of the latest burst of operands, or of token ids
        Cycle stream_end = 0;            // first edge after the running or last stream
        Cycle array_free = 0;            // first edge at which the PEs may start another tile
        std::array<Cycle, 2> sums_at{};  // by accumulator buffer: edge at which a tile's sums are complete
        bool write_requested = false;
        bool writing = false;
        std::int64_t written = 0;  // tiles written back
        Cycle write_begin = 0, write_end = 0;
        Cycle done_at = 0;
    };

    void start_of_simulation() override;
    void edge() override;
    [[nodiscard]] Cycle next_event() const override;
    void advance(Cycle n) override;
    void begin_window() override;

    void run_edge();
    template <typename Consider>
    void outputs(const Consider& consider) const;
    [[nodiscard]] Cycle next_transition() const;
    [[nodiscard]] Cycle done_after(Cycle write_end) const;

    void start_kernel(const KernelStart& start);
    void take_grants();
    void begin_stream();
    void begin_steps();
    void step_stream();
    void end_stream();
    void end_write();
    [[nodiscard]] PortRequest request_of_gang(std::uint8_t channel) const;
    void request_operands();
    void request_write();
    void finish_kernel();
    void take_over(const ContractionEngine& leader);
    [[nodiscard]] std::uint64_t own_macs(const Tile& tile) const;
    void count_edges(Cycle from, Cycle to);
    [[nodiscard]] Activity waiting_for(Cycle from) const;
    [[nodiscard]] Activity step_activity() const;
    void observe_operands(Observation& seen);
    [[nodiscard]] TileAccesses& tile_accesses();
    [[nodiscard]] float sum_of(std::int64_t slot, std::int64_t partial, std::int64_t pe_row, std::int64_t pe_col) const;

    [[nodiscard]] bool leads() const { return config_.index == s_.start.gang_first; }
    [[nodiscard]] bool computes_by_edge() const { return config_.values && stepped(); }
    // The array's steps are followed edge by edge: to compute by edge, or because somebody looks at them. In the latter
    // case the sums are for show, and memory changes when the kernel is done.
    [[nodiscard]] bool follows_steps() const { return computes_by_edge() || clock().in_window(); }
    // The latest step that the array has taken an edge of, and which of its edges that was. REQUIRES: steps followed.
    [[nodiscard]] std::int64_t last_step() const { return step_left_ == 0 ? step_k_ - 1 : step_k_; }
    [[nodiscard]] std::uint64_t last_step_edge() const { return step_cycles_ - step_left_ - 1; }
    [[nodiscard]] std::int64_t latest_tile() const { return s_.streaming ? s_.next_tile : s_.next_tile - 1; }

    Config config_;
    Mailbox<KernelStart> starts_;
    Mailbox<PortGrant> grants_;
    State s_;
    Cycle now_ = 0;  // edge that is being worked on: the present one, or one slept through that is caught up with
    bool follows_ = false;  // the gang's first engine goes through the kernel for this one
    Cycle own_from_ = 0;    // first edge that it has not gone through
    Stats stats_;
    UnitCycles kernel_cycles_;
    TileTiming* timing_ = nullptr;
    std::optional<ArrayView> view_;  // of the current command; the timing may be that of a kernel alike
    const ContractionCommand* command_ = nullptr;
    // The tile of a burst and what it costs (timing_ keeps that), found when its ports are asked for.
    template <typename Cost>
    struct TileBurst {
        Tile tile;
        const Cost* cost = nullptr;
    };
    TileBurst<StreamCost> asked_operands_;  // of the latest request
    TileBurst<WriteCost> asked_results_;    // likewise
    TileBurst<WriteCost> results_;          // of the running burst
    Tile tile_;                             // streaming
    SlotSpan own_rows_, own_cols_;          // of this engine's PEs
    Tokens tokens_;
    TileValues values_;
    std::int64_t step_k_ = 0, step_slot_ = 0;  // next multiply-accumulate of the streaming tile, edge by edge
    std::uint64_t step_cycles_ = 0;            // edges of the step that was begun last
    std::uint64_t step_left_ = 0;              // those left of it
    Cycle counted_until_ = 0;                  // edges outside of streams before this one are accounted for
    Activity counted_as_ = Activity::Idle;     // the latest of them

    // For observers.
    struct Followed {
        std::unique_ptr<TileAccesses> accesses;
        std::uint32_t command = 0;
        std::uint16_t gang_size = 0;
        std::int64_t k = -1;  // of the step that a and b are of
        Cycle stream = 0;     // likewise: when its tile began
        std::vector<SlotFetch> a, b;
    };
    Followed followed_;
};

}  // namespace contraflow
