#include "plan/mapping.h"

#include <algorithm>

#include "common/integer_math.h"
#include "engine/tile_timing.h"

namespace contraflow {

namespace {

struct Candidate {
    TileMapping mapping;
    std::uint64_t bound = 0;  // cycles without bank conflicts
};

// Cycles if no bank ever conflicts and no tile waits for another: orders the candidates.
std::uint64_t conflict_free_cycles(const EngineConfig& engine, const ContractionCommand& command,
                                   const TileMapping& mapping) {
    const ArrayView view(command, mapping.transposed);
    const std::int64_t gang_rows = std::int64_t{mapping.gang_rows} * engine.rows;
    const std::int64_t gang_cols = std::int64_t{mapping.gang_cols} * engine.cols;
    std::uint64_t total = 0;
    for (std::int64_t row = 0; row < view.rows; row += gang_rows * mapping.row_interleave) {
        const std::int64_t rows = std::min(gang_rows * mapping.row_interleave, view.rows - row);
        for (std::int64_t col = 0; col < view.cols; col += gang_cols * mapping.col_interleave) {
            const std::int64_t cols = std::min(gang_cols * mapping.col_interleave, view.cols - col);
            const std::int64_t slots = ceil_div(rows, gang_rows) * ceil_div(cols, gang_cols);
            const std::int64_t group = std::max<std::int64_t>(engine.partial_sums * slots, engine.add_latency_cycles);
            const std::int64_t compute = command.depth * group / engine.partial_sums;
            const std::int64_t write = slots * std::min<std::int64_t>(engine.rows, rows);
            total += static_cast<std::uint64_t>(std::max(compute, write) + 2);
        }
    }
    return total * static_cast<std::uint64_t>(command.batch);
}

// Every tile but the last as the first one, which is full. In steady state a tile takes the longest of its stream, its
// write-back, and half of what an accumulator buffer goes through: stream, pipeline, write-back.
std::uint64_t predicted_cycles(const EngineConfig& engine, const std::vector<RamGeometry>& rams,
                               const ContractionCommand& command, const TileMapping& mapping) {
    TileTiming timing(engine, rams, command, mapping);
    const Tile first = timing.tile(0);
    const Tile last = timing.tile(timing.num_tiles() - 1);
    const auto twice_the_period = [&](const Tile& tile) {
        const StreamCost& cost = timing.stream(tile, 0);
        const std::uint64_t stream = cost.cycles + cost.fold;
        const std::uint64_t write = timing.write(tile, 0).cycles;
        return std::max({2 * stream, 2 * write, stream + timing.pipeline_cycles() - 1 + write});
    };
    const StreamCost& last_stream = timing.stream(last, 0);
    return twice_the_period(first) * static_cast<std::uint64_t>(timing.num_tiles() - 1) / 2 + last_stream.cycles +
           last_stream.fold + timing.pipeline_cycles() + timing.write(last, 0).cycles + timing.write_latency_cycles();
}

}  // namespace

MappingChoice choose_mappings(const EngineConfig& engine, const std::vector<RamGeometry>& rams,
                              const ContractionCommand& command, int engines) {
    constexpr std::size_t kTriedExactly = 4;
    MappingChoice choice;
    choice.mappings.resize(static_cast<std::size_t>(engines) + 1);
    choice.cycles.resize(static_cast<std::size_t>(engines) + 1);
    for (int gang = 1; gang <= engines; ++gang) {
        std::vector<Candidate> candidates;
        for (const bool transposed : {false, true}) {
            for (int gang_rows = 1; gang_rows <= gang; ++gang_rows) {
                if (gang % gang_rows != 0) {
                    continue;
                }
                const int gang_cols = gang / gang_rows;
                const ArrayView view(command, transposed);
                for (int row_slots = 1; row_slots <= engine.interleave; ++row_slots) {
                    if (row_slots > ceil_div(view.rows, std::int64_t{gang_rows} * engine.rows)) {
                        break;
                    }
                    for (int col_slots = 1; row_slots * col_slots <= engine.interleave; ++col_slots) {
                        if (col_slots > ceil_div(view.cols, std::int64_t{gang_cols} * engine.cols)) {
                            break;
                        }
                        Candidate candidate;
                        candidate.mapping = {transposed, gang_rows, gang_cols, row_slots, col_slots};
                        candidate.bound = conflict_free_cycles(engine, command, candidate.mapping);
                        candidates.push_back(candidate);
                    }
                }
            }
        }
        std::stable_sort(candidates.begin(), candidates.end(),
                         [](const Candidate& a, const Candidate& b) { return a.bound < b.bound; });
        const auto size = static_cast<std::size_t>(gang);
        for (std::size_t i = 0; i < std::min(kTriedExactly, candidates.size()); ++i) {
            const std::uint64_t cycles = predicted_cycles(engine, rams, command, candidates[i].mapping);
            if (i == 0 || cycles < choice.cycles[size]) {
                choice.cycles[size] = cycles;
                choice.mappings[size] = candidates[i].mapping;
            }
        }
    }
    return choice;
}

}  // namespace contraflow
