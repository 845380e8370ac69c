#include "engine/tile_timing.h"

#include <algorithm>

#include "common/integer_math.h"

namespace contraflow {

ArrayView::ArrayView(const ContractionCommand& command, bool transposed) : transposed_(transposed) {
    row_operand = transposed ? &command.b : &command.a;
    col_operand = transposed ? &command.a : &command.b;
    row_table = transposed ? &command.b.col : &command.a.row;
    col_table = transposed ? &command.a.row : &command.b.col;
    rows = transposed ? command.cols : command.rows;
    cols = transposed ? command.rows : command.cols;
}

TileTiming::TileTiming(const EngineConfig& engine, const std::vector<RamGeometry>& rams,
                       const ContractionCommand& command, const TileMapping& mapping)
    : engine_(engine), rams_(rams), command_(command), mapping_(mapping), view_(command, mapping.transposed) {
    tile_rows_ = gang_rows() * mapping.row_interleave;
    tile_cols_ = gang_cols() * mapping.col_interleave;
    row_tiles_ = ceil_div(view_.rows, tile_rows_);
    col_tiles_ = ceil_div(view_.cols, tile_cols_);

    const RamGeometry& a_ram = rams_[index_of(view_.row_operand->ram)];
    const RamGeometry& b_ram = rams_[index_of(view_.col_operand->ram)];
    const int read_latency = std::max(a_ram.read_latency_cycles, b_ram.read_latency_cycles);
    pipeline_cycles_ = static_cast<std::uint64_t>(read_latency + engine.broadcast_latency_cycles +
                                                  engine.multiply_latency_cycles + engine.add_latency_cycles);
    int write_latency = 1;
    int read_ahead = 0;
    for (const AccessTable* extra : {&command.bias, &command.residual}) {
        if (extra->present) {
            write_latency += engine.add_latency_cycles;
            read_ahead = std::max(read_ahead, rams_[index_of(extra->ram)].read_latency_cycles);
        }
    }
    write_latency_cycles_ = static_cast<std::uint64_t>(write_latency + read_ahead);
    bursts_end_in_memory_ =
        command.accumulates && (command.out.token.modulus != 0 || (command.batch > 1 && command.out.batch.empty()));
    shared_port_ = view_.row_operand->ram == view_.col_operand->ram && a_ram.ports == 1;
    a_lanes_ = a_ram.lanes;
    b_lanes_ = b_ram.lanes;
    a_costs_.resize(static_cast<std::size_t>(row_tiles_ * a_lanes_));
    b_costs_.resize(static_cast<std::size_t>(col_tiles_ * b_lanes_));
    const auto combinations = static_cast<std::size_t>(row_tiles_ * col_tiles_);
    streams_.resize(combinations * static_cast<std::size_t>(a_lanes_ * b_lanes_));
    stream_known_.resize(streams_.size());
    const int out_lanes = lanes_of(command.out) * lanes_of(command.residual) * lanes_of(command.bias);
    writes_.resize(combinations * static_cast<std::size_t>(out_lanes));
    write_known_.resize(writes_.size());
}

Tile TileTiming::tile(std::int64_t index) const {
    Tile tile;
    const std::int64_t per_batch = row_tiles_ * col_tiles_;
    tile.batch = index / per_batch;
    const std::int64_t within = index % per_batch;
    tile.row_tile = within / col_tiles_;
    tile.col_tile = within % col_tiles_;
    tile.row_begin = tile.row_tile * tile_rows_;
    tile.col_begin = tile.col_tile * tile_cols_;
    tile.rows = std::min(tile_rows_, view_.rows - tile.row_begin);
    tile.cols = std::min(tile_cols_, view_.cols - tile.col_begin);
    tile.row_slots = ceil_div(tile.rows, gang_rows());
    tile.col_slots = ceil_div(tile.cols, gang_cols());
    return tile;
}

const StreamCost& TileTiming::stream(const Tile& tile, std::int32_t token) {
    const std::int64_t a_base = base_of(*view_.row_operand, tile, token);
    const std::int64_t b_base = base_of(*view_.col_operand, tile, token);
    const auto index = static_cast<std::size_t>(
        ((tile.row_tile * col_tiles_ + tile.col_tile) * a_lanes_ + a_base % a_lanes_) * b_lanes_ + b_base % b_lanes_);
    StreamCost& cost = streams_[index];
    if (stream_known_[index]) {
        return cost;
    }
    stream_known_[index] = true;
    const std::int64_t slots = tile.slots();
    for (std::int64_t k = 0; k < command_.depth; ++k) {
        const FetchCost& a = fetch_a(tile.row_tile, a_base + AccessTable::at(view_.row_operand->depth, k));
        const FetchCost& b = fetch_b(tile.col_tile, b_base + AccessTable::at(view_.col_operand->depth, k));
        const std::uint64_t dependency = dependency_cycles(k, slots);
        const std::uint64_t cycles = combine(dependency, a, b);
        cost.cycles += cycles;
        cost.busy += static_cast<std::uint64_t>(slots);
        cost.dependency += dependency - static_cast<std::uint64_t>(slots);
        cost.bank += cycles - dependency;
        cost.a_rows += a.rows;
        cost.b_rows += b.rows;
        cost.a_conflicts += a.cycles - a.slots;
        cost.b_conflicts += b.cycles - b.slots;
    }
    cost.a_words = command_.depth * tile.rows;
    cost.b_words = command_.depth * tile.cols;
    const std::int64_t partials = std::min<std::int64_t>(engine_.partial_sums, command_.depth);
    cost.fold = static_cast<std::uint64_t>((partials - 1) * std::max<std::int64_t>(slots, engine_.add_latency_cycles));
    return cost;
}

std::uint64_t TileTiming::step_cycles(const Tile& tile, std::int32_t token, std::int64_t k) {
    const FetchCost& a =
        fetch_a(tile.row_tile, base_of(*view_.row_operand, tile, token) + AccessTable::at(view_.row_operand->depth, k));
    const FetchCost& b =
        fetch_b(tile.col_tile, base_of(*view_.col_operand, tile, token) + AccessTable::at(view_.col_operand->depth, k));
    return combine(dependency_cycles(k, tile.slots()), a, b);
}

const WriteCost& TileTiming::write(const Tile& tile, std::int32_t token) {
    const auto residue = [&](const AccessTable& access) {
        return access.present ? base_of(access, tile, token) % lanes_of(access) : 0;
    };
    const std::int64_t place =
        (residue(command_.out) * lanes_of(command_.residual) + residue(command_.residual)) * lanes_of(command_.bias) +
        residue(command_.bias);
    const std::int64_t combinations =
        std::int64_t{lanes_of(command_.out)} * lanes_of(command_.residual) * lanes_of(command_.bias);
    const auto index = static_cast<std::size_t>((tile.row_tile * col_tiles_ + tile.col_tile) * combinations + place);
    if (!write_known_[index]) {
        write_known_[index] = true;
        writes_[index] = compute_write(tile, token);
    }
    return writes_[index];
}

// One beat per slot and PE row: the words of that PE row of every engine of the gang.
WriteCost TileTiming::compute_write(const Tile& tile, std::int32_t token) {
    WriteCost total;
    const std::int64_t rows_per_engine = engine_.rows;
    std::vector<std::int32_t> row_offsets;
    PortCycles ports;
    const auto beat_cost = [&](const AccessTable& access, std::int64_t slot_row, std::int64_t pe_row,
                               std::int64_t col_begin, std::int64_t col_end) {
        const std::vector<std::int32_t>& table = view_.rows_of(access);
        row_offsets.clear();
        for (std::int64_t engine_row = 0; engine_row < mapping_.gang_rows; ++engine_row) {
            const std::int64_t row = slot_row * gang_rows() + engine_row * rows_per_engine + pe_row;
            if (row < tile.rows) {
                row_offsets.push_back(static_cast<std::int32_t>(AccessTable::at(table, tile.row_begin + row)));
            }
        }
        return counter_.cost(rams_[index_of(access.ram)], base_of(access, tile, token), row_offsets, 0,
                             static_cast<std::int64_t>(row_offsets.size()), view_.cols_of(access), col_begin, col_end);
    };
    for (std::int64_t slot_col = 0; slot_col < tile.col_slots; ++slot_col) {
        const std::int64_t col_begin = tile.col_begin + slot_col * gang_cols();
        const std::int64_t col_end = std::min(col_begin + gang_cols(), tile.col_begin + tile.cols);
        for (std::int64_t slot_row = 0; slot_row < tile.row_slots; ++slot_row) {
            for (std::int64_t pe_row = 0; pe_row < rows_per_engine; ++pe_row) {
                if (slot_row * gang_rows() + pe_row >= tile.rows) {
                    break;
                }
                ports.clear();
                const auto charge = [&](const AccessTable& access, std::int64_t& words, std::int64_t& rows,
                                        std::int64_t& conflicts) {
                    if (!access.present) {
                        return;
                    }
                    const AccessCost cost = beat_cost(access, slot_row, pe_row, col_begin, col_end);
                    words += cost.words;
                    rows += cost.rows;
                    conflicts += cost.conflict_cycles();
                    ports.charge(access.ram, rams_[index_of(access.ram)].ports, cost.cycles);
                };
                charge(command_.out, total.words, total.rows, total.conflicts);
                charge(command_.residual, total.residual_words, total.residual_rows, total.residual_conflicts);
                charge(command_.bias, total.bias_words, total.bias_rows, total.bias_conflicts);
                total.cycles += static_cast<std::uint64_t>(ports.cycles());
            }
        }
    }
    if (bursts_end_in_memory_) {
        total.cycles += write_latency_cycles_;
    }
    return total;
}

std::uint64_t TileTiming::dependency_cycles(std::int64_t k, std::int64_t slots) const {
    const std::int64_t partials = engine_.partial_sums;
    if (k + 1 == command_.depth || k % partials != partials - 1) {
        return static_cast<std::uint64_t>(slots);
    }
    const std::int64_t group = std::max<std::int64_t>(partials * slots, engine_.add_latency_cycles);
    return static_cast<std::uint64_t>(group - (partials - 1) * slots);
}

std::uint64_t TileTiming::combine(std::uint64_t dependency, const FetchCost& a, const FetchCost& b) const {
    const auto fetch = static_cast<std::uint64_t>(shared_port_ ? a.cycles + b.cycles : std::max(a.cycles, b.cycles));
    return std::max(dependency, fetch);
}

const TileTiming::FetchCost& TileTiming::fetch_a(std::int64_t row_tile, std::int64_t address) {
    const std::int64_t residue = address % a_lanes_;
    FetchCost& cost = a_costs_[static_cast<std::size_t>(row_tile * a_lanes_ + residue)];
    if (cost.slots == 0) {
        cost = fetch_cost(*view_.row_operand, *view_.row_table, view_.rows, row_tile, residue, gang_rows(),
                          mapping_.row_interleave);
    }
    return cost;
}

const TileTiming::FetchCost& TileTiming::fetch_b(std::int64_t col_tile, std::int64_t address) {
    const std::int64_t residue = address % b_lanes_;
    FetchCost& cost = b_costs_[static_cast<std::size_t>(col_tile * b_lanes_ + residue)];
    if (cost.slots == 0) {
        cost = fetch_cost(*view_.col_operand, *view_.col_table, view_.cols, col_tile, residue, gang_cols(),
                          mapping_.col_interleave);
    }
    return cost;
}

// Moving a set of words by a multiple of the row width rotates the banks and changes no cost, so the cost of a slot
// depends on its address only through the residue.
TileTiming::FetchCost TileTiming::fetch_cost(const AccessTable& access, const std::vector<std::int32_t>& table,
                                             std::int64_t extent, std::int64_t tile, std::int64_t residue,
                                             std::int64_t slot_extent, int interleave) {
    static constexpr std::int32_t kSingle = 0;
    FetchCost total;
    for (int slot = 0; slot < interleave; ++slot) {
        const std::int64_t begin = (tile * interleave + slot) * slot_extent;
        const std::int64_t count = std::min(slot_extent, extent - begin);
        if (count <= 0) {
            break;
        }
        // An operand that does not depend on the index is one word for all PEs.
        const std::int32_t* offsets = table.empty() ? &kSingle : table.data() + begin;
        const AccessCost cost = counter_.cost(rams_[index_of(access.ram)], residue, offsets, table.empty() ? 1 : count);
        total.cycles += cost.cycles;
        total.rows += cost.rows;
        ++total.slots;
    }
    return total;
}

std::int64_t TileTiming::base_of(const AccessTable& access, const Tile& tile, std::int32_t token) const {
    return access.base + AccessTable::at(access.batch, tile.batch) + access.token_offset(token);
}

int TileTiming::lanes_of(const AccessTable& access) const {
    return access.present ? rams_[index_of(access.ram)].lanes : 1;
}

}  // namespace contraflow
