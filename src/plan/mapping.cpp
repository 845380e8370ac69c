#include "plan/mapping.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "common/integer_math.h"
#include "engine/tile_timing.h"

namespace contraflow {

namespace {

// What one tile keeps busy, in cycles.
struct TileLoad {
    std::int64_t stream = 0;  // folding of partial sums included
    std::int64_t write = 0;
};

// What is the same under every mapping.
struct Latencies {
    std::int64_t pipeline = 0, write = 0;
    bool bursts_end_in_memory = false;

    explicit Latencies(const TileCosts& costs)
        : pipeline(static_cast<std::int64_t>(costs.pipeline_cycles())),
          write(static_cast<std::int64_t>(costs.write_latency_cycles())),
          bursts_end_in_memory(costs.bursts_end_in_memory()) {}
};

// A kernel alone: `full` for every tile but the last. In steady state a tile takes the longest of its stream, its
// write-back, and half of what an accumulator buffer goes through: stream, pipeline, write-back.
std::int64_t kernel_cycles(const Latencies& latencies, std::int64_t tiles, const TileLoad& full, const TileLoad& last) {
    const std::int64_t buffer = full.stream + latencies.pipeline - 1 + full.write;
    const std::int64_t twice_the_period = std::max({2 * full.stream, 2 * full.write, buffer});
    return twice_the_period * (tiles - 1) / 2 + last.stream + latencies.pipeline + last.write + latencies.write;
}

// Slots of a tile along one dimension: complete ones, and perhaps one that the output does not fill.
struct Slots {
    std::int64_t complete = 0, partial = 0;
    std::int64_t partial_beats = 0;  // write-back beats of the partial one if the dimension runs down the rows

    [[nodiscard]] std::int64_t all() const { return complete + partial; }
};

// How one dimension of the output is cut: `extent` indices over `pes` PEs (`engine_pes` of each engine along it).
struct Cut {
    std::int64_t slots = 1, tiles = 1;
    Slots full, last;  // of every tile but the last, and of the last

    Cut(std::int64_t extent, std::int64_t pes, std::int64_t engine_pes, std::int64_t wanted_slots)
        : slots(wanted_slots), tiles(ceil_div(extent, pes * wanted_slots)) {
        const std::int64_t rest = extent - (tiles - 1) * pes * slots;
        last.complete = rest / pes;
        const std::int64_t left = rest - last.complete * pes;
        last.partial = left > 0 ? 1 : 0;
        last.partial_beats = std::min(engine_pes, left);
        full = tiles > 1 ? Slots{slots, 0, 0} : last;
    }
};

struct Candidate {
    TileMapping mapping;
    std::int64_t tiles = 1;
    TileLoad full, last;      // if no bank ever conflicts
    std::int64_t cycles = 0;  // with those; once predicted, with the conflicts of the first tile
    bool predicted = false;
};

class CandidateList {
public:
    CandidateList(const EngineConfig& engine, const std::vector<RamGeometry>& rams, const ContractionCommand& command,
                  const Latencies& latencies, const MappingRule* rule)
        : engine_(engine), rams_(rams), command_(command), latencies_(latencies), rule_(rule) {}

    // All mappings on a gang of this size that use whole engines, as far as the output reaches: no more slots than it
    // has work for.
    std::vector<Candidate>& whole(int gang) {
        candidates_.clear();
        limit_ = std::numeric_limits<std::int64_t>::max();
        for_each_array(gang, [&](const Array& array) { add(array, array.most_rows, array.most_cols); });
        return candidates_;
    }

    // Those that use a part of each engine and take less than `limit` cycles if no bank ever conflicts.
    std::vector<Candidate>& parts(int gang, std::int64_t limit) {
        candidates_.clear();
        limit_ = limit;
        for_each_array(gang, [&](const Array& array) {
            const bool all = std::int64_t{array.most_rows} * array.most_cols <= kMostParts;
            // Of a very large array only sizes that fill the last slot best.
            const auto fewer = [all](int pes, std::int64_t extent, int engines) {
                const std::int64_t slots = ceil_div(extent, std::int64_t{engines} * pes) + 1;
                return all ? pes - 1
                           : static_cast<int>(std::min<std::int64_t>(pes - 1, ceil_div(extent, engines * slots)));
            };
            for (int rows = array.most_rows; rows > 0; rows = fewer(rows, array.view.rows, array.gang_rows)) {
                for (int cols = array.most_cols; cols > 0; cols = fewer(cols, array.view.cols, array.gang_cols)) {
                    const std::int64_t slots = command_.batch * ceil_div(array.view.rows, array.gang_rows * rows) *
                                               ceil_div(array.view.cols, array.gang_cols * cols);
                    if (slots * command_.depth + latencies_.pipeline >= limit) {
                        break;  // fewer columns take longer still
                    }
                    if (rows < array.most_rows || cols < array.most_cols) {
                        add(array, rows, cols);
                    }
                }
            }
        });
        return candidates_;
    }

private:
    static constexpr std::int64_t kMostParts = 1024;

