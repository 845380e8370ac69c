#include "engine/tile_timing.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>

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

AddressRuns::AddressRuns(std::int64_t extent, const std::array<Operand, 4>& operands) {
    std::array<Operand, 4> moved;
    std::size_t count = 0;
    bool even = true;
    bool aligned = true;
    for (const Operand& operand : operands) {
        const std::vector<std::int32_t>& table = *operand.table;
        if (!table.empty()) {
            moved[count++] = operand;
            for (std::size_t i = 2; i < table.size() && even; ++i) {
                even = table[i] - table[i - 1] == table[1] - table[0];
            }
            aligned = aligned && operand.lanes == 1;
        }
    }
    if (!even) {
        std::vector<std::array<std::int32_t, 4>> known;
        steps_.resize(static_cast<std::size_t>(extent) - 1);
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            std::array<std::int32_t, 4> step{};
            for (std::size_t o = 0; o < count; ++o) {
                step[o] = (*moved[o].table)[i + 1] - (*moved[o].table)[i];
            }
            if (i > 0 && known[static_cast<std::size_t>(steps_[i - 1])] == step) {
                steps_[i] = steps_[i - 1];
                continue;
            }
            const auto kind = std::find(known.begin(), known.end(), step) - known.begin();
            if (static_cast<std::size_t>(kind) == known.size()) {
                known.push_back(step);
            }
            steps_[i] = static_cast<std::int32_t>(kind);
        }
    }
    if (!aligned) {
        residues_.resize(static_cast<std::size_t>(extent));
        for (std::size_t i = 0; i < residues_.size(); ++i) {
            for (std::size_t o = 0; o < count; ++o) {
                residues_[i] = residues_[i] * moved[o].lanes + (*moved[o].table)[i] % moved[o].lanes;
            }
        }
    }
}

bool AddressRuns::alike(std::int64_t a, std::int64_t b, std::int64_t count) const {
    if (!residues_.empty() && residues_[static_cast<std::size_t>(a)] != residues_[static_cast<std::size_t>(b)]) {
        return false;
    }
    return steps_.empty() || std::equal(steps_.begin() + a, steps_.begin() + a + count - 1, steps_.begin() + b);
}

bool AddressRuns::same_step(std::int64_t a, std::int64_t b) const {
    return steps_.empty() || steps_[static_cast<std::size_t>(a)] == steps_[static_cast<std::size_t>(b)];
}

