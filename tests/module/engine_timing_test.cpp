// Contractions run alone take exactly the cycles of the closed form in docs/timing.md, "Engine", computed here from
// loop bounds and configuration without any code of the engine.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "module/one_kernel.h"

using namespace contraflow;
using namespace contraflow::test;

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

// The recurrence of docs/timing.md for conflict-free memories, with tiles of row_slots x col_slots outputs per PE.
std::int64_t closed_form(const Config& config, const ProductShape& shape, std::int64_t row_interleave,
                         std::int64_t col_interleave, std::int64_t gang_rows = 1, std::int64_t gang_cols = 1,
                         std::int64_t first_stream = 3) {
    const std::int64_t add = config.engine.add_latency_cycles;
    const std::int64_t partials = config.engine.partial_sums;
    const std::int64_t array_rows = config.engine.rows * gang_rows;
    const std::int64_t array_cols = config.engine.cols * gang_cols;
    const std::int64_t read = config.memory.bram_read_latency_cycles;
    const std::int64_t pipe =
        read + config.engine.broadcast_latency_cycles + config.engine.multiply_latency_cycles + add;
    std::int64_t write_latency = 1 + (shape.bias ? add : 0) + (shape.accumulates ? add : 0);
    if (shape.bias || shape.accumulates) {
        write_latency += read;
    }
    std::vector<std::int64_t> stream, fold, write;
    for (std::int64_t batch = 0; batch < shape.batch; ++batch) {
        for (std::int64_t row = 0; row < shape.rows; row += array_rows * row_interleave) {
            for (std::int64_t col = 0; col < shape.cols; col += array_cols * col_interleave) {
                const std::int64_t rows = std::min(array_rows * row_interleave, shape.rows - row);
                const std::int64_t cols = std::min(array_cols * col_interleave, shape.cols - col);
                const std::int64_t row_slots = ceil_div(rows, array_rows);
                const std::int64_t col_slots = ceil_div(cols, array_cols);
                const std::int64_t slots = row_slots * col_slots;
                std::int64_t cycles = 0;
                for (std::int64_t k = 0; k < shape.depth; ++k) {
                    const bool waits = k + 1 < shape.depth && k % partials == partials - 1;
                    cycles += waits ? std::max(partials * slots, add) - (partials - 1) * slots : slots;
                }
                stream.push_back(cycles);
                fold.push_back((std::min(partials, shape.depth) - 1) * std::max(slots, add));
                std::int64_t beats = 0;
                for (std::int64_t slot = 0; slot < row_slots; ++slot) {
                    beats += std::min<std::int64_t>(config.engine.rows, rows - slot * array_rows);
                }
                write.push_back(beats * col_slots + (shape.sums_batches ? write_latency : 0));
            }
        }
    }
    const std::size_t tiles = stream.size();
    std::vector<std::int64_t> begin(tiles), free(tiles), sums(tiles), written(tiles);
    for (std::size_t t = 0; t < tiles; ++t) {
        begin[t] = t == 0 ? first_stream : std::max(free[t - 1], begin[t - 1] + 2);
        if (t >= 2) {
            begin[t] = std::max(begin[t], written[t - 2] + std::max<std::int64_t>(write[t - 2], 2));
        }
        free[t] = begin[t] + stream[t] + fold[t];
        sums[t] = free[t] - 1 + pipe;
        written[t] = t == 0 ? sums[t] : std::max(sums[t], written[t - 1] + std::max<std::int64_t>(write[t - 1], 2));
    }
    return written.back() + write.back() + (shape.sums_batches ? 1 : write_latency);
}

// The fastest of all mappings on one engine: orientation, part of the array, outputs side by side.
std::int64_t fastest(const Config& config, const ProductShape& shape) {
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    for (const bool turned : {false, true}) {
        ProductShape own = shape;
        if (turned) {
            std::swap(own.rows, own.cols);
        }
        Config part = config;
        for (part.engine.rows = 1; part.engine.rows <= config.engine.rows; ++part.engine.rows) {
            for (part.engine.cols = 1; part.engine.cols <= config.engine.cols; ++part.engine.cols) {
                for (int rows = 1; rows <= config.engine.interleave; ++rows) {
                    for (int cols = 1; rows * cols <= config.engine.interleave; ++cols) {
                        best = std::min(best, closed_form(part, own, rows, cols));
                    }
                }
            }
        }
    }
    return best;
}

}  // namespace

TEST_CASE("the 2 x 2 product of docs/timing.md takes 16 cycles") {
    const KernelResult result = run_alone(small_machine(), product_step({2, 2, 2}));
    CHECK(result.cycles == 16);
    CHECK(result.busy == 2);
    CHECK(result.dependency == 2);
    CHECK(result.bank == 0);
    CHECK(result.macs == 8);
}