    // A gang in one orientation and arrangement.
    struct Array {
        ArrayView view;
        bool transposed;
        int gang_rows, gang_cols;
        int most_rows, most_cols;  // PEs of an engine that get an output if all are used
    };
    template <typename Use>
    void for_each_array(int gang, Use use) const {
        for (const bool transposed : {false, true}) {
            const ArrayView view(command_, transposed);
            for (int rows = 1; rows <= gang; ++rows) {
                if (gang % rows == 0) {
                    const int cols = gang / rows;
                    const auto most = [](int pes, std::int64_t extent, int engines) {
                        return static_cast<int>(std::min<std::int64_t>(pes, ceil_div(extent, engines)));
                    };
                    use(Array{view, transposed, rows, cols, most(engine_.rows, view.rows, rows),
                              most(engine_.cols, view.cols, cols)});
                }
            }
        }
    }

    // All ways to interleave on this part of each engine.
    void add(const Array& array, int pe_rows, int pe_cols) {
        const ArrayView& view = array.view;
        const int gang_rows = array.gang_rows;
        const int gang_cols = array.gang_cols;
        cuts(row_cuts_, view.rows, gang_rows, pe_rows);
        cuts(col_cuts_, view.cols, gang_cols, pe_cols);
        // Memory cycles that a slot's words take at least.
        const std::int64_t row_fetch = fetch(*view.row_operand, *view.row_table, gang_rows * pe_rows);
        const std::int64_t col_fetch = fetch(*view.col_operand, *view.col_table, gang_cols * pe_cols);
        const std::int64_t write_col = ceil_div(std::int64_t{gang_cols} * pe_cols, width_of(command_.out));
        const std::int64_t write_all = ceil_div(std::int64_t{gang_rows} * gang_cols * pe_cols, width_of(command_.out));
        const auto load = [&](const Slots& row, const Slots& col, std::int64_t batches) -> TileLoad {
            const std::int64_t fetched =
                std::max(row.complete * row_fetch + row.partial, col.complete * col_fetch + col.partial);
            const std::int64_t beats = row.complete * pe_rows + row.partial_beats;
            return {stream(batches * row.all() * col.all(), batches * fetched),
                    batches * write(beats * col.partial + col.complete * (row.complete * pe_rows * write_all +
                                                                          row.partial_beats * write_col))};
        };
        for (const Cut& row : row_cuts_) {
            for (const Cut& col : col_cuts_) {
                if (row.slots * col.slots > engine_.interleave) {
                    break;
                }
                // Batches side by side fill what a single tile of small outputs leaves of the pipeline.
                const bool single = row.tiles == 1 && col.tiles == 1;
                const std::int64_t most =
                    single ? std::min(command_.batch, engine_.interleave / (row.slots * col.slots)) : 1;
                for (std::int64_t batches = 1; batches <= most; ++batches) {
                    Candidate candidate;
                    candidate.mapping = {array.transposed,
                                         pe_rows,
                                         pe_cols,
                                         gang_rows,
                                         gang_cols,
                                         static_cast<int>(row.slots),
                                         static_cast<int>(col.slots),
                                         static_cast<int>(batches)};
                    const std::int64_t batch_tiles = ceil_div(command_.batch, batches);
                    candidate.tiles = batch_tiles * row.tiles * col.tiles;
                    candidate.full = load(row.full, col.full, batches);
                    candidate.last = load(row.last, col.last, command_.batch - (batch_tiles - 1) * batches);
                    candidate.cycles = kernel_cycles(latencies_, candidate.tiles, candidate.full, candidate.last);
                    if (candidate.cycles < limit_ && obeys(candidate.mapping)) {
                        candidates_.push_back(candidate);
                    }
                }
            }
        }
    }

