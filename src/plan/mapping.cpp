#include "plan/mapping.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "common/access_cost.h"
#include "common/integer_math.h"
#include "engine/tile_timing.h"

namespace contraflow {

namespace {

// What one tile keeps busy, in cycles.
struct TileLoad {
    std::int64_t stream = 0;  // folding of partial sums included
    std::int64_t write = 0;

    [[nodiscard]] std::int64_t busiest() const { return std::max(stream, write); }
};

// What is the same under every mapping.
struct Latencies {
    std::int64_t pipeline = 0, write = 0;
    bool bursts_end_in_memory = false, shared_port = false;
    std::int64_t ends = 0;  // before the first tile's stream and after the last one's write-back

    explicit Latencies(const TileCosts& costs)
        : pipeline(static_cast<std::int64_t>(costs.pipeline_cycles())),
          write(static_cast<std::int64_t>(costs.write_latency_cycles())),
          bursts_end_in_memory(costs.bursts_end_in_memory()),
          shared_port(costs.shared_port()),
          ends(static_cast<std::int64_t>(costs.end_cycles())) {}
};

// A kernel alone: `full` for every tile but the last. In steady state a tile takes the longest of its stream, its
// write-back, and half of what an accumulator buffer goes through: stream, pipeline, write-back.
std::int64_t kernel_cycles(const Latencies& latencies, std::int64_t tiles, const TileLoad& full, const TileLoad& last) {
    const std::int64_t buffer = full.stream + latencies.pipeline - 1 + full.write;
    const std::int64_t twice_the_period = std::max({2 * full.stream, 2 * full.write, buffer});
    return twice_the_period * (tiles - 1) / 2 + last.stream + latencies.pipeline + last.write + latencies.ends;
}

// Slots of a tile, or of a whole dimension of the output: complete ones, and perhaps one that the output does not fill.
struct Slots {
    std::int64_t complete = 0, partial = 0;
    std::int64_t partial_beats = 0;  // write-back beats of the partial one if the dimension runs down the rows

    [[nodiscard]] std::int64_t all() const { return complete + partial; }
};

// How one dimension of the output is cut into tiles.
struct Cut {
    std::int64_t slots = 1, tiles = 1;
    Slots full, last;  // of every tile but the last, and of the last

    Cut(const Slots& all, std::int64_t wanted_slots)
        : slots(wanted_slots), tiles(ceil_div(all.all(), wanted_slots)), last(all) {
        last.complete -= (tiles - 1) * slots;
        full = tiles > 1 ? Slots{slots, 0, 0} : last;
    }
};

struct Candidate {
    TileMapping mapping;
    std::int64_t tiles = 1;
    TileLoad full, last;      // if all slots cost what the first does
    std::int64_t cycles = 0;  // with those; once predicted, with the true cost of the first tile
    bool predicted = false;
};

class CandidateList {
public:
    CandidateList(const EngineConfig& engine, const std::vector<RamGeometry>& rams, const ContractionCommand& command,
                  const Latencies& latencies, const MappingRule* rule)
        : engine_(engine),
          rams_(rams),
          command_(command),
          latencies_(latencies),
          rule_(rule),
          least_stream_(stream(1, 1)) {}

    // All mappings on a gang of this size that use whole engines, as far as the output reaches (no more slots than it
    // has work for), and promise less than `limit` cycles.
    std::vector<Candidate>& whole(int gang, std::int64_t limit) {
        candidates_.clear();
        limit_ = limit;
        for_each_array(gang, [&](const Array& array) {
            add(array, row_side(array, array.most_rows), col_side(array, array.most_cols));
        });
        return candidates_;
    }