TEST_CASE("one tile takes the closed form for any depth and adder") {
    for (const std::int64_t depth : {1, 2, 3, 7, 64}) {
        for (const int add : {1, 2, 3, 5}) {
            Config config = small_machine();
            config.engine.add_latency_cycles = add;
            const ProductShape shape{2, 2, depth};
            CAPTURE(depth, add);
            CHECK(static_cast<std::int64_t>(run_alone(config, product_step(shape)).cycles) ==
                  closed_form(config, shape, 1, 1));
        }
    }
}

TEST_CASE("sizes that do not divide the array take the closed form") {
    for (const auto& [rows, cols] : std::vector<std::pair<int, int>>{{1, 1}, {1, 5}, {5, 7}, {7, 13}, {13, 1}}) {
        Config config = small_machine();
        config.engine.rows = rows;
        config.engine.cols = cols;
        for (const ProductShape& shape :
             {ProductShape{1, 1, 1}, ProductShape{6, 11, 5}, ProductShape{32, 1, 4}, ProductShape{1, 29, 3}}) {
            const KernelResult result = run_alone(config, product_step(shape));
            CAPTURE(rows, cols, shape.rows, shape.cols, shape.depth);
            CHECK(result.bank == 0);
            CHECK(result.macs == static_cast<std::uint64_t>(shape.rows * shape.cols * shape.depth));
            CHECK(static_cast<std::int64_t>(result.cycles) == fastest(config, shape));
        }
    }
}

TEST_CASE("rank 11 on 12 columns leaves a column idle and costs what rank 12 costs") {
    Config config = small_machine();
    config.engine.rows = 8;
    config.engine.cols = 12;
    const std::uint64_t eleven = run_alone(config, product_step({8, 11, 20})).cycles;
    CHECK(eleven == run_alone(config, product_step({8, 12, 20})).cycles);
    CHECK(eleven < run_alone(config, product_step({8, 13, 20})).cycles);
}

TEST_CASE("ranks that do not match the array cost what their closed form says") {
    for (const std::int64_t rank : {1, 11, 12, 13, 24, 25}) {
        for (const std::int64_t depth : {3, 12, 96}) {
            Config config = small_machine();
            config.engine.rows = 8;
            config.engine.cols = 12;
            config.engine.interleave = 4;
            CAPTURE(rank, depth);
            CHECK(static_cast<std::int64_t>(run_alone(config, product_step({32, rank, depth})).cycles) ==
                  fastest(config, {32, rank, depth}));
        }
    }
}

TEST_CASE("more PEs never slow a kernel down") {
    const std::vector<ProductShape> shapes{
        {768, 12, 1}, {12, 768, 32},           {96, 12, 12}, {32, 768, 12},
        {13, 11, 7},  {32, 12, 768},           {26, 129, 3}, {8, 12, 20, true, false, 32},
        {64, 6, 1},   {1, 768, 12, true, true}};
    for (const ProductShape& shape : shapes) {
        std::uint64_t before = std::numeric_limits<std::uint64_t>::max();
        // 12 to 1,024 PEs, then more engines.
        for (const auto& [engines, rows, cols] : std::vector<std::array<int, 3>>{{1, 1, 12},
                                                                                 {1, 2, 12},
                                                                                 {1, 3, 12},
                                                                                 {1, 7, 12},
                                                                                 {1, 8, 12},
                                                                                 {1, 16, 12},
                                                                                 {1, 16, 13},
                                                                                 {1, 16, 16},
                                                                                 {1, 32, 16},
                                                                                 {1, 32, 32},
                                                                                 {2, 32, 32},
                                                                                 {5, 32, 32}}) {
            Config config = small_machine();
            config.engine.count = engines;
            config.engine.rows = rows;
            config.engine.cols = cols;
            config.engine.interleave = 8;
            const std::uint64_t cycles = run_alone(config, product_step(shape), RunMode::Leap).cycles;
            CAPTURE(shape.rows, shape.cols, shape.depth, engines, rows, cols);
            CHECK(cycles <= before);
            before = cycles;
        }
    }
}

TEST_CASE("interleaved outputs hide the adder") {
    Config config = small_machine();
    config.engine.interleave = 3;
    const ProductShape shape{6, 2, 40};  // three outputs per PE
    const KernelResult result = run_alone(config, product_step(shape));
    CHECK(result.dependency == 0);
    CHECK(result.busy == 3 * 40);
    CHECK(static_cast<std::int64_t>(result.cycles) == closed_form(config, shape, 3, 1));
}

TEST_CASE("batches side by side hide the adder as rows do") {
    Config config = small_machine();
    config.engine.interleave = 4;
    const KernelResult result = run_alone(config, product_step({2, 2, 40, false, false, 4}));
    CHECK(result.dependency == 0);
    CHECK(result.busy == 4 * 40);
    CHECK(static_cast<std::int64_t>(result.cycles) == closed_form(config, {8, 2, 40}, 4, 1));
    // Where each batch adds to the sums of the one before, its part of the burst ends in memory.
    const std::int64_t write_latency = 1 + config.memory.bram_read_latency_cycles + config.engine.add_latency_cycles;
    CHECK(static_cast<std::int64_t>(run_alone(config, product_step({2, 2, 40, false, true, 3, true})).cycles) ==
          closed_form(config, {6, 2, 40, false, true, 1, true}, 3, 1) + 2 * write_latency);
}