    [[nodiscard]] bool obeys(const TileMapping& mapping) const {
        return rule_ == nullptr ||
               (mapping.transposed == rule_->transposed &&
                (rule_->rows == 0 || (mapping.row_interleave == rule_->rows && mapping.col_interleave == rule_->cols &&
                                      mapping.batch_interleave == rule_->batches)));
    }
    [[nodiscard]] std::int64_t width_of(const AccessTable& access) const {
        const RamGeometry& ram = rams_[index_of(access.ram)];
        return std::int64_t{ram.banks} * ram.lanes;
    }
    [[nodiscard]] std::int64_t fetch(const AccessTable& access, const std::vector<std::int32_t>& table,
                                     std::int64_t pes) const {
        return table.empty() ? 1 : ceil_div(pes, width_of(access));
    }

    void cuts(std::vector<Cut>& list, std::int64_t extent, int gang, int engine_pes) const {
        list.clear();
        const std::int64_t pes = std::int64_t{gang} * engine_pes;
        const std::int64_t most = std::min<std::int64_t>(engine_.interleave, ceil_div(extent, pes));
        for (std::int64_t slots = 1; slots <= most; ++slots) {
            list.emplace_back(extent, pes, engine_pes, slots);
        }
    }

    // All steps but the last come in groups of one step per partial sum, the last of which waits for the adder.
    [[nodiscard]] std::int64_t stream(std::int64_t slots, std::int64_t fetched) const {
        const std::int64_t add = engine_.add_latency_cycles;
        const std::int64_t partials = engine_.partial_sums;
        const std::int64_t groups = partials == 1 ? command_.depth - 1 : (command_.depth - 1) / partials;
        const std::int64_t compute =
            command_.depth * slots + groups * std::max<std::int64_t>(0, add - partials * slots);
        return std::max(compute, command_.depth * fetched) +
               (std::min(partials, command_.depth) - 1) * std::max(slots, add);
    }
    [[nodiscard]] std::int64_t write(std::int64_t beats) const {
        return beats + (latencies_.bursts_end_in_memory ? latencies_.write : 0);
    }

    const EngineConfig& engine_;
    const std::vector<RamGeometry>& rams_;
    const ContractionCommand& command_;
    const Latencies& latencies_;
    const MappingRule* rule_;
    std::vector<Cut> row_cuts_, col_cuts_;
    std::vector<Candidate> candidates_;
    std::int64_t limit_ = 0;
};

// Costs of tiles that remembers those of slots: mappings that cut a dimension alike share them.
class SlotCosts : public TileCosts {
public:
    using TileCosts::TileCosts;

private:
    struct Key {
        std::uint64_t cut = 0, slot = 0;
        bool operator==(const Key& other) const { return cut == other.cut && slot == other.slot; }
    };
    struct Hash {
        std::size_t operator()(const Key& key) const {
            constexpr std::uint64_t kMix = 0x9E3779B97F4A7C15;
            const std::uint64_t mixed = (key.cut * kMix ^ key.slot) * kMix;
            return static_cast<std::size_t>(mixed ^ (mixed >> 29U));
        }
    };

    FetchCost row_slot_fetch(std::int64_t slot, std::int64_t residue) override {
        return remembered(fetches_, {bits(gang_rows(), mapping().transposed ? 1 : 0), bits(slot, residue)},
                          [&] { return TileCosts::row_slot_fetch(slot, residue); });
    }
    FetchCost col_slot_fetch(std::int64_t slot, std::int64_t residue) override {
        return remembered(fetches_, {bits(gang_cols(), mapping().transposed ? 3 : 2), bits(slot, residue)},
                          [&] { return TileCosts::col_slot_fetch(slot, residue); });
    }
    WriteCost slot_write(const Tile& tile, std::int32_t token, std::int64_t slot_row, std::int64_t slot_col) override {
        const std::int64_t row = tile.row_begin / gang_rows() + slot_row;
        const std::int64_t col = tile.col_begin / gang_cols() + slot_col;
        // Batches count as the first one.
        const std::int64_t array = 2 * gang_cols() + (mapping().transposed ? 1 : 0);
        return remembered(writes_, {bits(pe_rows() << 16 | mapping().gang_rows, array), bits(row, col)},
                          [&] { return TileCosts::slot_write(tile, token, slot_row, slot_col); });
    }

