// What a tile costs, against the definition in tile_timing.h: step by step, beat by beat, word by word.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "common/integer_math.h"
#include "engine/tile_timing.h"

using namespace contraflow;

namespace {

using Addresses = std::vector<std::int64_t>;

// Distinct rows of the fullest bank.
std::int64_t cycles_of(const RamGeometry& ram, const Addresses& words) {
    std::map<std::int64_t, std::set<std::int64_t>> rows;
    std::size_t fullest = 0;
    for (const std::int64_t word : words) {
        std::set<std::int64_t>& own = rows[word / ram.lanes % ram.banks];
        own.insert(word / ram.lanes / ram.banks);
        fullest = std::max(fullest, own.size());
    }
    return static_cast<std::int64_t>(fullest);
}

// A contraction with random extents, layouts and memories.
struct Case {
    EngineConfig engine;
    std::vector<RamGeometry> rams;
    ContractionCommand command;
    TileMapping mapping;
    std::mt19937& random;

    explicit Case(std::mt19937& source) : random(source) {
        engine.rows = up_to(6);
        engine.cols = up_to(6);
        engine.partial_sums = up_to(3);
        engine.add_latency_cycles = up_to(4);
        for (int i = 0; i < 3; ++i) {
            RamGeometry ram;
            ram.banks = up_to(9);
            ram.lanes = up_to(3);
            ram.ports = up_to(2);
            ram.rows = 1 << 20;
            rams.push_back(ram);
        }
        command.batch = up_to(4);
        command.rows = up_to(30);
        command.cols = up_to(30);
        command.depth = up_to(8);
        command.accumulates = up_to(3) == 1;
        add(command.a, command.rows, 0, command.depth);
        add(command.b, 0, command.cols, command.depth);
        add(command.out, command.rows, command.cols, 0);
        if (up_to(2) == 1) {
            add(command.residual, command.rows, command.cols, 0);
        }
        if (up_to(3) == 1) {
            add(command.bias, 0, command.cols, 0);
        }
        mapping.transposed = up_to(2) == 1;
        mapping.pe_rows = up_to(engine.rows);
        mapping.pe_cols = up_to(engine.cols);
        mapping.gang_rows = up_to(3);
        mapping.gang_cols = up_to(3);
        mapping.row_interleave = up_to(4);
        mapping.col_interleave = up_to(4);
        const TileCosts costs(engine, rams, command, mapping);
        if (costs.num_tiles() == command.batch) {
            mapping.batch_interleave = up_to(static_cast<int>(command.batch));
        }
    }

    int up_to(int most) { return 1 + static_cast<int>(random() % static_cast<std::uint32_t>(most)); }

    // Two levels of any strides, or now and then none that moves.
    OffsetTable table(std::int64_t extent) {
        const int inner = up_to(12);
        const int stride = up_to(9) - 1;
        const int outer_stride = up_to(60) - 1;
        std::vector<std::int32_t> offsets;
        for (std::int32_t i = 0; i < extent; ++i) {
            offsets.push_back(i % inner * stride + i / inner * outer_stride);
        }
        return up_to(8) == 1 ? OffsetTable() : OffsetTable(offsets);
    }

    void add(AccessTable& access, std::int64_t rows, std::int64_t cols, std::int64_t depth) {
        access.present = true;
        access.ram = RamId{static_cast<std::uint32_t>(up_to(3) - 1)};
        access.base = up_to(50);
        access.batch = table(command.batch);
        access.row = table(rows);
        access.col = table(cols);
        access.depth = table(depth);
        access.find_runs();
    }

    const RamGeometry& ram_of(const AccessTable& access) const { return rams[index_of(access.ram)]; }

    // PE rows or columns of the tile: first index and number of each slot.
    struct Slot {
        std::int64_t begin = 0, count = 0;
    };
    static std::vector<Slot> slots(std::int64_t begin, std::int64_t count, std::int64_t width) {
        std::vector<Slot> list;
        for (std::int64_t at = 0; at < count; at += width) {
            list.push_back({begin + at, std::min(width, count - at)});
        }
        return list;
    }

    std::int64_t fetch(const AccessTable& access, const OffsetTable& table, const std::vector<Slot>& slots,
                       const Tile& tile, std::int64_t k) const {
        std::int64_t cycles = 0;
        for (std::int64_t batch = tile.batch; batch < tile.batch + tile.batches; ++batch) {
            for (const Slot& slot : slots) {
                Addresses words;
                for (std::int64_t i = slot.begin; i < slot.begin + slot.count; ++i) {
                    words.push_back(access.base + AccessTable::at(access.batch, batch) +
                                    AccessTable::at(access.depth, k) + AccessTable::at(table, i));
                }
                cycles += cycles_of(ram_of(access), words);
            }
        }
        return cycles;
    }

    std::uint64_t stream(const TileCosts& costs, const Tile& tile) const {
        const AccessTable& rows = mapping.transposed ? command.b : command.a;
        const AccessTable& cols = mapping.transposed ? command.a : command.b;
        const OffsetTable& row_table = mapping.transposed ? command.b.col : command.a.row;
        const OffsetTable& col_table = mapping.transposed ? command.a.row : command.b.col;
        const bool one_port = rows.ram == cols.ram && ram_of(rows).ports == 1;
        std::int64_t total = 0;
        for (std::int64_t k = 0; k < command.depth; ++k) {
            const std::int64_t a = fetch(rows, row_table, slots(tile.row_begin, tile.rows, costs.gang_rows()), tile, k);
            const std::int64_t b = fetch(cols, col_table, slots(tile.col_begin, tile.cols, costs.gang_cols()), tile, k);
            total += std::max(static_cast<std::int64_t>(costs.dependency_cycles(k, tile.slots())),
                              one_port ? a + b : std::max(a, b));
        }
        return static_cast<std::uint64_t>(total);
    }

