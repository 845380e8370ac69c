// Choosing how a contraction lies on the engines.
#pragma once

#include <cstdint>
#include <vector>

#include "common/command.h"
#include "contraflow/config.h"

namespace contraflow {

struct MappingChoice {
    std::vector<TileMapping> mappings;  // by gang size, [0] unused
    std::vector<std::uint64_t> cycles;  // predicted for a kernel run alone, by gang size
};

// The mapping with the fewest predicted cycles for each gang size 1 .. engines: orientation, gang arrangement and
// interleave are tried; ties go to the earlier candidate. The prediction applies the engine's own tile costs
// (engine/tile_timing.h) to the first and the last tile and leaves out contention.
[[nodiscard]] MappingChoice choose_mappings(const EngineConfig& engine, const std::vector<RamGeometry>& rams,
                                            const ContractionCommand& command, int engines);

}  // namespace contraflow
