#include "engine/tile_timing.h"

#include <algorithm>
#include <array>

#include "common/integer_math.h"

namespace contraflow {

ArrayView::ArrayView(const ContractionCommand& command, bool transposed) : transposed_(transposed) {
    row_operand = transposed ? &command.b : &command.a;
    col_operand = transposed ? &command.a : &command.b;
    row_table = transposed ? &command.b.col.values() : &command.a.row.values();
    col_table = transposed ? &command.a.row.values() : &command.b.col.values();
    rows = transposed ? command.cols : command.rows;
    cols = transposed ? command.rows : command.cols;
}

WriteCost& WriteCost::operator+=(const WriteCost& other) {
    cycles += other.cycles;
    words += other.words;
    rows += other.rows;
    conflicts += other.conflicts;
    residual_words += other.residual_words;
    residual_rows += other.residual_rows;
    residual_conflicts += other.residual_conflicts;
    bias_words += other.bias_words;
    bias_rows += other.bias_rows;
    bias_conflicts += other.bias_conflicts;
    return *this;
}

TileCosts::TileCosts(const EngineConfig& engine, const std::vector<RamGeometry>& rams,
                     const ContractionCommand& command, const TileMapping& mapping)
    : engine_(engine), rams_(rams), command_(command), view_(command, mapping.transposed) {
    TileCosts::set_mapping(mapping);
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
}

void TileCosts::set_mapping(const TileMapping& mapping) {
    mapping_ = mapping;
    view_ = ArrayView(command_, mapping.transposed);
    tile_rows_ = gang_rows() * mapping.row_interleave;
    tile_cols_ = gang_cols() * mapping.col_interleave;
    batch_tiles_ = ceil_div(command_.batch, mapping.batch_interleave);
    row_tiles_ = ceil_div(view_.rows, tile_rows_);
    col_tiles_ = ceil_div(view_.cols, tile_cols_);
    a_lanes_ = lanes_of(*view_.row_operand);
    b_lanes_ = lanes_of(*view_.col_operand);
}

Tile TileCosts::tile(std::int64_t index) const {
    Tile tile;
    const std::int64_t per_batch = row_tiles_ * col_tiles_;
    tile.batch = index / per_batch * mapping_.batch_interleave;
    tile.batches = std::min<std::int64_t>(mapping_.batch_interleave, command_.batch - tile.batch);
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

// Steps with the same dependency and the same residues of their operands' addresses are alike: they are counted, and
// each kind is added up at once.
StreamCost TileCosts::compute_stream(const Tile& tile, const Tokens& tokens) {
    set_bases(tile, tokens);
    const std::int64_t a_base = a_bases_[0];
    const std::int64_t b_base = b_bases_[0];
    const std::int64_t partials = engine_.partial_sums;
    const std::int64_t slots = tile.slots();
    const std::int64_t last = command_.depth - 1;
    StreamCost cost;
    const auto add = [&](std::int64_t k, std::int64_t count) {  // `count` steps like step k
        const FetchCost a = row_fetches(tile, k);
        const FetchCost b = col_fetches(tile, k);
        const std::uint64_t dependency = dependency_cycles(k, slots);
        const std::uint64_t cycles = combine(dependency, a, b);
        const auto n = static_cast<std::uint64_t>(count);
        cost.cycles += n * cycles;
        cost.busy += n * static_cast<std::uint64_t>(slots);
        cost.dependency += n * (dependency - static_cast<std::uint64_t>(slots));
        cost.bank += n * (cycles - dependency);
        cost.a_rows += count * a.rows;
        cost.b_rows += count * b.rows;
        cost.a_conflicts += count * (a.cycles - a.slots);
        cost.b_conflicts += count * (b.cycles - b.slots);
    };
    const std::int64_t residues = std::int64_t{a_lanes_} * b_lanes_;
    const AccessTable& a_access = *view_.row_operand;
    const AccessTable& b_access = *view_.col_operand;
    const std::int64_t period = residues * partials;
    constexpr std::int64_t kKinds = 8;
    if ((a_access.depth_step >= 0 && b_access.depth_step >= 0) || residues == 1) {
        // Evenly spaced operands: every period-th step is alike.
        for (std::int64_t k = 0; k < std::min(period, last); ++k) {
            add(k, (last - k + period - 1) / period);
        }
    } else if (2 * residues <= kKinds) {
        struct Kind {
            std::int64_t first = 0, count = 0;
        };
        std::array<Kind, kKinds> kinds{};
        for (std::int64_t k = 0; k < last; ++k) {
            const std::int64_t a = (a_base + AccessTable::at(a_access.depth, k)) % a_lanes_;
            const std::int64_t b = (b_base + AccessTable::at(b_access.depth, k)) % b_lanes_;
            const std::int64_t closes_group = partials == 1 || k % partials == partials - 1 ? 1 : 0;
            Kind& kind = kinds[static_cast<std::size_t>((a * b_lanes_ + b) * 2 + closes_group)];
            kind.first = k;
            ++kind.count;
        }
        for (const Kind& kind : kinds) {
            if (kind.count > 0) {
                add(kind.first, kind.count);
            }
        }
    } else {
        for (std::int64_t k = 0; k < last; ++k) {
            add(k, 1);
        }
    }
    add(last, 1);
    cost.a_words = command_.depth * tile.rows * tile.batches;
    cost.b_words = command_.depth * tile.cols * tile.batches;
    const std::int64_t used = std::min<std::int64_t>(partials, command_.depth);
    cost.fold = static_cast<std::uint64_t>((used - 1) * std::max<std::int64_t>(slots, engine_.add_latency_cycles));
    return cost;
}

WriteCost TileCosts::compute_write(const Tile& tile, const Tokens& tokens) {
    WriteCost total;
    for (std::int64_t i = 0; i < tile.batches; ++i) {
        const Tile own = tile.of_batch(i);
        for (std::int64_t slot_col = 0; slot_col < tile.col_slots; ++slot_col) {
            for (std::int64_t slot_row = 0; slot_row < tile.row_slots; ++slot_row) {
                total += slot_write(own, token_of(tokens, own.batch), slot_row, slot_col);
            }
        }
        total.cycles += bursts_end_in_memory_ ? write_latency_cycles_ : 0;
    }
    return total;
}

void TileCosts::set_bases(const Tile& tile, const Tokens& tokens) {
    a_bases_.clear();
    b_bases_.clear();
    for (std::int64_t i = 0; i < tile.batches; ++i) {
        const Tile own = tile.of_batch(i);
        a_bases_.push_back(base_of(*view_.row_operand, own, token_of(tokens, own.batch)));
        b_bases_.push_back(base_of(*view_.col_operand, own, token_of(tokens, own.batch)));
    }
}

TileCosts::FetchCost TileCosts::row_fetches(const Tile& tile, std::int64_t k) {
    FetchCost total;
    for (const std::int64_t base : a_bases_) {
        total += row_fetch(tile.row_tile, (base + AccessTable::at(view_.row_operand->depth, k)) % a_lanes_);
    }
    return total;
}

TileCosts::FetchCost TileCosts::col_fetches(const Tile& tile, std::int64_t k) {
    FetchCost total;
    for (const std::int64_t base : b_bases_) {
        total += col_fetch(tile.col_tile, (base + AccessTable::at(view_.col_operand->depth, k)) % b_lanes_);
    }
    return total;
}

// One beat per PE row: the words of that PE row of every engine of the gang.
WriteCost TileCosts::slot_write(const Tile& tile, std::int32_t token, std::int64_t slot_row, std::int64_t slot_col) {
    const std::int64_t col_begin = tile.col_begin + slot_col * gang_cols();
    const std::int64_t col_end = std::min(col_begin + gang_cols(), tile.col_begin + tile.cols);
    const std::int64_t first_row = slot_row * gang_rows();
    const std::array<const AccessTable*, 3> operands{&command_.out, &command_.residual, &command_.bias};
    for (BeatRows& beat : beat_) {
        beat.residue = -1;
        beat.by_residue.clear();
    }
    WriteCost total;
    WriteCost beat_cost;
    for (std::int64_t row = first_row; row < std::min(first_row + pe_rows(), tile.rows); ++row) {
        bool changed = false;
        for (std::size_t i = 0; i < operands.size(); ++i) {
            changed = (operands[i]->present && move_to(beat_[i], *operands[i], tile, token, row)) || changed;
        }
        if (changed) {
            beat_cost = WriteCost{};
            beat_ports_.clear();
            const auto charge = [&](std::size_t i, std::int64_t& words, std::int64_t& rows, std::int64_t& conflicts) {
                if (operands[i]->present) {
                    const AccessCost& cost = cost_of(beat_[i], *operands[i], col_begin, col_end);
                    words = cost.words;
                    rows = cost.rows;
                    conflicts = cost.conflict_cycles();
                    const RamId ram = operands[i]->ram;
                    beat_ports_.charge(ram, rams_[index_of(ram)].ports, cost.cycles);
                }
            };
            charge(0, beat_cost.words, beat_cost.rows, beat_cost.conflicts);
            charge(1, beat_cost.residual_words, beat_cost.residual_rows, beat_cost.residual_conflicts);
            charge(2, beat_cost.bias_words, beat_cost.bias_rows, beat_cost.bias_conflicts);
            beat_cost.cycles = static_cast<std::uint64_t>(beat_ports_.cycles());
        }
        total += beat_cost;
    }
    return total;
}

bool TileCosts::move_to(BeatRows& beat, const AccessTable& access, const Tile& tile, std::int32_t token,
                        std::int64_t row) const {
    const std::vector<std::int32_t>& table = view_.rows_of(access);
    const std::int64_t first = AccessTable::at(table, tile.row_begin + row);
    next_rows_.clear();
    for (std::int64_t i = 0; i < mapping_.gang_rows && row + i * pe_rows() < tile.rows; ++i) {
        const std::int64_t offset = AccessTable::at(table, tile.row_begin + row + i * pe_rows());
        next_rows_.push_back(static_cast<std::int32_t>(offset - first));
    }
    const std::int64_t residue = (base_of(access, tile, token) + first) % lanes_of(access);
    if (residue == beat.residue && next_rows_ == beat.offsets) {
        return false;
    }
    beat.residue = residue;
    if (next_rows_ != beat.offsets) {
        beat.offsets = next_rows_;
        beat.by_residue.clear();
    }
    return true;
}

const AccessCost& TileCosts::cost_of(BeatRows& beat, const AccessTable& access, std::int64_t col_begin,
                                     std::int64_t col_end) {
    const RamGeometry& ram = rams_[index_of(access.ram)];
    beat.by_residue.resize(static_cast<std::size_t>(ram.lanes));
    AccessCost& cost = beat.by_residue[static_cast<std::size_t>(beat.residue)];
    if (cost.words == 0) {
        // Offsets from the first row may be negative: whole turns around the banks keep addresses positive.
        const std::int64_t turn = std::int64_t{ram.banks} * ram.lanes;
        const std::int64_t lowest = *std::min_element(beat.offsets.begin(), beat.offsets.end());
        cost = counter_.cost(ram, beat.residue + ceil_div(-lowest, turn) * turn, beat.offsets, 0,
                             static_cast<std::int64_t>(beat.offsets.size()), view_.cols_of(access), col_begin, col_end);
    }
    return cost;
}

std::uint64_t TileCosts::dependency_cycles(std::int64_t k, std::int64_t slots) const {
    const std::int64_t partials = engine_.partial_sums;
    if (k + 1 == command_.depth || k % partials != partials - 1) {
        return static_cast<std::uint64_t>(slots);
    }
    const std::int64_t group = std::max<std::int64_t>(partials * slots, engine_.add_latency_cycles);
    return static_cast<std::uint64_t>(group - (partials - 1) * slots);
}

std::uint64_t TileCosts::combine(std::uint64_t dependency, const FetchCost& a, const FetchCost& b) const {
    const auto fetch = static_cast<std::uint64_t>(shared_port_ ? a.cycles + b.cycles : std::max(a.cycles, b.cycles));
    return std::max(dependency, fetch);
}

TileCosts::FetchCost TileCosts::row_slot_fetch(std::int64_t slot, std::int64_t residue) {
    const std::int64_t begin = slot * gang_rows();
    return slot_fetch(*view_.row_operand, *view_.row_table, begin, std::min(begin + gang_rows(), view_.rows), residue);
}

TileCosts::FetchCost TileCosts::col_slot_fetch(std::int64_t slot, std::int64_t residue) {
    const std::int64_t begin = slot * gang_cols();
    return slot_fetch(*view_.col_operand, *view_.col_table, begin, std::min(begin + gang_cols(), view_.cols), residue);
}

TileCosts::FetchCost TileCosts::slot_fetch(const AccessTable& access, const std::vector<std::int32_t>& table,
                                           std::int64_t begin, std::int64_t end, std::int64_t residue) {
    static constexpr std::int32_t kSingle = 0;
    // An operand that does not depend on the index is one word for all PEs.
    const std::int32_t* offsets = table.empty() ? &kSingle : table.data() + begin;
    const AccessCost cost =
        counter_.cost(rams_[index_of(access.ram)], residue, offsets, table.empty() ? 1 : end - begin);
    return {cost.cycles, cost.rows, 1};
}

TileCosts::FetchCost TileCosts::row_fetch(std::int64_t row_tile, std::int64_t residue) {
    FetchCost total;
    const std::int64_t first = row_tile * mapping_.row_interleave;
    for (std::int64_t slot = first; slot < first + mapping_.row_interleave && slot * gang_rows() < view_.rows; ++slot) {
        total += row_slot_fetch(slot, residue);
    }
    return total;
}

TileCosts::FetchCost TileCosts::col_fetch(std::int64_t col_tile, std::int64_t residue) {
    FetchCost total;
    const std::int64_t first = col_tile * mapping_.col_interleave;
    for (std::int64_t slot = first; slot < first + mapping_.col_interleave && slot * gang_cols() < view_.cols; ++slot) {
        total += col_slot_fetch(slot, residue);
    }
    return total;
}

std::int64_t TileCosts::base_of(const AccessTable& access, const Tile& tile, std::int32_t token) const {
    return access.base + AccessTable::at(access.batch, tile.batch) + access.token_offset(token);
}

int TileCosts::lanes_of(const AccessTable& access) const {
    return access.present ? rams_[index_of(access.ram)].lanes : 1;
}

TileTiming::TileTiming(const EngineConfig& engine, const std::vector<RamGeometry>& rams,
                       const ContractionCommand& command, const TileMapping& mapping)
    : TileCosts(engine, rams, command, mapping) {
    a_costs_.resize(static_cast<std::size_t>(row_tiles_ * a_lanes_));
    b_costs_.resize(static_cast<std::size_t>(col_tiles_ * b_lanes_));
    const auto combinations = static_cast<std::size_t>(row_tiles_ * col_tiles_);
    streams_.resize(combinations * static_cast<std::size_t>(a_lanes_ * b_lanes_));
    stream_known_.resize(streams_.size());
    const int out_lanes = lanes_of(command.out) * lanes_of(command.residual) * lanes_of(command.bias);
    writes_.resize(combinations * static_cast<std::size_t>(out_lanes));
    write_known_.resize(writes_.size());
}

const StreamCost& TileTiming::stream(const Tile& tile, const Tokens& tokens) {
    const std::int64_t place = tile.row_tile * col_tiles_ + tile.col_tile;
    if (mapping_.batch_interleave > 1) {
        set_bases(tile, tokens);
        key_ = {place, tile.batches};
        for (std::size_t i = 0; i < a_bases_.size(); ++i) {
            key_.push_back(a_bases_[i] % a_lanes_);
            key_.push_back(b_bases_[i] % b_lanes_);
        }
        const auto [entry, is_new] = batch_streams_.try_emplace(key_);
        if (is_new) {
            entry->second = compute_stream(tile, tokens);
        }
        return entry->second;
    }
    const std::int32_t token = token_of(tokens, tile.batch);
    const std::int64_t a_base = base_of(*view_.row_operand, tile, token);
    const std::int64_t b_base = base_of(*view_.col_operand, tile, token);
    const auto index = static_cast<std::size_t>((place * a_lanes_ + a_base % a_lanes_) * b_lanes_ + b_base % b_lanes_);
    if (!stream_known_[index]) {
        stream_known_[index] = true;
        streams_[index] = compute_stream(tile, tokens);
    }
    return streams_[index];
}

const WriteCost& TileTiming::write(const Tile& tile, const Tokens& tokens) {
    const std::int64_t place = tile.row_tile * col_tiles_ + tile.col_tile;
    const auto residue = [&](const AccessTable& access, std::int64_t batch) {
        const Tile own = tile.of_batch(batch);
        return access.present ? base_of(access, own, token_of(tokens, own.batch)) % lanes_of(access) : 0;
    };
    if (mapping_.batch_interleave > 1) {
        key_ = {place, tile.batches};
        for (std::int64_t i = 0; i < tile.batches; ++i) {
            for (const AccessTable* access : {&command_.out, &command_.residual, &command_.bias}) {
                key_.push_back(residue(*access, i));
            }
        }
        const auto [entry, is_new] = batch_writes_.try_emplace(key_);
        if (is_new) {
            entry->second = compute_write(tile, tokens);
        }
        return entry->second;
    }
    std::int64_t index = place;
    for (const AccessTable* access : {&command_.out, &command_.residual, &command_.bias}) {
        index = index * lanes_of(*access) + residue(*access, 0);
    }
    const auto known = static_cast<std::size_t>(index);
    if (!write_known_[known]) {
        write_known_[known] = true;
        writes_[known] = compute_write(tile, tokens);
    }
    return writes_[known];
}

std::uint64_t TileTiming::kernel_cycles() {
    constexpr std::uint64_t kFirstStream = 3;  // edges from the command to the first operands
    constexpr std::uint64_t kBurst = 2;        // edges between two grants of a burst's kind, at least
    std::uint64_t begin = kFirstStream;        // of the tile's stream
    std::uint64_t array_free = 0;
    std::array<std::uint64_t, 2> buffer_free{};  // edge at which the burst that empties a buffer lets go of it
    std::uint64_t write_begin = 0;
    std::uint64_t write_cycles = 0;
    const std::int64_t tiles = num_tiles();
    for (std::int64_t t = 0; t < tiles; ++t) {
        const Tile tile = this->tile(t);
        std::uint64_t& own_buffer = buffer_free[static_cast<std::size_t>(t % 2)];
        if (t > 0) {
            begin = std::max({array_free, begin + kBurst, own_buffer});
        }
        const StreamCost& cost = stream(tile, {});
        array_free = begin + cost.cycles + cost.fold;
        const std::uint64_t sums = array_free - 1 + pipeline_cycles();
        write_begin = t == 0 ? sums : std::max(sums, write_begin + std::max(write_cycles, kBurst));
        write_cycles = write(tile, {}).cycles;
        own_buffer = write_begin + std::max(write_cycles, kBurst);
    }
    return write_begin + write_cycles + (bursts_end_in_memory() ? 1 : write_latency_cycles());
}

std::uint64_t TileTiming::step_cycles(const Tile& tile, const Tokens& tokens, std::int64_t k) {
    set_bases(tile, tokens);
    return combine(dependency_cycles(k, tile.slots()), row_fetches(tile, k), col_fetches(tile, k));
}

TileCosts::FetchCost TileTiming::row_fetch(std::int64_t row_tile, std::int64_t residue) {
    FetchCost& cost = a_costs_[static_cast<std::size_t>(row_tile * a_lanes_ + residue)];
    if (cost.slots == 0) {
        cost = TileCosts::row_fetch(row_tile, residue);
    }
    return cost;
}

TileCosts::FetchCost TileTiming::col_fetch(std::int64_t col_tile, std::int64_t residue) {
    FetchCost& cost = b_costs_[static_cast<std::size_t>(col_tile * b_lanes_ + residue)];
    if (cost.slots == 0) {
        cost = TileCosts::col_fetch(col_tile, residue);
    }
    return cost;
}

}  // namespace contraflow
