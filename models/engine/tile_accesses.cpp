#include "engine/tile_accesses.h"

#include <algorithm>
#include <array>

namespace contraflow {

TileAccesses::Operand TileAccesses::row_operand(const Tile& tile) const {
    return {view_.row_operand, view_.row_table, &a_bases_, tile.row_tile * mapping_.row_interleave,
            tile.row_slots,    gang_rows(),     view_.rows};
}

TileAccesses::Operand TileAccesses::col_operand(const Tile& tile) const {
    return {view_.col_operand, view_.col_table, &b_bases_, tile.col_tile * mapping_.col_interleave,
            tile.col_slots,    gang_cols(),     view_.cols};
}

template <typename Visit>
std::int64_t TileAccesses::for_each_slot(const Operand& operand, std::int64_t k, std::int64_t at,
                                         AccessCounter& counter, const Visit& visit) const {
    const RamGeometry& ram = rams_[index_of(operand.access->ram)];
    for (const std::int64_t base : *operand.bases) {
        for (std::int64_t slot = operand.first_slot; slot < operand.first_slot + operand.slots; ++slot) {
            const std::int64_t begin = slot * operand.width;
            const std::int64_t address = base + AccessTable::at(operand.access->depth, k);
            const AccessCost cost =
                counter.cost(ram, address, *operand.table, begin, std::min(begin + operand.width, operand.limit));
            visit(at, cost.cycles, address, begin);
            at += cost.cycles;
        }
    }
    return at;
}

void TileAccesses::list_step(const Tile& tile, const Tokens& tokens, std::int64_t k, const SlotSpan& own_rows,
                             const SlotSpan& own_cols, std::vector<SlotFetch>& a, std::vector<SlotFetch>& b) {
    set_bases(tile, tokens);
    const auto list = [&](const Operand& operand, std::int64_t own_first, std::int64_t start,
                          std::vector<SlotFetch>& fetches) {
        fetches.clear();
        return for_each_slot(
            operand, k, start, step_counter_,
            [&](std::int64_t at, std::int64_t cycles, std::int64_t address, std::int64_t begin) {
                const std::int64_t index = begin + own_first;
                const bool own = index < operand.limit;
                fetches.push_back({static_cast<std::uint64_t>(at), static_cast<std::uint64_t>(at + cycles),
                                   own ? address + AccessTable::at(*operand.table, index) : -1});
            });
    };
    const std::int64_t a_end = list(row_operand(tile), own_rows.first, 0, a);
    (void)list(col_operand(tile), own_cols.first, shared_port_ ? a_end : 0, b);
}

void TileAccesses::list_stream(const Tile& tile, const Tokens& tokens, AccessCounter& counter,
                               BurstAccesses& accesses) {
    set_bases(tile, tokens);
    const Operand a = row_operand(tile);
    const Operand b = col_operand(tile);
    const RamGeometry& b_ram = rams_[index_of(b.access->ram)];
    const std::size_t b_port = b.access->ram == a.access->ram && b_ram.ports > 1 ? 1 : 0;
    std::int64_t step = 0;  // its first edge
    for (std::int64_t k = 0; k < command_.depth; ++k) {
        const auto list = [&](const Operand& operand, std::size_t port, std::int64_t start) {
            const RamId id = operand.access->ram;
            return for_each_slot(operand, k, start, counter,
                                 [&](std::int64_t at, std::int64_t, std::int64_t, std::int64_t) {
                                     accesses.add(counter, rams_[index_of(id)], id, step + at, port, false);
                                 });
        };
        const std::int64_t a_end = list(a, 0, 0);
        const std::int64_t b_end = list(b, b_port, shared_port_ ? a_end : 0);
        step += std::max({a_end, b_end, static_cast<std::int64_t>(dependency_cycles(k, tile.slots()))});
    }
    accesses.sort();
}

// In the order of TileCosts::compute_write.
void TileAccesses::list_write(const Tile& tile, const Tokens& tokens, AccessCounter& counter, BurstAccesses& accesses) {
    std::int64_t at = 0;
    for (std::int64_t i = 0; i < tile.batches; ++i) {
        const Tile own = tile.of_batch(i);
        const std::int32_t token = token_of(tokens, own.batch);
        for (std::int64_t slot_col = 0; slot_col < tile.col_slots; ++slot_col) {
            const std::int64_t col_begin = tile.col_begin + slot_col * gang_cols();
            const std::int64_t col_end = std::min(col_begin + gang_cols(), tile.col_begin + tile.cols);
            for (std::int64_t slot_row = 0; slot_row < tile.row_slots; ++slot_row) {
                const std::int64_t first_row = slot_row * gang_rows();
                for (std::int64_t row = first_row; row < std::min(first_row + pe_rows(), tile.rows); ++row) {
                    beat_ports_.clear();
                    list_beat(own, token, row, col_begin, col_end, at, counter, accesses);
                    at += beat_ports_.cycles();
                }
            }
        }
        at += bursts_end_in_memory() ? static_cast<std::int64_t>(write_latency_cycles()) : 0;
    }
    accesses.sort();
}

// The words of one PE row of every engine of the gang.
void TileAccesses::list_beat(const Tile& tile, std::int32_t token, std::int64_t row, std::int64_t col_begin,
                             std::int64_t col_end, std::int64_t at, AccessCounter& counter, BurstAccesses& accesses) {
    for (const AccessTable* access : {&command_.out, &command_.residual, &command_.bias}) {
        if (!access->present) {
            continue;
        }
        const std::vector<std::int32_t>& table = view_.rows_of(*access);
        beat_rows_.clear();
        for (std::int64_t i = 0; i < mapping_.gang_rows && row + i * pe_rows() < tile.rows; ++i) {
            beat_rows_.push_back(
                static_cast<std::int32_t>(AccessTable::at(table, tile.row_begin + row + i * pe_rows())));
        }
        const RamGeometry& ram = rams_[index_of(access->ram)];
        const AccessCost cost =
            counter.cost(ram, base_of(*access, tile, token), beat_rows_, 0,
                         static_cast<std::int64_t>(beat_rows_.size()), view_.cols_of(*access), col_begin, col_end);
        const PortCycles::Turn turn = beat_ports_.charge(access->ram, ram.ports, cost.cycles);
        accesses.add(counter, ram, access->ram, at + turn.from, turn.port, access == &command_.out);
    }
}

}  // namespace contraflow