TEST_CASE("partial sums hide the adder at the price of adding them up") {
    for (const int partials : {1, 2, 3, 4, 7}) {
        Config config = small_machine();
        config.engine.partial_sums = partials;
        for (const std::int64_t depth : {1, 3, 10}) {
            const ProductShape shape{4, 4, depth};
            CAPTURE(partials, depth);
            CHECK(static_cast<std::int64_t>(run_alone(config, product_step(shape)).cycles) ==
                  closed_form(config, shape, 1, 1));
        }
    }
}

TEST_CASE("shallow tiles are bound by their write-back") {
    Config config = small_machine();
    config.engine.rows = 8;
    const ProductShape shape{64, 6, 1};
    const KernelResult result = run_alone(config, product_step(shape));
    CHECK(result.write_back > 0);
    CHECK(static_cast<std::int64_t>(result.cycles) == fastest(config, shape));
}

TEST_CASE("bias and accumulation ride on the write-back") {
    for (const ProductShape& shape :
         {ProductShape{2, 2, 4, true, false}, ProductShape{2, 2, 4, false, true}, ProductShape{2, 2, 4, true, true},
          ProductShape{4, 2, 2, false, true, 3}, ProductShape{4, 2, 2, false, true, 3, true}}) {
        const Config config = small_machine();
        CAPTURE(shape.bias, shape.accumulates, shape.batch);
        CHECK(static_cast<std::int64_t>(run_alone(config, product_step(shape)).cycles) ==
              closed_form(config, shape, 1, 1));
    }
}

TEST_CASE("a gang of engines runs as one array") {
    Config config = small_machine();
    config.engine.count = 4;
    const ProductShape shape{8, 2, 50};
    const KernelResult result = run_alone(config, product_step(shape));
    CHECK(result.gang_size == 4);
    CHECK(static_cast<std::int64_t>(result.cycles) == closed_form(config, shape, 1, 1, 4, 1));
    config.schedule_split = false;
    const KernelResult single = run_alone(config, product_step(shape));
    CHECK(single.gang_size == 1);
    CHECK(static_cast<std::int64_t>(single.cycles) == closed_form(config, shape, 1, 1));
}

TEST_CASE("a kernel that addresses by token reads the ids first, one a cycle") {
    Config config = small_machine();
    const ProductShape shape{2, 2, 3, false, false, 5};
    const KernelResult result = run_alone(config, token_product_step(shape, 7));
    const std::int64_t tokens = shape.batch + config.memory.lutram_read_latency_cycles;
    CHECK(static_cast<std::int64_t>(result.cycles) == closed_form(config, shape, 1, 1, 1, 1, 3 + tokens));
}

TEST_CASE("rows that share a bank are fetched one after another") {
    Config config = small_machine();
    config.memory.layout = LayoutPolicy::Naive;  // row-major: rows `depth` words apart
    config.engine.rows = 8;
    config.engine.cols = 8;
    // 8 rows 64 words apart over 64 banks: all in one bank, eight cycles a step instead of three.
    const KernelResult result = run_alone(config, product_step({8, 8, 64}));
    CHECK(result.bank > 0);
    CHECK(result.busy + result.dependency + result.bank == 8 * 64);
    // The padded layout has no such conflict.
    config.memory.layout = LayoutPolicy::Auto;
    CHECK(run_alone(config, product_step({8, 8, 64})).bank == 0);
}

TEST_CASE("with one port both operands of one memory take turns") {
    Config config = small_machine();
    config.memory.ports = 1;
    config.memory.banks = 1;
    config.memory.layout = LayoutPolicy::Naive;
    // One bank: every word is a cycle. 2 + 2 words a step through separate memories, fetched side by side.
    const KernelResult result = run_alone(config, product_step({2, 2, 10}));
    CHECK(result.busy + result.dependency + result.bank == 9 * 3 + 2);
}

TEST_CASE("leap counts what clocked counts, kernel by kernel") {
    Config config = small_machine();
    config.engine.count = 3;
    config.engine.rows = 3;
    config.engine.interleave = 4;
    config.memory.banks = 8;
    for (const ProductShape& shape :
         {ProductShape{2, 2, 2}, ProductShape{17, 19, 23, true, false}, ProductShape{9, 31, 5, false, true, 4}}) {
        const KernelResult clocked = run_alone(config, product_step(shape), RunMode::Clocked);
        const KernelResult leap = run_alone(config, product_step(shape), RunMode::Leap);
        CHECK(clocked.cycles == leap.cycles);
        CHECK(clocked.busy == leap.busy);
        CHECK(clocked.dependency == leap.dependency);
        CHECK(clocked.bank == leap.bank);
        CHECK(clocked.port == leap.port);
        CHECK(clocked.write_back == leap.write_back);
        CHECK(clocked.pipeline == leap.pipeline);
    }
}