std::int64_t TileCosts::Kinds::kind(std::int64_t part, const AddressRuns& runs, std::int64_t width,
                                    std::int64_t extent) {
    std::int32_t& kind = of_part_[static_cast<std::size_t>(part)];
    if (kind >= 0) {
        return kind;
    }
    const std::int64_t begin = part * width;
    const auto alike = [&](std::int64_t first) {
        return std::max(first, begin) + width <= extent && runs.alike(first, begin, width);
    };
    kind = 0;
    while (kind < count() && !alike(first_part_[static_cast<std::size_t>(kind)] * width)) {
        ++kind;
    }
    if (kind == count()) {
        first_part_.push_back(part);
    }
    return kind;
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
    : engine_(engine),
      rams_(rams),
      command_(command),
      view_(command, mapping.transposed),
      out_rows_(command.rows, {{{&command.a.row.values(), lanes_of(command.a)},
                                {&command.out.row.values(), lanes_of(command.out)},
                                {&command.residual.row.values(), lanes_of(command.residual)},
                                {&command.bias.row.values(), lanes_of(command.bias)}}}),
      out_cols_(command.cols, {{{&command.b.col.values(), lanes_of(command.b)},
                                {&command.out.col.values(), lanes_of(command.out)},
                                {&command.residual.col.values(), lanes_of(command.residual)},
                                {&command.bias.col.values(), lanes_of(command.bias)}}}) {
    set_mapping(mapping);
    find_step_kinds();
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
    const auto slots_of = [](const TileMapping& own) {
        return std::tie(own.transposed, own.pe_rows, own.pe_cols, own.gang_rows, own.gang_cols);
    };
    const bool same_slots = row_slots_.used() && slots_of(mapping) == slots_of(mapping_);
    mapping_ = mapping;
    view_ = ArrayView(command_, mapping.transposed);
    if (!same_slots) {
        row_slots_.clear(ceil_div(view_.rows, gang_rows()));
        col_slots_.clear(ceil_div(view_.cols, gang_cols()));
        slot_writes_.clear();
        beat_cols_ = -1;
    }
    tile_rows_ = gang_rows() * mapping.row_interleave;
    tile_cols_ = gang_cols() * mapping.col_interleave;
    batch_tiles_ = ceil_div(command_.batch, mapping.batch_interleave);
    row_tiles_ = ceil_div(view_.rows, tile_rows_);
    col_tiles_ = ceil_div(view_.cols, tile_cols_);
    a_lanes_ = lanes_of(*view_.row_operand);
    b_lanes_ = lanes_of(*view_.col_operand);
    row_fetches_.tile = -1;
    col_fetches_.tile = -1;
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

void TileCosts::find_step_kinds() {
    const std::int64_t a_lanes = lanes_of(command_.a);
    const std::int64_t b_lanes = lanes_of(command_.b);
    const std::int64_t partials = engine_.partial_sums;
    const std::int64_t last = command_.depth - 1;
    if (a_lanes * b_lanes * partials == 1) {
        if (last > 0) {
            step_kinds_.push_back({0, last});
        }
        return;
    }
    std::vector<StepKind> kinds(static_cast<std::size_t>(a_lanes * b_lanes * 2));
    for (std::int64_t k = 0; k < last; ++k) {
        const std::int64_t a = AccessTable::at(command_.a.depth, k) % a_lanes;
        const std::int64_t b = AccessTable::at(command_.b.depth, k) % b_lanes;
        const std::int64_t closes_group = k % partials == partials - 1 ? 1 : 0;
        StepKind& kind = kinds[static_cast<std::size_t>((a * b_lanes + b) * 2 + closes_group)];
        kind.first = k;
        ++kind.count;
    }
    std::copy_if(kinds.begin(), kinds.end(), std::back_inserter(step_kinds_),
                 [](const StepKind& kind) { return kind.count > 0; });
}

// Steps with the same dependency and the same residues of their operands' addresses are alike: each kind is added up at
// once.
StreamCost TileCosts::compute_stream(const Tile& tile, const Tokens& tokens) {
    set_bases(tile, tokens);
    const std::int64_t slots = tile.slots();
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
    for (const StepKind& kind : step_kinds_) {
        add(kind.first, kind.count);
    }
    add(command_.depth - 1, 1);
    cost.a_words = command_.depth * tile.rows * tile.batches;
    cost.b_words = command_.depth * tile.cols * tile.batches;
    const std::int64_t used = std::min<std::int64_t>(engine_.partial_sums, command_.depth);
    cost.fold = static_cast<std::uint64_t>((used - 1) * std::max<std::int64_t>(slots, engine_.add_latency_cycles));
    return cost;
}

WriteCost TileCosts::compute_write(const Tile& tile, const Tokens& tokens) {
    WriteCost total;
    for (std::int64_t i = 0; i < tile.batches; ++i) {
        const Tile own = tile.of_batch(i);
        total += batch_write(own, token_of(tokens, own.batch));
        total.cycles += bursts_end_in_memory_ ? write_latency_cycles_ : 0;
    }
    return total;
}

WriteCost TileCosts::batch_write(const Tile& tile, std::int32_t token) {
    std::int64_t residues = 0;
    for (const AccessTable* access : {&command_.out, &command_.residual, &command_.bias}) {
        const int lanes = lanes_of(*access);
        if (lanes > 1) {
            residues = residues * lanes + base_of(*access, tile, token) % lanes;
        }
    }
    WriteCost total;
    for (std::int64_t slot_col = 0; slot_col < tile.col_slots; ++slot_col) {
        const std::int64_t col_kind =
            col_slots_.kind(tile.col_tile * mapping_.col_interleave + slot_col, col_runs(), gang_cols(), view_.cols);
        for (std::int64_t slot_row = 0; slot_row < tile.row_slots; ++slot_row) {
            const std::int64_t row_kind = row_slots_.kind(tile.row_tile * mapping_.row_interleave + slot_row,
                                                          row_runs(), gang_rows(), view_.rows);
            const auto [known, is_new] = slot_writes_.try_emplace({row_kind, col_kind, residues});
            if (is_new) {
                if (col_kind != beat_cols_) {
                    beat_cols_ = col_kind;
                    forget_beats(0);
                }
                known->second = slot_write(tile, token, slot_row, slot_col);
            }
            total += known->second;
        }
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
    const std::int64_t end_row = std::min(first_row + pe_rows(), tile.rows);
    // Whether the rows of the beat after that of a row lie as its rows do.
    const auto same_rows = [&](std::int64_t row, std::int64_t engines) {
        const std::int64_t index = tile.row_begin + row;
        bool same = true;
        for (std::int64_t i = 1; i < engines && same; ++i) {
            same = row_runs().same_step(index, index + i * pe_rows());
        }
        return same;
    };
    WriteCost total;
    for (std::int64_t row = first_row; row < end_row;) {
        const std::int64_t engines = std::min<std::int64_t>(mapping_.gang_rows, ceil_div(tile.rows - row, pe_rows()));
        if (engines != beat_engines_) {
            forget_beats(engines);
        }
        // Beats alike follow one another.
        const std::int64_t end_alike = std::min(end_row, tile.rows - (engines - 1) * pe_rows());
        std::int64_t next = row + 1;
        if (row_runs().all_alike()) {
            next = end_alike;
        }
        while (next < end_alike && row_runs().alike(tile.row_begin + next - 1, tile.row_begin + next, 1) &&
               same_rows(next - 1, engines)) {
            ++next;
        }
        add_beats(total, tile, token, row, {engines, col_begin, col_end}, next - row);
        row = next;
    }
    return total;
}

void TileCosts::forget_beats(std::int64_t engines) {
    beat_engines_ = engines;
    for (BeatCosts& known : beat_costs_) {
        known.rows.clear();
        known.costs.clear();
    }
}

std::size_t TileCosts::BeatCosts::find(const std::vector<std::int32_t>& wanted, int lanes) {
    std::size_t pattern = 0;
    for (; pattern * wanted.size() < rows.size(); ++pattern) {
        const auto own = rows.begin() + static_cast<std::ptrdiff_t>(pattern * wanted.size());
        if (std::equal(wanted.begin(), wanted.end(), own)) {
            return pattern;
        }
    }
    rows.insert(rows.end(), wanted.begin(), wanted.end());
    costs.resize(costs.size() + static_cast<std::size_t>(lanes));
    return pattern;
}

const AccessCost& TileCosts::beat_cost(BeatCosts& known, const AccessTable& access, const Tile& tile,
                                       std::int32_t token, std::int64_t row, const Beat& beat) {
    const RamGeometry& ram = rams_[index_of(access.ram)];
    const std::vector<std::int32_t>& table = view_.rows_of(access);
    const std::int64_t first = AccessTable::at(table, tile.row_begin + row);
    const std::int64_t residue = ram.lanes == 1 ? 0 : (base_of(access, tile, token) + first) % ram.lanes;
    beat_rows_.assign(1, 0);
    for (std::int64_t i = 1; i < beat.engines; ++i) {
        beat_rows_.push_back(
            static_cast<std::int32_t>(AccessTable::at(table, tile.row_begin + row + i * pe_rows()) - first));
    }
    const std::size_t pattern = known.find(beat_rows_, ram.lanes);
    AccessCost& cost = known.costs[pattern * static_cast<std::size_t>(ram.lanes) + static_cast<std::size_t>(residue)];
    if (cost.words == 0) {
        // Offsets from the first row may be negative: whole turns around the banks keep addresses positive.
        const std::int64_t turn = std::int64_t{ram.banks} * ram.lanes;
        const std::int64_t lowest = *std::min_element(beat_rows_.begin(), beat_rows_.end());
        cost = counter_.cost(ram, residue + ceil_div(-lowest, turn) * turn, beat_rows_, 0, beat.engines,
                             view_.cols_of(access), beat.col_begin, beat.col_end);
    }
    return cost;
}

void TileCosts::add_beats(WriteCost& total, const Tile& tile, std::int32_t token, std::int64_t row, const Beat& beat,
                          std::int64_t times) {
    const auto add = [&](BeatCosts& known, const AccessTable& access, std::int64_t& words, std::int64_t& rows,
                         std::int64_t& conflicts) -> std::int64_t {
        const AccessCost& cost = beat_cost(known, access, tile, token, row, beat);
        words += times * cost.words;
        rows += times * cost.rows;
        conflicts += times * cost.conflict_cycles();
        return cost.cycles;
    };
    std::int64_t cycles = add(beat_costs_[0], command_.out, total.words, total.rows, total.conflicts);
    if (command_.residual.present || command_.bias.present) {
        const auto charge = [this](const AccessTable& access, std::int64_t own_cycles) {
            beat_ports_.charge(access.ram, rams_[index_of(access.ram)].ports, own_cycles);
        };
        beat_ports_.clear();
        charge(command_.out, cycles);
        if (command_.residual.present) {
            charge(command_.residual, add(beat_costs_[1], command_.residual, total.residual_words, total.residual_rows,
                                          total.residual_conflicts));
        }
        if (command_.bias.present) {
            charge(command_.bias,
                   add(beat_costs_[2], command_.bias, total.bias_words, total.bias_rows, total.bias_conflicts));
        }
        cycles = beat_ports_.cycles();
    }
    total.cycles += static_cast<std::uint64_t>(times * cycles);
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

TileCosts::FetchCost TileCosts::slots_fetch(const AccessTable& access, const std::vector<std::int32_t>& table,
                                            const AddressRuns& runs, std::int64_t first_slot, std::int64_t slots,
                                            std::int64_t width, std::int64_t extent, std::int64_t residue) {
    FetchCost total;
    FetchCost slot;
    for (std::int64_t begin = first_slot * width; begin < std::min((first_slot + slots) * width, extent);
         begin += width) {
        const bool again = slot.slots > 0 && begin + width <= extent && runs.alike(begin - width, begin, width);
        if (!again) {
            const AccessCost cost =
                counter_.cost(rams_[index_of(access.ram)], residue, table, begin, std::min(begin + width, extent));
            slot = {cost.cycles, cost.rows, 1};
        }
        total += slot;
    }
    return total;
}

TileCosts::FetchCost& TileCosts::remembered(Fetches& fetches, std::int64_t tile, std::int64_t residue, int lanes) {
    if (fetches.tile != tile) {
        fetches.tile = tile;
        fetches.by_residue.assign(static_cast<std::size_t>(lanes), {});
    }
    return fetches.by_residue[static_cast<std::size_t>(residue)];
}

TileCosts::FetchCost TileCosts::row_fetch(std::int64_t row_tile, std::int64_t residue) {
    FetchCost& cost = remembered(row_fetches_, row_tile, residue, a_lanes_);
    if (cost.slots == 0) {
        cost = slots_fetch(*view_.row_operand, *view_.row_table, row_runs(), row_tile * mapping_.row_interleave,
                           mapping_.row_interleave, gang_rows(), view_.rows, residue);
    }
    return cost;
}

TileCosts::FetchCost TileCosts::col_fetch(std::int64_t col_tile, std::int64_t residue) {
    FetchCost& cost = remembered(col_fetches_, col_tile, residue, b_lanes_);
    if (cost.slots == 0) {
        cost = slots_fetch(*view_.col_operand, *view_.col_table, col_runs(), col_tile * mapping_.col_interleave,
                           mapping_.col_interleave, gang_cols(), view_.cols, residue);
    }
    return cost;
}

std::int64_t TileCosts::base_of(const AccessTable& access, const Tile& tile, std::int32_t token) const {
    return access.base + AccessTable::at(access.batch, tile.batch) + access.token_offset(token);
}

int TileCosts::lanes_of(const AccessTable& access) const {
    return access.present ? rams_[index_of(access.ram)].lanes : 1;
}

void TileTiming::set_mapping(const TileMapping& mapping) {
    TileCosts::set_mapping(mapping);
    prepared_ = false;
}

void TileTiming::find_kinds() {
    const auto find = [](Kinds& kinds, const AddressRuns& runs, std::int64_t tiles, std::int64_t width,
                         std::int64_t extent) {
        kinds.clear(tiles);
        for (std::int64_t tile = 0; tile < tiles; ++tile) {
            (void)kinds.kind(tile, runs, width, extent);
        }
    };
    find(row_kinds_, row_runs(), row_tiles_, tile_rows_, view_.rows);
    find(col_kinds_, col_runs(), col_tiles_, tile_cols_, view_.cols);
}

void TileTiming::prepare() {
    prepared_ = true;
    find_kinds();
    const auto places = static_cast<std::size_t>(row_kinds_.count() * col_kinds_.count());
    streams_.resize(places * static_cast<std::size_t>(a_lanes_ * b_lanes_));
    stream_known_.assign(streams_.size(), false);
    const int out_lanes = lanes_of(command_.out) * lanes_of(command_.residual) * lanes_of(command_.bias);
    writes_.resize(places * static_cast<std::size_t>(out_lanes));
    write_known_.assign(writes_.size(), false);
    batch_streams_.clear();
    batch_writes_.clear();
}

const StreamCost& TileTiming::stream(const Tile& tile, const Tokens& tokens) {
    if (!prepared_) {
        prepare();
    }
    const std::int64_t place = place_of(tile);
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
    if (!prepared_) {
        prepare();
    }
    const std::int64_t place = place_of(tile);
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

bool TileTiming::batches_alike(const Tile& x, const Tile& y) const {
    if (x.batches != y.batches) {
        return false;
    }
    for (const AccessTable* access : {&command_.a, &command_.b, &command_.out, &command_.residual, &command_.bias}) {
        const int lanes = lanes_of(*access);
        for (std::int64_t i = 0; i < x.batches && lanes > 1; ++i) {
            if ((base_of(*access, x.of_batch(i), 0) - base_of(*access, y.of_batch(i), 0)) % lanes != 0) {
                return false;
            }
        }
    }
    return true;
}

std::uint64_t TileTiming::kernel_cycles(std::uint64_t limit) {
    constexpr std::uint64_t kBurst = 2;  // edges between two grants of a burst's kind, at least
    find_kinds();
    std::uint64_t begin = 0;  // of the tile's stream, from the first one on
    std::uint64_t array_free = 0;
    std::array<std::uint64_t, 2> buffer_free{};  // edge at which the burst that empties a buffer lets go of it
    std::uint64_t write_begin = 0;
    std::uint64_t write_cycles = 0;
    Tile batch_before;
    std::int64_t t = 0;
    const std::int64_t per_batch = row_tiles_ * col_tiles_;
    for (std::int64_t batch_tile = 0; batch_tile < batch_tiles_; ++batch_tile) {
        const Tile batch = tile(batch_tile * per_batch);
        if (batch_tile == 0 || !batches_alike(batch_before, batch)) {
            cycles_.assign(static_cast<std::size_t>(row_kinds_.count() * col_kinds_.count()), {});
        }
        batch_before = batch;
        for (std::int64_t row_tile = 0; row_tile < row_tiles_; ++row_tile) {
            for (std::int64_t col_tile = 0; col_tile < col_tiles_; ++col_tile, ++t) {
                TileCycles& cycles =
                    cycles_[static_cast<std::size_t>(row_kinds_[row_tile] * col_kinds_.count() + col_kinds_[col_tile])];
                if (cycles.stream == 0) {
                    const Tile own = tile(t);
                    const StreamCost cost = compute_stream(own, {});
                    cycles = {cost.cycles + cost.fold, compute_write(own, {}).cycles};
                }
                std::uint64_t& own_buffer = buffer_free[static_cast<std::size_t>(t % 2)];
                if (t > 0) {
                    begin = std::max({array_free, begin + kBurst, own_buffer});
                }
                array_free = begin + cycles.stream;
                const std::uint64_t sums = array_free - 1 + pipeline_cycles();
                write_begin = t == 0 ? sums : std::max(sums, write_begin + std::max(write_cycles, kBurst));
                write_cycles = cycles.write;
                own_buffer = write_begin + std::max(write_cycles, kBurst);
                if (write_begin >= limit) {
                    return write_begin;
                }
            }
        }
    }
    return write_begin + write_cycles + 1 + end_cycles();
}

std::uint64_t TileTiming::step_cycles(const Tile& tile, const Tokens& tokens, std::int64_t k) {
    set_bases(tile, tokens);
    return combine(dependency_cycles(k, tile.slots()), row_fetches(tile, k), col_fetches(tile, k));
}

}  // namespace contraflow
