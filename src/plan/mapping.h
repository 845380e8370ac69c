// Choosing how a contraction lies on the engines.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "common/command.h"
#include "contraflow/config.h"

namespace contraflow {

struct MappingChoice {
    // By gang size, [0] unused; where a gang is not faster than a smaller one, those of the smaller.
    std::vector<TileMapping> mappings;
    std::vector<std::uint64_t> cycles;  // predicted for a kernel run alone
};

// Predicted for one engine if a rule leaves no mapping on it.
inline constexpr std::int64_t kNoMapping = std::numeric_limits<std::int64_t>::max();

// The mapping with the fewest predicted cycles for each gang size 1 .. engines: orientation, the part of each engine in
// use, gang arrangement and interleave are tried; ties go to the earlier candidate. Candidates on more PEs include
// those on fewer, so that more PEs never slow a kernel down. The prediction is the engine's own recurrence
// (engine/tile_timing.h) over all tiles, of very many only the first and the last, and leaves out contention. `rule`:
// only mappings of its form.
[[nodiscard]] MappingChoice choose_mappings(const EngineConfig& engine, const std::vector<RamGeometry>& rams,
                                            const ContractionCommand& command, int engines,
                                            const MappingRule* rule = nullptr);

}  // namespace contraflow
