// What the machine executes: commands with physical addresses, plain data without SystemC.
//
// The planner (src/plan) turns the kernels of a step into these: every operand is a base word in a memory plus one
// offset table per loop index, because an address generator adds one register per loop and a padded or reshaped layout
// only changes the tables.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "contraflow/step.h"

namespace contraflow {

enum class RamId : std::uint32_t {};
[[nodiscard]] constexpr std::size_t index_of(RamId id) {
    return static_cast<std::size_t>(id);
}

enum class RamKind { Lutram, Bram, Uram };
[[nodiscard]] const char* to_string(RamKind kind);  // lutram, bram, uram

// One on-chip memory: `banks` banks side by side, each `rows` rows of `lanes` 32-bit words, `ports` ports per bank.
// Word address a is in bank (a / lanes) mod banks, row a / (lanes * banks). A port delivers one row of each bank per
// cycle; a set of words that one port must deliver costs as many cycles as the fullest bank has distinct rows in it.
struct RamGeometry {
    std::string name;
    RamKind kind = RamKind::Bram;
    int banks = 1;
    int lanes = 1;
    std::int64_t rows = 1;
    int ports = 2;
    int read_latency_cycles = 1;

    [[nodiscard]] std::int64_t words() const { return std::int64_t{banks} * lanes * rows; }
};

// Offsets of an index's values, in words. Never changed once made, so that operands of one shape share them.
class OffsetTable {
public:
    OffsetTable() = default;
    OffsetTable(std::vector<std::int32_t> offsets)  // NOLINT: a list of offsets is a table
        : offsets_(std::make_shared<const std::vector<std::int32_t>>(std::move(offsets))) {}

    [[nodiscard]] const std::vector<std::int32_t>& values() const { return offsets_ ? *offsets_ : kNone; }
    operator const std::vector<std::int32_t>&() const { return values(); }  // NOLINT: likewise
    [[nodiscard]] bool empty() const { return values().empty(); }
    [[nodiscard]] std::size_t size() const { return values().size(); }
    [[nodiscard]] const std::int32_t* data() const { return values().data(); }
    [[nodiscard]] std::int32_t operator[](std::size_t index) const { return values()[index]; }
    [[nodiscard]] auto begin() const { return values().begin(); }
    [[nodiscard]] auto end() const { return values().end(); }

private:
    inline static const std::vector<std::int32_t> kNone;
    std::shared_ptr<const std::vector<std::int32_t>> offsets_;
};

// Physical form of an operand: word = base + batch[b] + row[i] + col[j] + depth[k] + token slice. An empty table means
// that the operand does not depend on that index.
struct AccessTable {
    bool present = false;
    RamId ram{};
    std::int64_t base = 0;
    OffsetTable batch, row, col, depth;
    bool row_contiguous = false;      // the table is 0, 1, 2, ... (find_runs)
    bool col_contiguous = false;      // likewise
    std::int64_t depth_step = -1;     // distance of contraction indices that are evenly apart, else -1 (find_runs)
    TokenDigit token;                 // stride in physical words
    std::int64_t begin = 0, end = 0;  // physical words of the tensor: every access stays inside

    // Finds regular tables, which cost less to walk. Call when the tables are complete.
    void find_runs();

    [[nodiscard]] static std::int64_t at(const std::vector<std::int32_t>& table, std::int64_t index) {
        return table.empty() ? 0 : table[static_cast<std::size_t>(index)];
    }
    [[nodiscard]] std::int64_t token_offset(std::int32_t id) const {
        return token.modulus == 0 ? 0 : token.stride * ((id / token.divisor) % token.modulus);
    }
};

// How a contraction's outputs lie on the PEs. A gang of gang_rows x gang_cols engines works in lockstep as one array of
// (gang_rows * r) x (gang_cols * c) PEs, of which each engine lends its first r = pe_rows rows and c = pe_cols columns;
// every PE holds row_interleave x col_interleave outputs at a time. Output row i of a tile:
// ((slot * gang_rows) + engine row) * r + PE row; columns alike. Small tiles on a part of a large array overlap their
// write-back with the next tile where one large tile could not.
struct TileMapping {
    bool transposed = false;       // PE rows carry the output's columns
    int pe_rows = 0, pe_cols = 0;  // of each engine; 0: all
    int gang_rows = 1, gang_cols = 1;
    int row_interleave = 1, col_interleave = 1;
    int batch_interleave = 1;  // and of that many batches
};

struct ContractionCommand {
    std::int64_t batch = 1, rows = 1, cols = 1, depth = 1;
    AccessTable a, b, out, bias, residual;
    bool accumulates = false;           // the residual is the output itself
    std::vector<TileMapping> mappings;  // by gang size; [0] is unused
    // Index of the first contraction of the program whose tiles cost the same (its own, if none before does): the same
    // extents, offset tables, mappings, kinds of memories and sharing of memories, and bases alike modulo the rows.
    std::uint32_t costs_like = 0;
};

struct VectorSegmentCommand {
    VectorOp op = VectorOp::Fill;
    std::int64_t rows = 1, cols = 1;
    std::vector<AccessTable> in, out;
    float scalar = 0;
    std::int64_t first_row = 0, row_count = 0;
    int loss_slot = 0;
};

struct VectorCommand {
    std::vector<VectorSegmentCommand> segments;
};

// Words of an on-chip tensor, and rows of row_words words in DRAM: row i starts at dram_address + i * row_pitch_bytes,
// and a token's row of a table (stride in words) further.
struct DmaCommand {
    AccessTable chip;  // col: one offset per word
    std::int64_t words = 0;
    std::int64_t dram_address = 0;
    bool to_chip = true;
    std::int64_t row_words = 0;
    std::int64_t row_pitch_bytes = 0;
    TokenDigit token;
    std::int64_t first_position = 0;  // of row 0: the position whose token counts
};

enum class UnitKind { Engine, Vector, Dma };

struct KernelCommand {
    std::string name;
    UnitKind unit = UnitKind::Engine;
    std::uint32_t command = 0;               // index into the list of its unit
    std::vector<std::uint32_t> dependences;  // kernels that must have completed
    std::uint64_t priority = 0;              // cycles to the end of the step's longest chain; larger first
    std::vector<int> gang_for;               // engines to use when n are free in a row, by n; [0] is unused
    std::vector<std::uint64_t> cycles;       // predicted for the kernel run alone, by number of units; [0] is unused
    std::int64_t macs = 0;
    Phase phase = Phase::Forward;
    KernelClass kernel_class = KernelClass::Apply;
};

struct Program {
    std::vector<RamGeometry> rams;
    std::vector<KernelCommand> kernels;
    std::vector<ContractionCommand> contractions;
    std::vector<VectorCommand> vectors;
    std::vector<DmaCommand> transfers;
    // The sample buffer's words, for token ids: physical address of word w of the buffer.
    AccessTable sample;  // col: one offset per word
};

}  // namespace contraflow
