// What the PEs of an engine, or of a whole gang, compute for a tile: products summed in the order of the contract, and
// the write-back with bias and residual. No timing in here; step by step and in bulk give the same bits.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/memory_ports.h"
#include "engine/tile_timing.h"

namespace contraflow {

// The part of every slot of a tile that lies on some PEs: indices first .. first + width - 1 of each `pitch`.
struct SlotSpan {
    std::int64_t first = 0, width = 0, pitch = 1;

    // How many of a tile's `count` indices lie in the span. Only the last slots are cut, so they are a prefix.
    [[nodiscard]] std::int64_t indices(std::int64_t count) const;
};

class TileValues {
public:
    TileValues(const MemoryPorts& memory, int partial_sums) : memory_(memory), partial_sums_(partial_sums) {}

    // A kernel begins on the PEs of these spans. REQUIRES: command and timing stay until the next kernel.
    void start(const ContractionCommand& command, const TileTiming& timing, const SlotSpan& rows, const SlotSpan& cols);

    // A tile begins in accumulator buffer `buffer` (0 or 1): sums are +0.
    void begin(const Tile& tile, const Tokens& tokens, std::size_t buffer);
    // Reads the operand words of contraction index k.
    void load_step(std::int64_t k);
    // The multiply-accumulates of one slot of the loaded step, in the tile's i-th batch.
    void execute_slot(std::int64_t k, std::int64_t i, std::int64_t row_slot, std::int64_t col_slot);
    // Adds up partial sums, adds bias and residual, stores, batch after batch. The tile of `buffer` must be complete.
    void write(const Tile& tile, const Tokens& tokens, std::size_t buffer);

    // The sum that a PE holds: tile's i-th batch, partial accumulator, slot, PE of the spans; 0 for a PE outside the
    // tile.
    [[nodiscard]] float sum(std::size_t buffer, std::int64_t i, std::int64_t partial, std::int64_t row_slot,
                            std::int64_t col_slot, std::int64_t pe_row, std::int64_t pe_col) const;

    // A whole kernel at once, batch after batch, for all PEs of its gang: the same sums in the same order. `tokens`:
    // ids by batch, empty if the kernel uses none.
    void run_kernel(const ContractionCommand& command, const Tokens& tokens);

private:
    // An operand of the write-back: where its words lie for the tile that is written.
    struct OutputStream {
        float* words = nullptr;  // none: the operand is absent
        const std::vector<std::int32_t>* rows = nullptr;
        std::vector<std::int64_t> cols;
        bool contiguous = false;

        [[nodiscard]] float* row(std::int64_t index) const;  // first column of a row; null if the operand is absent
        void add_to(std::int64_t row, std::vector<float>& values) const;
        void store(std::int64_t row, const std::vector<float>& values) const;
    };
    // One operand of the products, as accumulate_tile wants it: lanes side by side, one contraction index after
    // another.
    struct Packed {
        const float* values = nullptr;
        std::size_t stride = 0;
    };

    [[nodiscard]] std::int64_t base_of(const AccessTable& access, const Tile& tile, std::int32_t token) const;
    // Accumulators of one batch.
    [[nodiscard]] std::int64_t batch_sums() const { return acc_rows_ * acc_stride_ * partial_sums_; }
    [[nodiscard]] Packed pack_operand(const AccessTable& access, std::int64_t base,
                                      const std::vector<std::int64_t>& lanes, bool lanes_side_by_side,
                                      std::int64_t first, std::vector<float>& buffer);
    void find_columns(OutputStream& stream, const AccessTable& access, const Tile& tile);
    void write_rows(const Tile& tile, std::int32_t token, const float* sums);

    const MemoryPorts& memory_;
    std::int64_t partial_sums_;
    const ContractionCommand* command_ = nullptr;
    std::optional<ArrayView> view_;
    SlotSpan rows_, cols_;

    // Accumulators [buffer][batch][partial][row][column] of the span.
    std::int64_t acc_rows_ = 0, acc_stride_ = 0;
    std::array<std::vector<float>, 2> accumulators_;
    std::size_t buffer_ = 0;
    std::vector<std::int64_t> row_offsets_, col_offsets_;  // of the tile's rows and columns at k = 0, from the base
    std::vector<std::int64_t> row_bases_, col_bases_;      // by batch of the tile
    std::vector<float> row_values_, col_values_;           // operands of the loaded step, batch after batch
    bool row_lanes_side_by_side_ = false, col_lanes_side_by_side_ = false;
    std::vector<std::int64_t> depths_;
    std::vector<float> packed_rows_, packed_cols_;
    OutputStream out_, bias_, residual_;
    std::vector<float> write_row_;
};

}  // namespace contraflow
