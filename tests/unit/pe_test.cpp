// The PE cycle by cycle, and the engine's step counter and sums held to it.
#include <catch2/catch.hpp>

#include <cmath>
#include <numeric>
#include <vector>

#include "engine/tile_timing.h"
#include "pe/pe.h"

using namespace contraflow;

namespace {

// Cycles until the last multiply-accumulate of `depth` x `outputs` has issued, in the engine's order.
std::uint64_t issue_cycles(const EngineConfig& config, std::int64_t outputs, std::int64_t depth,
                           std::vector<float>* sums) {
    const auto partials = static_cast<std::size_t>(config.partial_sums);
    Pe pe(config, static_cast<std::size_t>(outputs) * partials);
    for (std::int64_t k = 0; k < depth; ++k) {
        for (std::int64_t i = 0; i < outputs; ++i) {
            const std::size_t accumulator =
                static_cast<std::size_t>(i) * partials + static_cast<std::size_t>(k) % partials;
            while (!pe.can_issue(accumulator)) {
                pe.tick();
            }
            pe.issue(accumulator, 0.1F * static_cast<float>(k + 1), 1.0F + static_cast<float>(i));
            if (k + 1 < depth || i + 1 < outputs) {
                pe.tick();
            }
        }
    }
    const std::uint64_t issued = pe.cycle() + 1;
    while (pe.busy()) {
        pe.tick();
    }
    if (sums != nullptr) {
        for (std::size_t a = 0; a < static_cast<std::size_t>(outputs) * partials; ++a) {
            sums->push_back(pe.value(a));
        }
    }
    return issued;
}

}  // namespace

TEST_CASE("a sum is there multiply plus add latency after the issue, not earlier") {
    EngineConfig config;
    Pe pe(config, 1);
    pe.issue(0, 3.0F, 4.0F);
    for (int i = 0; i < config.multiply_latency_cycles + config.add_latency_cycles; ++i) {
        CHECK(pe.value(0) == 0.0F);
        pe.tick();
    }
    CHECK(pe.value(0) == 12.0F);
    CHECK_FALSE(pe.busy());
}

TEST_CASE("an accumulation waits for the previous add to the same accumulator only") {
    EngineConfig config;
    Pe pe(config, 2);
    pe.issue(0, 1, 1);
    CHECK_FALSE(pe.can_issue(1));  // one issue a cycle
    pe.tick();
    CHECK(pe.can_issue(1));
    CHECK_FALSE(pe.can_issue(0));
    pe.tick();
    CHECK_FALSE(pe.can_issue(0));
    pe.tick();
    CHECK(pe.can_issue(0));
}

TEST_CASE("products and sums round separately") {
    EngineConfig config;
    Pe pe(config, 1);
    // 1 + 2^-12 squared is 1 + 2^-11 + 2^-24; the product rounds to even before the sum.
    const float x = 1.0F + std::ldexp(1.0F, -12);
    pe.issue(0, -1.0F, 1.0F + std::ldexp(1.0F, -11));
    for (int i = 0; i < 3; ++i) {
        pe.tick();
    }
    pe.issue(0, x, x);
    while (pe.busy()) {
        pe.tick();
    }
    CHECK(pe.value(0) == 0.0F);
}

TEST_CASE("the step counter of the engine issues as a PE does, for any interleave, partial sums and adder") {
    for (const int add : {1, 2, 3, 6}) {
        for (const int partials : {1, 2, 3, 4}) {
            for (const std::int64_t outputs : {1, 2, 3, 5}) {
                for (const std::int64_t depth : {1, 2, 3, 4, 7, 12}) {
                    EngineConfig config;
                    config.rows = 1;
                    config.cols = 1;
                    config.add_latency_cycles = add;
                    config.partial_sums = partials;
                    RamGeometry ram;
                    ram.banks = 64;
                    ram.rows = 64;
                    const std::vector<RamGeometry> rams(3, ram);
                    ContractionCommand command;
                    command.rows = outputs;
                    command.depth = depth;
                    for (auto* access : {&command.a, &command.b, &command.out}) {
                        access->present = true;
                    }
                    command.b.ram = RamId{1};
                    command.out.ram = RamId{2};
                    std::vector<std::int32_t> rows(static_cast<std::size_t>(outputs));
                    std::iota(rows.begin(), rows.end(), 0);
                    command.a.row = rows;
                    command.out.row = rows;
                    TileMapping mapping;
                    mapping.row_interleave = static_cast<int>(outputs);
                    TileTiming timing(config, rams, command, mapping);
                    const Tile tile = timing.tile(0);
                    CAPTURE(add, partials, outputs, depth);
                    CHECK(timing.stream(tile, {}).cycles == issue_cycles(config, outputs, depth, nullptr));
                    std::uint64_t steps = 0;
                    for (std::int64_t k = 0; k < depth; ++k) {
                        steps += timing.step_cycles(tile, {}, k);
                    }
                    CHECK(steps == timing.stream(tile, {}).cycles);
                }
            }
        }
    }
}