    // Operands of one memory take its ports in turn; a beat lasts as long as the busiest port.
    std::int64_t beat(const std::vector<std::int64_t>& rows, const Slot& cols, std::int64_t batch,
                      std::int64_t& out_rows) const {
        std::map<RamId, std::vector<std::int64_t>> ports;
        std::map<RamId, std::size_t> next;
        std::int64_t longest = 0;
        for (const AccessTable* access : {&command.out, &command.residual, &command.bias}) {
            if (!access->present) {
                continue;
            }
            Addresses words;
            for (const std::int64_t row : rows) {
                for (std::int64_t col = cols.begin; col < cols.begin + cols.count; ++col) {
                    words.push_back(access->base + AccessTable::at(access->batch, batch) +
                                    AccessTable::at(access->row, mapping.transposed ? col : row) +
                                    AccessTable::at(access->col, mapping.transposed ? row : col));
                }
            }
            std::vector<std::int64_t>& own = ports[access->ram];
            own.resize(static_cast<std::size_t>(ram_of(*access).ports));
            std::int64_t& port = own[next[access->ram]++ % own.size()];
            port += cycles_of(ram_of(*access), words);
            if (access == &command.out) {
                std::set<std::int64_t> lines;
                for (const std::int64_t word : words) {
                    lines.insert(word / ram_of(*access).lanes);
                }
                out_rows += static_cast<std::int64_t>(lines.size());
            }
            longest = std::max(longest, port);
        }
        return longest;
    }

    // `out_rows`: rows of the output's memory that are written.
    std::uint64_t write(const TileCosts& costs, const Tile& tile, std::int64_t& out_rows) const {
        std::int64_t total = 0;
        for (std::int64_t batch = tile.batch; batch < tile.batch + tile.batches; ++batch) {
            for (const Slot& col : slots(tile.col_begin, tile.cols, costs.gang_cols())) {
                for (const Slot& row : slots(tile.row_begin, tile.rows, costs.gang_rows())) {
                    for (std::int64_t first = 0; first < std::min(costs.pe_rows(), row.count); ++first) {
                        std::vector<std::int64_t> rows;
                        for (std::int64_t i = first; i < row.count; i += costs.pe_rows()) {
                            rows.push_back(row.begin + i);
                        }
                        total += beat(rows, col, batch, out_rows);
                    }
                }
            }
            total += costs.bursts_end_in_memory() ? static_cast<std::int64_t>(costs.write_latency_cycles()) : 0;
        }
        return static_cast<std::uint64_t>(total);
    }
};

}  // namespace

TEST_CASE("a tile's stream and write-back cost what their words do, for random layouts and mappings") {
    std::mt19937 random(11);
    for (int trial = 0; trial < 400; ++trial) {
        Case own(random);
        TileTiming timing(own.engine, own.rams, own.command, own.mapping);
        CAPTURE(trial);
        // From the last on, as tokens might have it: the incomplete ones come first.
        for (std::int64_t t = timing.num_tiles(); t-- > 0;) {
            const Tile tile = timing.tile(t);
            CAPTURE(t);
            REQUIRE(timing.stream(tile, {}).cycles == own.stream(timing, tile));
            std::int64_t rows = 0;
            REQUIRE(timing.write(tile, {}).cycles == own.write(timing, tile, rows));
            REQUIRE(timing.write(tile, {}).rows == rows);
        }
    }
}

TEST_CASE("a kernel alone takes the recurrence over all of its tiles, whichever mapping was asked before") {
    std::mt19937 random(12);
    for (int trial = 0; trial < 200; ++trial) {
        Case own(random);
        TileTiming timing(own.engine, own.rams, own.command, {});
        (void)timing.kernel_cycles();
        timing.set_mapping(own.mapping);
        // docs/timing.md, "Engine": streams follow one another, and so do write bursts; a buffer is filled again when
        // its burst is over; grants of one kind are two edges apart.
        std::vector<std::int64_t> stream_begin, stream_end, write_begin, write_end;
        for (std::int64_t t = 0; t < timing.num_tiles(); ++t) {
            const Tile tile = timing.tile(t);
            const StreamCost stream = timing.compute_stream(tile, {});
            std::int64_t begin = 3;
            if (t > 0) {
                begin = std::max(stream_end.back(), stream_begin.back() + 2);
            }
            if (t > 1) {
                const auto before = static_cast<std::size_t>(t - 2);
                begin = std::max(begin, std::max(write_end[before], write_begin[before] + 2));
            }
            stream_begin.push_back(begin);
            stream_end.push_back(begin + static_cast<std::int64_t>(stream.cycles + stream.fold));
            std::int64_t write = stream_end.back() - 1 + static_cast<std::int64_t>(timing.pipeline_cycles());
            if (t > 0) {
                write = std::max({write, write_end.back(), write_begin.back() + 2});
            }
            write_begin.push_back(write);
            write_end.push_back(write + static_cast<std::int64_t>(timing.compute_write(tile, {}).cycles));
        }
        const std::int64_t in_memory =
            timing.bursts_end_in_memory() ? 1 : static_cast<std::int64_t>(timing.write_latency_cycles());
        CAPTURE(trial, timing.num_tiles());
        CHECK(static_cast<std::int64_t>(timing.kernel_cycles()) == write_end.back() + in_memory);
    }
}