    // Those that use a part of each engine and promise less than `limit()` cycles, one height after the other:
    // use(candidates).
    template <typename Limit, typename Use>
    void parts(int gang, Limit limit, Use use) {
        for_each_array(gang, [&](const Array& array) {
            const bool all = std::int64_t{array.most_rows} * array.most_cols <= kMostParts;
            // Of a very large array only sizes that fill the last slot best.
            const auto fewer = [all](int pes, std::int64_t extent, int engines) {
                const std::int64_t slots = ceil_div(extent, std::int64_t{engines} * pes) + 1;
                return all ? pes - 1
                           : static_cast<int>(std::min<std::int64_t>(pes - 1, ceil_div(extent, engines * slots)));
            };
            for (int rows = array.most_rows; rows > 0; rows = fewer(rows, array.view.rows, array.gang_rows)) {
                candidates_.clear();
                limit_ = limit();
                const Side row = row_side(array, rows);
                for (int cols = array.most_cols; cols > 0; cols = fewer(cols, array.view.cols, array.gang_cols)) {
                    const Side& col = col_side(array, cols);
                    const std::int64_t steps = command_.batch * command_.depth * row.slots.all() * col.slots.all();
                    if (steps + latencies_.pipeline >= limit_) {
                        break;  // fewer columns take longer still
                    }
                    if (col.least_write + latencies_.pipeline < limit_ &&
                        (rows < array.most_rows || cols < array.most_cols)) {
                        add(array, row, col);
                    }
                }
                use(candidates_);
            }
        });
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
    void for_each_array(int gang, Use use) {
        for (const bool transposed : {false, true}) {
            const ArrayView view(command_, transposed);
            for (int rows = 1; rows <= gang; ++rows) {
                if (gang % rows == 0) {
                    const int cols = gang / rows;
                    const auto most = [](int pes, std::int64_t extent, int engines) {
                        return static_cast<int>(std::min<std::int64_t>(pes, ceil_div(extent, engines)));
                    };
                    const Array array{view,
                                      transposed,
                                      rows,
                                      cols,
                                      most(engine_.rows, view.rows, rows),
                                      most(engine_.cols, view.cols, cols)};
                    col_sides_.assign(static_cast<std::size_t>(array.most_cols) + 1, {});
                    use(array);
                }
            }
        }
    }

    // One dimension of the output on a part of each engine.
    struct Side {
        int engine_pes = 0;
        std::int64_t pes = 0, left = 0;  // indices of a complete slot, and of the partial one
        Slots slots;
        std::int64_t fetch = 0, partial_fetch = 0;  // cycles of one step's words of such slots
        std::int64_t least_tiles = 1;
        std::int64_t least_write = 0;  // of columns: cycles of all write-back on any part of the rows

        [[nodiscard]] std::int64_t fetched(const Slots& own) const {
            return own.complete * fetch + own.partial * partial_fetch;
        }
    };

    [[nodiscard]] Side side(const AccessTable& access, const std::vector<std::int32_t>& table, std::int64_t extent,
                            int engines, int engine_pes) {
        Side own;
        own.engine_pes = engine_pes;
        own.pes = std::int64_t{engines} * engine_pes;
        own.slots.complete = extent / own.pes;
        own.left = extent - own.slots.complete * own.pes;
        own.slots.partial = own.left > 0 ? 1 : 0;
        own.slots.partial_beats = std::min<std::int64_t>(engine_pes, own.left);
        own.fetch = own.slots.complete > 0 ? fetch_cycles(access, table, own.pes) : 0;
        own.partial_fetch = own.left > 0 ? fetch_cycles(access, table, own.left) : 0;
        own.least_tiles = ceil_div(own.slots.all(), std::min<std::int64_t>(engine_.interleave, own.slots.all()));
        return own;
    }
    [[nodiscard]] Side row_side(const Array& array, int engine_rows) {
        const ArrayView& view = array.view;
        return side(*view.row_operand, *view.row_table, view.rows, array.gang_rows, engine_rows);
    }
    [[nodiscard]] const Side& col_side(const Array& array, int engine_cols) {
        Side& known = col_sides_[static_cast<std::size_t>(engine_cols)];
        if (known.pes == 0) {
            const ArrayView& view = array.view;
            known = side(*view.col_operand, *view.col_table, view.cols, array.gang_cols, engine_cols);
            known.least_write =
                command_.batch *
                write(ceil_div(view.rows, array.gang_rows) *
                      (known.slots.complete * row_beat(array, known.slots.complete > 0 ? known.pes : 0) +
                       known.slots.partial * row_beat(array, known.left)));
        }
        return known;
    }

    // Cycles of a write-back beat in a complete column slot and in the partial one: of all engines, and of one engine
    // row.
    struct Beats {
        std::int64_t complete = 0, partial = 0;
        std::int64_t complete_row = 0, partial_row = 0;

        // Of all beats of these slots; those of a partial row slot as if of one engine row.
        [[nodiscard]] std::int64_t written(const Slots& rows, int pe_rows, const Slots& cols) const {
            return rows.complete * pe_rows * (cols.complete * complete + cols.partial * partial) +
                   rows.partial_beats * (cols.complete * complete_row + cols.partial * partial_row);
        }
    };

    // All ways to interleave on this part of each engine.
    void add(const Array& array, const Side& rows, const Side& cols) {
        const auto both = [this](std::int64_t a, std::int64_t b) {
            return latencies_.shared_port ? a + b : std::max(a, b);
        };

        // What no interleave can beat. Each slot of one dimension is fetched again for each tile of the other.
        const std::int64_t slots = rows.slots.all() * cols.slots.all();
        const std::int64_t tiles = slots > engine_.interleave ? command_.batch * rows.least_tiles * cols.least_tiles
                                                              : ceil_div(command_.batch, engine_.interleave / slots);
        const std::int64_t steps =
            both(cols.least_tiles * rows.fetched(rows.slots), rows.least_tiles * cols.fetched(cols.slots));
        const std::int64_t streams =
            std::max(command_.batch * command_.depth * std::max(slots, steps), tiles * least_stream_);
        if (streams + latencies_.pipeline + latencies_.ends >= limit_) {
            return;
        }
        const std::int64_t complete_cols = cols.slots.complete > 0 ? cols.pes : 0;
        Beats beats;
        beats.complete_row = row_beat(array, complete_cols);
        beats.partial_row = row_beat(array, cols.left);
        const std::int64_t out_width = width_of(command_.out);
        beats.complete = std::max(beats.complete_row, ceil_div(array.gang_rows * complete_cols, out_width));
        beats.partial = std::max(beats.partial_row, ceil_div(array.gang_rows * cols.left, out_width));
        const auto promises = [&] {
            const std::int64_t writes = command_.batch * write(beats.written(rows.slots, rows.engine_pes, cols.slots));
            const std::int64_t buffers = (streams + writes + tiles * (latencies_.pipeline - 1)) / 2;
            return std::max(writes + least_stream_ + latencies_.pipeline, buffers) + latencies_.ends < limit_;
        };
        if (!promises()) {
            return;
        }
        if (array.gang_rows > 1) {
            beats.complete = beat_cycles(array, array.gang_rows, rows.engine_pes, complete_cols);
            beats.partial = beat_cycles(array, array.gang_rows, rows.engine_pes, cols.left);
            if (!promises()) {
                return;
            }
        }
        cuts(row_cuts_, rows.slots);
        cuts(col_cuts_, cols.slots);
        const auto load = [&](const Slots& row, const Slots& col, std::int64_t batches) -> TileLoad {
            return {stream(batches * row.all() * col.all(), batches * both(rows.fetched(row), cols.fetched(col))),
                    batches * write(beats.written(row, rows.engine_pes, col))};
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
                                         rows.engine_pes,
                                         cols.engine_pes,
                                         array.gang_rows,
                                         array.gang_cols,
                                         static_cast<int>(row.slots),
                                         static_cast<int>(col.slots),
                                         static_cast<int>(batches)};
                    const std::int64_t batch_tiles = ceil_div(command_.batch, batches);
                    candidate.tiles = batch_tiles * row.tiles * col.tiles;
                    candidate.full = load(row.full, col.full, batches);
                    if (candidate.full.busiest() * (candidate.tiles - 1) + least_stream_ >= limit_) {
                        continue;
                    }
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

    // Cycles of one step's words of the operand's first `count` indices.
    [[nodiscard]] std::int64_t fetch_cycles(const AccessTable& access, const std::vector<std::int32_t>& table,
                                            std::int64_t count) {
        if (table.empty()) {
            return 1;
        }
        std::vector<std::int32_t>& known = &access == &command_.a ? a_fetches_ : b_fetches_;
        if (static_cast<std::size_t>(count) >= known.size()) {
            known.resize(static_cast<std::size_t>(count) + 1);
        }
        std::int32_t& cycles = known[static_cast<std::size_t>(count)];
        if (cycles == 0) {
            cycles = counter_.cost(rams_[index_of(access.ram)], first_of(access), table.data(), count).cycles;
        }
        return cycles;
    }

    // Cycles of the first write-back beat over `cols` columns, of one row.
    [[nodiscard]] std::int64_t row_beat(const Array& array, std::int64_t cols) {
        std::vector<std::int32_t>& known = row_beats_[array.transposed ? 1 : 0];
        if (static_cast<std::size_t>(cols) >= known.size()) {
            known.resize(static_cast<std::size_t>(cols) + 1);
        }
        std::int32_t& cycles = known[static_cast<std::size_t>(cols)];
        if (cycles == 0) {
            cycles = static_cast<std::int32_t>(beat_cycles(array, 1, 1, cols));
        }
        return cycles;
    }
    // Of this many engines' first rows, `engine_rows` rows apart.
    [[nodiscard]] std::int64_t beat_cycles(const Array& array, int engines, int engine_rows, std::int64_t cols) {
        if (cols == 0) {
            return 0;
        }
        ports_.clear();
        for (const AccessTable* access : {&command_.out, &command_.residual, &command_.bias}) {
            if (!access->present) {
                continue;
            }
            const std::vector<std::int32_t>& table = array.view.rows_of(*access);
            beat_rows_.clear();
            for (int i = 0; i < engines && i * engine_rows < array.view.rows; ++i) {
                beat_rows_.push_back(static_cast<std::int32_t>(AccessTable::at(table, i * engine_rows)));
            }
            const RamGeometry& ram = rams_[index_of(access->ram)];
            const AccessCost cost =
                counter_.cost(ram, first_of(*access), beat_rows_, 0, static_cast<std::int64_t>(beat_rows_.size()),
                              array.view.cols_of(*access), 0, cols);
            ports_.charge(access->ram, ram.ports, cost.cycles);
        }
        return ports_.cycles();
    }
    [[nodiscard]] std::int64_t width_of(const AccessTable& access) const {
        const RamGeometry& ram = rams_[index_of(access.ram)];
        return std::int64_t{ram.banks} * ram.lanes;
    }
    [[nodiscard]] static std::int64_t first_of(const AccessTable& access) {
        return access.base + AccessTable::at(access.batch, 0) + AccessTable::at(access.depth, 0);
    }

    void cuts(std::vector<Cut>& list, const Slots& slots) const {
        list.clear();
        for (std::int64_t wanted = 1; wanted <= std::min<std::int64_t>(engine_.interleave, slots.all()); ++wanted) {
            list.emplace_back(slots, wanted);
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
    AccessCounter counter_;
    PortCycles ports_;
    std::vector<std::int32_t> beat_rows_;
    std::vector<std::int32_t> a_fetches_, b_fetches_;     // by number of indices; 0: not known yet
    std::array<std::vector<std::int32_t>, 2> row_beats_;  // of one row, by columns and `transposed`; likewise
    std::vector<Side> col_sides_;  // of the array at hand, by columns of an engine; pes 0: likewise
    std::int64_t least_stream_;    // of a tile
    std::vector<Cut> row_cuts_, col_cuts_;
    std::vector<Candidate> candidates_;
    std::int64_t limit_ = 0;
};

// The first tile with its true cost; what that is above the estimate stretches the last tile in proportion. From
// `limit` on it need not be exact. Of a single tile it is what the kernel takes.
void predict(const Latencies& latencies, TileTiming& timing, Candidate& candidate, std::int64_t limit) {
    timing.set_mapping(candidate.mapping);
    const Tile tile = timing.tile(0);
    const StreamCost stream = timing.compute_stream(tile, {});
    const TileLoad estimate = candidate.full;
    candidate.predicted = true;
    candidate.full.stream = static_cast<std::int64_t>(stream.cycles + stream.fold);
    candidate.last.stream = ceil_div(candidate.last.stream * candidate.full.stream, estimate.stream);
    candidate.cycles = kernel_cycles(latencies, candidate.tiles, candidate.full, candidate.last);
    if (candidate.cycles >= limit && candidate.tiles > 1) {
        return;
    }
    candidate.full.write = static_cast<std::int64_t>(timing.compute_write(tile, {}).cycles);
    candidate.last.write = ceil_div(candidate.last.write * candidate.full.write, estimate.write);
    candidate.cycles = kernel_cycles(latencies, candidate.tiles, candidate.full, candidate.last);
}

// The fastest mapping, by estimates that become exact as far as is needed: of the candidates that promise the fewest
// cycles, first the first tile's conflicts are counted, then all tiles.
class Search {
public:
    // Only what takes less than `limit` cycles counts.
    Search(const Latencies& latencies, TileTiming& timing, std::int64_t limit)
        : latencies_(latencies), timing_(timing), cycles_(limit) {}

    void look_at(std::vector<Candidate>& candidates) {
        const auto later = [](const Candidate& a, const Candidate& b) { return a.cycles > b.cycles; };
        std::make_heap(candidates.begin(), candidates.end(), later);
        int counted = 0;
        while (!candidates.empty() && candidates.front().cycles < cycles_ && counted < kMostCounted) {
            std::pop_heap(candidates.begin(), candidates.end(), later);
            Candidate& next = candidates.back();
            if (!next.predicted) {
                predict(latencies_, timing_, next, cycles_);
                if (next.cycles < cycles_) {
                    std::push_heap(candidates.begin(), candidates.end(), later);
                } else {
                    candidates.pop_back();
                }
                continue;
            }
            std::int64_t cycles = next.cycles;
            if (next.tiles > 1 && next.tiles <= kMostTiles) {
                timing_.set_mapping(next.mapping);
                cycles = static_cast<std::int64_t>(timing_.kernel_cycles(static_cast<std::uint64_t>(cycles_)));
            }
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
    static constexpr std::int64_t kMostTiles = 1024;  // of more, the first and the last say enough

    const Latencies& latencies_;
    TileTiming& timing_;
    std::int64_t cycles_;
    TileMapping mapping_;
};

}  // namespace

MappingChoice choose_mappings(const EngineConfig& engine, const std::vector<RamGeometry>& rams,
                              const ContractionCommand& command, int engines, const MappingRule* rule) {
    MappingChoice choice;
    choice.mappings.resize(static_cast<std::size_t>(engines) + 1);
    choice.cycles.resize(static_cast<std::size_t>(engines) + 1);
    TileTiming timing(engine, rams, command, {});
    const Latencies latencies(timing);
    CandidateList list(engine, rams, command, latencies, rule);
    // A gang is worth its engines only if it is faster than a smaller one.
    std::int64_t limit = kNoMapping;
    for (int gang = 1; gang <= engines; ++gang) {
        Search search(latencies, timing, limit);
        search.look_at(list.whole(gang, limit));
        list.parts(
            gang, [&search] { return search.cycles(); },
            [&search](std::vector<Candidate>& candidates) { search.look_at(candidates); });
        const auto index = static_cast<std::size_t>(gang);
        choice.mappings[index] = search.cycles() < limit ? search.mapping() : choice.mappings[index - 1];
        choice.cycles[index] = static_cast<std::uint64_t>(search.cycles());
        limit = search.cycles();
    }
    return choice;
}

}  // namespace contraflow
