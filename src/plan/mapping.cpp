#include "plan/mapping.h"

#include <algorithm>
#include <limits>
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
    TileLoad full, last;     // if no bank ever conflicts
    std::int64_t bound = 0;  // cycles with those: no prediction is below it
};

class CandidateList {
public:
    CandidateList(const EngineConfig& engine, const std::vector<RamGeometry>& rams, const ContractionCommand& command,
                  const Latencies& latencies)
        : engine_(engine), rams_(rams), command_(command), latencies_(latencies) {}

    // All mappings on a gang of this size: no more slots than the output has work for.
    std::vector<Candidate>& of(int gang) {
        candidates_.clear();
        for (const bool transposed : {false, true}) {
            const ArrayView view(command_, transposed);
            for (int gang_rows = 1; gang_rows <= gang; ++gang_rows) {
                if (gang % gang_rows == 0) {
                    add(view, transposed, gang_rows, gang / gang_rows);
                }
            }
        }
        return candidates_;
    }

private:
    void add(const ArrayView& view, bool transposed, int gang_rows, int gang_cols) {
        cuts(row_cuts_, view.rows, gang_rows, engine_.rows);
        cuts(col_cuts_, view.cols, gang_cols, engine_.cols);
        // Memory cycles that a slot's words take at least.
        const std::int64_t row_fetch = fetch(*view.row_operand, *view.row_table, gang_rows * engine_.rows);
        const std::int64_t col_fetch = fetch(*view.col_operand, *view.col_table, gang_cols * engine_.cols);
        const std::int64_t write_col = ceil_div(std::int64_t{gang_cols} * engine_.cols, width_of(command_.out));
        const std::int64_t write_all =
            ceil_div(std::int64_t{gang_rows} * gang_cols * engine_.cols, width_of(command_.out));
        const auto load = [&](const Slots& row, const Slots& col, std::int64_t batches) -> TileLoad {
            const std::int64_t fetched =
                std::max(row.complete * row_fetch + row.partial, col.complete * col_fetch + col.partial);
            const std::int64_t beats = row.complete * engine_.rows + row.partial_beats;
            return {stream(batches * row.all() * col.all(), batches * fetched),
                    batches * write(beats * col.partial + col.complete * (row.complete * engine_.rows * write_all +
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
                    candidate.mapping = {transposed,
                                         gang_rows,
                                         gang_cols,
                                         static_cast<int>(row.slots),
                                         static_cast<int>(col.slots),
                                         static_cast<int>(batches)};
                    const std::int64_t batch_tiles = ceil_div(command_.batch, batches);
                    candidate.tiles = batch_tiles * row.tiles * col.tiles;
                    candidate.full = load(row.full, col.full, batches);
                    candidate.last = load(row.last, col.last, command_.batch - (batch_tiles - 1) * batches);
                    candidate.bound = kernel_cycles(latencies_, candidate.tiles, candidate.full, candidate.last);
                    candidates_.push_back(candidate);
                }
            }
        }
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
    std::vector<Cut> row_cuts_, col_cuts_;
    std::vector<Candidate> candidates_;
};

// Costs of tiles that remembers those of slots: mappings that differ in their interleave alone share them.
class SlotCosts : public TileCosts {
public:
    using TileCosts::TileCosts;

    void set_mapping(const TileMapping& mapping) override {
        const TileMapping& before = this->mapping();
        if (mapping.transposed != before.transposed || mapping.gang_rows != before.gang_rows ||
            mapping.gang_cols != before.gang_cols) {
            fetches_.clear();
            writes_.clear();
        }
        TileCosts::set_mapping(mapping);
    }

private:
    FetchCost row_slot_fetch(std::int64_t slot, std::int64_t residue) override {
        return remembered(fetches_, key(0, slot, residue), [&] { return TileCosts::row_slot_fetch(slot, residue); });
    }
    FetchCost col_slot_fetch(std::int64_t slot, std::int64_t residue) override {
        return remembered(fetches_, key(1, slot, residue), [&] { return TileCosts::col_slot_fetch(slot, residue); });
    }
    WriteCost slot_write(const Tile& tile, std::int32_t token, std::int64_t slot_row, std::int64_t slot_col) override {
        const std::int64_t row = tile.row_begin / gang_rows() + slot_row;
        const std::int64_t col = tile.col_begin / gang_cols() + slot_col;
        // Batches count as the first one.
        return remembered(writes_, key(0, row, col),
                          [&] { return TileCosts::slot_write(tile, token, slot_row, slot_col); });
    }

    static std::uint64_t key(std::uint64_t kind, std::int64_t a, std::int64_t b) {
        return (kind << 62U) | (static_cast<std::uint64_t>(a) << 31U) | static_cast<std::uint64_t>(b);
    }
    template <typename Cost, typename Compute>
    static Cost remembered(std::vector<std::pair<std::uint64_t, Cost>>& known, std::uint64_t key, Compute compute) {
        for (const auto& [own, cost] : known) {
            if (own == key) {
                return cost;
            }
        }
        known.emplace_back(key, compute());
        return known.back().second;
    }

    std::vector<std::pair<std::uint64_t, FetchCost>> fetches_;  // few: a linear search is the fastest
    std::vector<std::pair<std::uint64_t, WriteCost>> writes_;
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

}  // namespace

MappingChoice choose_mappings(const EngineConfig& engine, const std::vector<RamGeometry>& rams,
                              const ContractionCommand& command, int engines) {
    MappingChoice choice;
    choice.mappings.resize(static_cast<std::size_t>(engines) + 1);
    choice.cycles.resize(static_cast<std::size_t>(engines) + 1);
    SlotCosts costs(engine, rams, command, {});
    const Latencies latencies(costs);
    CandidateList list(engine, rams, command, latencies);
    for (int gang = 1; gang <= engines; ++gang) {
        constexpr std::int64_t kTried = std::numeric_limits<std::int64_t>::max();
        std::vector<Candidate>& candidates = list.of(gang);
        std::int64_t best = kTried;
        // Lowest bound first. No candidate left is better than a prediction by more than what separates it from the
        // next bound; a 32nd is not worth the search.
        while (true) {
            Candidate& next = *std::min_element(candidates.begin(), candidates.end(),
                                                [](const auto& a, const auto& b) { return a.bound < b.bound; });
            if (next.bound >= best - best / 32) {
                break;
            }
            next.bound = kTried;
            const std::int64_t cycles = predicted_cycles(latencies, costs, next);
            if (cycles < best) {
                best = cycles;
                choice.mappings[static_cast<std::size_t>(gang)] = next.mapping;
            }
        }
        choice.cycles[static_cast<std::size_t>(gang)] = static_cast<std::uint64_t>(best);
    }
    return choice;
}

}  // namespace contraflow
