// How a contraction is cut into tiles on a gang of engines, and what each tile costs. Plain C++: the engine runs by
// these numbers, the planner chooses mappings with them.
//
// A step is one contraction index k of one tile. Its multiply-accumulates need one cycle per active slot (outputs per
// PE); an add to an accumulator waits add_latency cycles for the previous one; the operand words of the step come
// through one port of each operand's memory. The step counter holds a step for the longest of the three:
//   dependency(k) = max(P * I, L_add) - (P - 1) * I if k mod P = P - 1, else I; I for the last step of the tile
//   step(k) = max(dependency(k), fetch_a(k), fetch_b(k));  stream = sum of step(k)
// Here I is the number of active slots and P = engine.partial_sums. fetch_a(k) is the sum over the batches of the tile
// and over row slots of the access cost of the slot's rows. Operands in one memory with a single port take turns:
// fetch_a(k) + fetch_b(k). (docs/timing.md, "Engine") Approximation: a step that conflicts have stretched still waits
// the whole dependency; pessimistic by at most L_add - 1 cycles per group of partial sums, only with P > 1 and
// conflicts.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "common/access_cost.h"
#include "common/command.h"
#include "contraflow/config.h"

namespace contraflow {

// A contraction as the PEs see it: which operand runs down the rows, which across the columns.
struct ArrayView {
    const AccessTable* row_operand = nullptr;
    const AccessTable* col_operand = nullptr;
    const std::vector<std::int32_t>* row_table = nullptr;  // offsets of PE-row index in row_operand
    const std::vector<std::int32_t>* col_table = nullptr;
    std::int64_t rows = 0, cols = 0;

    ArrayView(const ContractionCommand& command, bool transposed);
    // Offset table of the PE-row (PE-column) index in an output-side operand.
    [[nodiscard]] const std::vector<std::int32_t>& rows_of(const AccessTable& access) const {
        return transposed_ ? access.col : access.row;
    }
    [[nodiscard]] const std::vector<std::int32_t>& cols_of(const AccessTable& access) const {
        return transposed_ ? access.row : access.col;
    }

private:
    bool transposed_;
};

// How everything moves that one dimension of a contraction's output addresses: the operand of that dimension, output,
// residual and bias. Where one run of indices follows another by whole memory rows in each of them, the banks rotate
// and every cost is the same.
class AddressRuns {
public:
    struct Operand {
        const std::vector<std::int32_t>* table = nullptr;  // offsets by index; empty: does not move
        int lanes = 1;                                     // words in a row of its memory
    };
    AddressRuns(std::int64_t extent, const std::array<Operand, 4>& operands);

    // Whether indices a .. a + count - 1 cost what b .. b + count - 1 do.
    [[nodiscard]] bool alike(std::int64_t a, std::int64_t b, std::int64_t count) const;
    // Whether all operands move from a to a + 1 as they do from b to b + 1.
    [[nodiscard]] bool same_step(std::int64_t a, std::int64_t b) const;
    // Whether all runs of one length are.
    [[nodiscard]] bool all_alike() const { return steps_.empty() && residues_.empty(); }

private:
    std::vector<std::int32_t> steps_;     // kind of the step from each index to the next; empty: all alike
    std::vector<std::int32_t> residues_;  // of each index's offsets in their memories' rows; empty: all alike
};

struct Tile {
    std::int64_t batch = 0, batches = 1;  // first batch, and how many are side by side
    std::int64_t row_tile = 0, col_tile = 0;
    std::int64_t row_begin = 0, rows = 0;  // PE-row indices of the output covered
    std::int64_t col_begin = 0, cols = 0;
    std::int64_t row_slots = 0, col_slots = 0;

