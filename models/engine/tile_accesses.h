// What a tile does at its memory ports, edge by edge: the rules of tile_timing.h with addresses, for observers.
#pragma once

#include <cstdint>
#include <vector>

#include "common/burst_accesses.h"
#include "engine/tile_timing.h"
#include "engine/tile_values.h"

namespace contraflow {

// Edges of a step in which the words of one slot of an operand pass its port, and the address of an engine's first.
struct SlotFetch {
    std::uint64_t from = 0, to = 0;  // of the step, `to` excluded
    std::int64_t address = -1;       // -1: none of the words is for this engine
};

class TileAccesses : private TileCosts {
public:
    TileAccesses(const EngineConfig& engine, const std::vector<RamGeometry>& rams, const ContractionCommand& command,
                 const TileMapping& mapping)
        : TileCosts(engine, rams, command, mapping) {}

    // Step k, as the engine with these PEs sees it.
    void list_step(const Tile& tile, const Tokens& tokens, std::int64_t k, const SlotSpan& own_rows,
                   const SlotSpan& own_cols, std::vector<SlotFetch>& a, std::vector<SlotFetch>& b);
    // All accesses of the tile's stream, and of its write-back.
    void list_stream(const Tile& tile, const Tokens& tokens, AccessCounter& counter, BurstAccesses& accesses);
    void list_write(const Tile& tile, const Tokens& tokens, AccessCounter& counter, BurstAccesses& accesses);

private:
    struct Operand {
        const AccessTable* access = nullptr;
        const std::vector<std::int32_t>* table = nullptr;
        const std::vector<std::int64_t>* bases = nullptr;  // by batch
        std::int64_t first_slot = 0, slots = 0;
        std::int64_t width = 0, limit = 0;  // indices of a slot, and of the output
    };

    [[nodiscard]] Operand row_operand(const Tile& tile) const;
    [[nodiscard]] Operand col_operand(const Tile& tile) const;
    // visit(edge of the step, cycles, first address of the slot's table, first index) for each slot of step k, one
    // after the other from edge `at` on; returns the edge after the last.
    template <typename Visit>
    std::int64_t for_each_slot(const Operand& operand, std::int64_t k, std::int64_t at, AccessCounter& counter,
                               const Visit& visit) const;
    void list_beat(const Tile& tile, std::int32_t token, std::int64_t row, std::int64_t col_begin, std::int64_t col_end,
                   std::int64_t at, AccessCounter& counter, BurstAccesses& accesses);

    AccessCounter step_counter_;
    std::vector<std::int32_t> beat_rows_;
    PortCycles beat_ports_;
};

}  // namespace contraflow