    static std::uint64_t bits(std::int64_t high, std::int64_t low) {
        return static_cast<std::uint64_t>(high) << 32U | static_cast<std::uint64_t>(low);
    }
    template <typename Cost, typename Compute>
    static Cost remembered(std::unordered_map<Key, Cost, Hash>& known, const Key& key, Compute compute) {
        const auto found = known.find(key);
        return found != known.end() ? found->second : known.emplace(key, compute()).first->second;
    }

    std::unordered_map<Key, FetchCost, Hash> fetches_;
    std::unordered_map<Key, WriteCost, Hash> writes_;
};

// The first tile with its conflicts; they stretch the last tile in proportion.
std::int64_t predicted_cycles(const Latencies& latencies, TileCosts& costs, const Candidate& candidate) {
    costs.set_mapping(candidate.mapping);
    const Tile tile = costs.tile(0);
    const StreamCost stream = costs.compute_stream(tile, {});
    const TileLoad full{static_cast<std::int64_t>(stream.cycles + stream.fold),
                        static_cast<std::int64_t>(costs.compute_write(tile, {}).cycles)};
    const TileLoad last{ceil_div(candidate.last.stream * full.stream, candidate.full.stream),
                        ceil_div(candidate.last.write * full.write, candidate.full.write)};
    return kernel_cycles(latencies, candidate.tiles, full, last);
}

// The fastest mapping, by estimates that become exact as far as is needed: of the candidates that promise the fewest
// cycles, first the first tile's conflicts are counted, then all tiles.
class Search {
public:
    Search(const EngineConfig& engine, const std::vector<RamGeometry>& rams, const ContractionCommand& command,
           const Latencies& latencies, SlotCosts& costs)
        : engine_(engine), rams_(rams), command_(command), latencies_(latencies), costs_(costs) {}

    void look_at(std::vector<Candidate>& candidates) {
        const auto later = [](const Candidate& a, const Candidate& b) { return a.cycles > b.cycles; };
        std::make_heap(candidates.begin(), candidates.end(), later);
        int counted = 0;
        while (!candidates.empty() && candidates.front().cycles < cycles_ && counted < kMostCounted) {
            std::pop_heap(candidates.begin(), candidates.end(), later);
            Candidate& next = candidates.back();
            if (!next.predicted) {
                next.cycles = predicted_cycles(latencies_, costs_, next);
                next.predicted = true;
                std::push_heap(candidates.begin(), candidates.end(), later);
                continue;
            }
            const std::int64_t cycles =
                next.tiles > kMostTiles
                    ? next.cycles
                    : static_cast<std::int64_t>(TileTiming(engine_, rams_, command_, next.mapping).kernel_cycles());
            if (cycles < cycles_) {
                cycles_ = cycles;
                mapping_ = next.mapping;
            }
            candidates.pop_back();
            ++counted;
        }
    }

    [[nodiscard]] std::int64_t cycles() const { return cycles_; }
    [[nodiscard]] const TileMapping& mapping() const { return mapping_; }

private:
    // Estimates that are too low by far could lead through all candidates.
    static constexpr int kMostCounted = 8;
    static constexpr std::int64_t kMostTiles = 64;  // of more, the first and the last say enough

    const EngineConfig& engine_;
    const std::vector<RamGeometry>& rams_;
    const ContractionCommand& command_;
    const Latencies& latencies_;
    SlotCosts& costs_;
    std::int64_t cycles_ = std::numeric_limits<std::int64_t>::max();
    TileMapping mapping_;
};

}  // namespace

MappingChoice choose_mappings(const EngineConfig& engine, const std::vector<RamGeometry>& rams,
                              const ContractionCommand& command, int engines, const MappingRule* rule) {
    MappingChoice choice;
    choice.mappings.resize(static_cast<std::size_t>(engines) + 1);
    choice.cycles.resize(static_cast<std::size_t>(engines) + 1);
    SlotCosts costs(engine, rams, command, {});
    const Latencies latencies(costs);
    CandidateList list(engine, rams, command, latencies, rule);
    for (int gang = 1; gang <= engines; ++gang) {
        Search search(engine, rams, command, latencies, costs);
        search.look_at(list.whole(gang));
        search.look_at(list.parts(gang, search.cycles()));
        const auto index = static_cast<std::size_t>(gang);
        choice.mappings[index] = search.mapping();
        choice.cycles[index] = static_cast<std::uint64_t>(search.cycles());
        if (choice.cycles[index] == kNoMapping && gang > 1) {
            choice.cycles[index] = choice.cycles[index - 1];  // no faster, so that the smaller gang is taken
        }
    }
    return choice;
}

}  // namespace contraflow