    [[nodiscard]] std::int64_t slots() const { return batches * row_slots * col_slots; }
    // The part of one of its batches, i from 0.
    [[nodiscard]] Tile of_batch(std::int64_t i) const {
        Tile own = *this;
        own.batch += i;
        own.batches = 1;
        return own;
    }
};

struct StreamCost {
    std::uint64_t cycles = 0;  // busy + dependency + bank
    std::uint64_t busy = 0, dependency = 0, bank = 0;
    std::uint64_t fold = 0;  // adding up partial sums; the array is taken, the ports are not
    std::int64_t a_words = 0, a_rows = 0, a_conflicts = 0;  // of the row operand
    std::int64_t b_words = 0, b_rows = 0, b_conflicts = 0;  // of the column operand
};

struct WriteCost {
    std::uint64_t cycles = 0;
    std::int64_t words = 0, rows = 0, conflicts = 0;  // of the output
    std::int64_t residual_words = 0, residual_rows = 0, residual_conflicts = 0;
    std::int64_t bias_words = 0, bias_rows = 0, bias_conflicts = 0;

    WriteCost& operator+=(const WriteCost& other);
};

// Ids by batch of a kernel that addresses memory by token; empty if it does not, or if only costs for id 0 are wanted.
using Tokens = std::vector<std::int32_t>;
[[nodiscard]] inline std::int32_t token_of(const Tokens& tokens, std::int64_t batch) {
    return tokens.empty() ? 0 : tokens[static_cast<std::size_t>(batch)];
}

// The tiles of a contraction under one mapping, and what each of them costs. It serves all contractions that are alike
// (ContractionCommand::costs_like): nothing but costs may be taken from it, in particular no address.
class TileCosts {
public:
    TileCosts(const EngineConfig& engine, const std::vector<RamGeometry>& rams, const ContractionCommand& command,
              const TileMapping& mapping);

    TileCosts(const TileCosts&) = delete;
    TileCosts& operator=(const TileCosts&) = delete;

    void set_mapping(const TileMapping& mapping);

    [[nodiscard]] std::int64_t num_tiles() const { return batch_tiles_ * row_tiles_ * col_tiles_; }
    [[nodiscard]] Tile tile(std::int64_t index) const;
    [[nodiscard]] const TileMapping& mapping() const { return mapping_; }

    // Computes the costs anew at each call.
    [[nodiscard]] StreamCost compute_stream(const Tile& tile, const Tokens& tokens);
    [[nodiscard]] WriteCost compute_write(const Tile& tile, const Tokens& tokens);

    // Edges of step k that its multiply-accumulates take, waits for the adder included, on `slots` active slots.
    [[nodiscard]] std::uint64_t dependency_cycles(std::int64_t k, std::int64_t slots) const;
    // Edges from the last streamed operand to the sum in its accumulator.
    [[nodiscard]] std::uint64_t pipeline_cycles() const { return pipeline_cycles_; }
    // Edges from the end of a write burst to the word in memory.
    [[nodiscard]] std::uint64_t write_latency_cycles() const { return write_latency_cycles_; }
    // Batches may add to what the batch before wrote (outputs that tokens select, sums over batches): then a batch's
    // part of a write burst ends when its last word is in memory.
    [[nodiscard]] bool bursts_end_in_memory() const { return bursts_end_in_memory_; }
    // Both operands go through the single port of one memory.
    [[nodiscard]] bool shared_port() const { return shared_port_; }
    // Edges of a kernel alone outside of its tiles: to the first stream, and from the last write burst on.
    [[nodiscard]] std::uint64_t end_cycles() const {
        return kFirstStream - 1 + (bursts_end_in_memory_ ? 1 : write_latency_cycles_);
    }
    // PEs in use: of one engine, and of the gang.
    [[nodiscard]] std::int64_t pe_rows() const { return mapping_.pe_rows > 0 ? mapping_.pe_rows : engine_.rows; }
    [[nodiscard]] std::int64_t pe_cols() const { return mapping_.pe_cols > 0 ? mapping_.pe_cols : engine_.cols; }
    [[nodiscard]] std::int64_t gang_rows() const { return mapping_.gang_rows * pe_rows(); }
    [[nodiscard]] std::int64_t gang_cols() const { return mapping_.gang_cols * pe_cols(); }

protected:
    static constexpr std::uint64_t kFirstStream = 3;  // edge of the first operands; that of the command is 0

    struct FetchCost {                                 // of one step
        std::int32_t cycles = 0, rows = 0, slots = 0;  // slots 0: not computed yet

        FetchCost& operator+=(const FetchCost& other) {
            cycles += other.cycles;
            rows += other.rows;
            slots += other.slots;
            return *this;
        }
    };

    // Parts of one dimension (slots, tiles), numbered by what they cost: parts alike have one kind.
    class Kinds {
    public:
        void clear(std::int64_t parts) {
            of_part_.assign(static_cast<std::size_t>(parts), -1);
            first_part_.clear();
        }
        [[nodiscard]] bool used() const { return !of_part_.empty(); }
        // Of a part of `width` indices of `extent`.
        [[nodiscard]] std::int64_t kind(std::int64_t part, const AddressRuns& runs, std::int64_t width,
                                        std::int64_t extent);
        // Of a part whose kind has been asked for.
        [[nodiscard]] std::int64_t operator[](std::int64_t part) const {
            return of_part_[static_cast<std::size_t>(part)];
        }
        [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(first_part_.size()); }

    private:
        std::vector<std::int32_t> of_part_;     // -1: not found yet
        std::vector<std::int64_t> first_part_;  // of each kind
    };

    // Fetches of step k for all batches of the tile whose bases are set.
    [[nodiscard]] FetchCost row_fetches(const Tile& tile, std::int64_t k);
    [[nodiscard]] FetchCost col_fetches(const Tile& tile, std::int64_t k);
    void set_bases(const Tile& tile, const Tokens& tokens);
    [[nodiscard]] std::uint64_t combine(std::uint64_t dependency, const FetchCost& a, const FetchCost& b) const;
    [[nodiscard]] std::int64_t base_of(const AccessTable& access, const Tile& tile, std::int32_t token) const;
    [[nodiscard]] int lanes_of(const AccessTable& access) const;
    // Along the PE rows (the PE columns).
    [[nodiscard]] const AddressRuns& row_runs() const { return mapping_.transposed ? out_cols_ : out_rows_; }
    [[nodiscard]] const AddressRuns& col_runs() const { return mapping_.transposed ? out_rows_ : out_cols_; }

    const EngineConfig& engine_;
    const std::vector<RamGeometry>& rams_;
    const ContractionCommand& command_;
    TileMapping mapping_;
    ArrayView view_;
    std::int64_t tile_rows_, tile_cols_, batch_tiles_, row_tiles_, col_tiles_;
    int a_lanes_, b_lanes_;
    std::vector<std::int64_t> a_bases_, b_bases_;  // of the tile at hand, by batch
    bool shared_port_ = false;

private:
    // Steps of all contraction indices but the last whose operands have the same residues and that wait alike for the
    // adder.
    struct StepKind {
        std::int64_t first = 0, count = 0;
    };

    // An operand's part of write-back beats in the column slot at hand: what they cost by how the engines' rows lie to
    // the first of them, and by the residue of its address (beats that differ by whole rows of the memory cost the
    // same).
    struct BeatCosts {
        std::vector<std::int32_t> rows;  // [pattern * engines + engine]: offset from the first engine's row
        std::vector<AccessCost> costs;   // [pattern * lanes + residue]; words 0: not computed yet

        // Number of the pattern, which is added if it is new.
        [[nodiscard]] std::size_t find(const std::vector<std::int32_t>& wanted, int lanes);
    };
    // Along one dimension, the words of one step in all slots of the tile at hand. Moving them by a multiple of the
    // memory's row width rotates the banks and changes no cost, so that only the residue of their address counts.
    struct Fetches {
        std::int64_t tile = -1;             // row tile or column tile; -1: none
        std::vector<FetchCost> by_residue;  // slots 0: not computed yet
    };

    void find_step_kinds();
    void forget_beats(std::int64_t engines);
    [[nodiscard]] FetchCost row_fetch(std::int64_t row_tile, std::int64_t residue);
    [[nodiscard]] FetchCost col_fetch(std::int64_t col_tile, std::int64_t residue);
    [[nodiscard]] static FetchCost& remembered(Fetches& fetches, std::int64_t tile, std::int64_t residue, int lanes);
    [[nodiscard]] FetchCost slots_fetch(const AccessTable& access, const std::vector<std::int32_t>& table,
                                        const AddressRuns& runs, std::int64_t first_slot, std::int64_t slots,
                                        std::int64_t width, std::int64_t extent, std::int64_t residue);
    [[nodiscard]] WriteCost batch_write(const Tile& tile, std::int32_t token);
    // Write-back of one slot of a tile of one batch; its first beat is the first PE row's.
    [[nodiscard]] WriteCost slot_write(const Tile& tile, std::int32_t token, std::int64_t slot_row,
                                       std::int64_t slot_col);
    // A write-back beat: the engines that have a row in it, and its columns.
    struct Beat {
        std::int64_t engines = 1, col_begin = 0, col_end = 0;
    };
    // An operand's part of the beat of a row, and `times` such beats.
    [[nodiscard]] const AccessCost& beat_cost(BeatCosts& known, const AccessTable& access, const Tile& tile,
                                              std::int32_t token, std::int64_t row, const Beat& beat);
    void add_beats(WriteCost& total, const Tile& tile, std::int32_t token, std::int64_t row, const Beat& beat,
                   std::int64_t times);

    std::uint64_t pipeline_cycles_ = 0, write_latency_cycles_ = 0;
    bool bursts_end_in_memory_ = false;
    AddressRuns out_rows_, out_cols_;
    std::vector<StepKind> step_kinds_;
    AccessCounter counter_;
    Fetches row_fetches_, col_fetches_;
    Kinds row_slots_, col_slots_;
    std::map<std::array<std::int64_t, 3>, WriteCost> slot_writes_;  // by kinds of row and column slot, and residues
    std::array<BeatCosts, 3> beat_costs_;                           // of output, residual and bias
    std::int64_t beat_cols_ = -1;                                   // kind of these beats' column slot
    std::int64_t beat_engines_ = 0;                                 // of these beats
    std::vector<std::int32_t> beat_rows_;
    PortCycles beat_ports_;
};

// The same, remembered: an engine asks for the same tiles in every step.
class TileTiming : public TileCosts {
public:
    using TileCosts::TileCosts;

    // Forgets what it knows about the mapping before.
    void set_mapping(const TileMapping& mapping);

    [[nodiscard]] const StreamCost& stream(const Tile& tile, const Tokens& tokens);
    [[nodiscard]] const WriteCost& write(const Tile& tile, const Tokens& tokens);
    // Cycles of the kernel run alone, token ids apart: the recurrence of docs/timing.md, "Engine". REQUIRES: no ports
    // are shared with others. From `limit` on it need not be exact.
    [[nodiscard]] std::uint64_t kernel_cycles(std::uint64_t limit = ~std::uint64_t{0});
    // Cycles of one step, for stepping.
    [[nodiscard]] std::uint64_t step_cycles(const Tile& tile, const Tokens& tokens, std::int64_t k);

private:
    void find_kinds();
    void prepare();
    [[nodiscard]] std::int64_t place_of(const Tile& tile) const {
        return row_kinds_[tile.row_tile] * col_kinds_.count() + col_kinds_[tile.col_tile];
    }
    // Whether tiles at the same place of these batches cost the same.
    [[nodiscard]] bool batches_alike(const Tile& x, const Tile& y) const;

    bool prepared_ = false;
    Kinds row_kinds_, col_kinds_;
    std::vector<StreamCost> streams_;  // [(place * a_lanes + ra) * b_lanes + rb]
    std::vector<bool> stream_known_;
    std::vector<WriteCost> writes_;  // the same by residues of output, residual and bias
    std::vector<bool> write_known_;
    // Tiles of several batches: by place, number of batches and the residues of each.
    std::map<std::vector<std::int64_t>, StreamCost> batch_streams_;
    std::map<std::vector<std::int64_t>, WriteCost> batch_writes_;
    std::vector<std::int64_t> key_;
    struct TileCycles {
        std::uint64_t stream = 0, write = 0;  // stream 0: not known yet
    };
    std::vector<TileCycles> cycles_;  // by place
};

}  // namespace contraflow
