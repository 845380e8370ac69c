// What a set of words costs through one port of a banked memory.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "common/access_cost.h"
#include "plan/layout.h"

using namespace contraflow;

namespace {

RamGeometry memory(int banks, int lanes) {
    RamGeometry ram;
    ram.banks = banks;
    ram.lanes = lanes;
    ram.rows = 1 << 16;
    return ram;
}

AccessCost strided(const RamGeometry& ram, std::int64_t base, std::int32_t stride, std::int32_t count) {
    std::vector<std::int32_t> offsets;
    for (std::int32_t i = 0; i < count; ++i) {
        offsets.push_back(i * stride);
    }
    AccessCounter counter;
    return counter.cost(ram, base, offsets.data(), count);
}

}  // namespace

TEST_CASE("neighbouring words cost one cycle, words of one bank one each") {
    CHECK(strided(memory(32, 1), 5, 1, 32).cycles == 1);
    CHECK(strided(memory(32, 1), 5, 1, 33).cycles == 2);
    CHECK(strided(memory(32, 1), 0, 768, 8).cycles == 8);
    CHECK(strided(memory(32, 1), 0, 769, 8).cycles == 1);
    CHECK(strided(memory(32, 1), 0, 12, 32).cycles == 4);
}

TEST_CASE("two words of one row are one access") {
    CHECK(strided(memory(16, 2), 0, 1, 32).cycles == 1);
    CHECK(strided(memory(16, 2), 0, 1, 32).rows == 16);
    CHECK(strided(memory(16, 2), 1, 1, 32).cycles == 2);  // an odd start touches one row more
    CHECK(strided(memory(16, 2), 0, 770, 16).cycles == 1);
    CHECK(strided(memory(16, 2), 0, 0, 8).rows == 1);
}

TEST_CASE("the cost is the definition, for random sets") {
    std::mt19937 random(7);
    const auto up_to = [&random](std::uint32_t most) { return static_cast<std::int32_t>(1 + random() % most); };
    AccessCounter counter;
    AccessCounter keeper(true);
    // Evenly apart, runs with gaps, in any order.
    const auto offsets_of = [&](std::int32_t count) {
        std::vector<std::int32_t> offsets;
        const std::int32_t kind = up_to(3);
        const std::int32_t step = up_to(2) == 1 ? 1 : up_to(40) - 1;
        for (std::int32_t i = 0; i < count; ++i) {
            offsets.push_back(kind == 1   ? i * step
                              : kind == 2 ? i * step + i / 5 * 13
                                          : static_cast<std::int32_t>(random() % 500));
        }
        return offsets;
    };
    for (int trial = 0; trial < 3000; ++trial) {
        const RamGeometry ram = memory(up_to(40), up_to(3));
        const std::vector<std::int32_t> outer = trial % 2 == 0 ? std::vector<std::int32_t>{} : offsets_of(up_to(6));
        const std::vector<std::int32_t> inner = offsets_of(up_to(60));
        const std::int64_t base = up_to(1000) - 1;
        std::map<std::int64_t, std::set<std::int64_t>> rows;
        for (std::size_t i = 0; i < std::max<std::size_t>(1, outer.size()); ++i) {
            for (const std::int32_t offset : inner) {
                const std::int64_t address = base + (outer.empty() ? 0 : outer[i]) + offset;
                rows[address / ram.lanes % ram.banks].insert(address / ram.lanes / ram.banks);
            }
        }
        std::size_t fullest = 0;
        std::size_t all = 0;
        for (const auto& [bank, own] : rows) {
            fullest = std::max(fullest, own.size());
            all += own.size();
        }
        const auto cost_with = [&](AccessCounter& own, std::int64_t at) {
            const auto outer_count = static_cast<std::int64_t>(outer.size());
            const auto inner_count = static_cast<std::int64_t>(inner.size());
            return outer.empty() ? own.cost(ram, at, inner.data(), inner_count)
                                 : own.cost(ram, at, outer, 0, outer_count, inner, 0, inner_count);
        };
        const AccessCost cost = cost_with(counter, base);
        CAPTURE(trial, ram.banks, ram.lanes, outer.size(), inner.size());
        REQUIRE(static_cast<std::size_t>(cost.cycles) == fullest);
        REQUIRE(static_cast<std::size_t>(cost.rows) == all);
        REQUIRE(static_cast<std::size_t>(cost.words) == std::max<std::size_t>(1, outer.size()) * inner.size());
        // Moving the set by whole rows rotates the banks and changes nothing.
        REQUIRE(cost_with(counter, base + ram.lanes * 17).cycles == cost.cycles);
        // A counter that keeps the rows gives each of them once, in as many cycles.
        REQUIRE(cost_with(keeper, base).cycles == cost.cycles);
        std::size_t visited = 0;
        keeper.for_each_row(ram, [&](std::int32_t bank, std::int64_t row, std::int32_t cycle) {
            visited += rows.at(bank).count(row);
            REQUIRE(cycle < cost.cycles);
        });
        REQUIRE(visited == all);
    }
}

TEST_CASE("a padded layout is a bijection and moves every level to another bank") {
    for (const int banks : {3, 16, 32}) {
        for (const int lanes : {1, 2}) {
            const std::vector<std::int64_t> splits{1, 12, 96, 768};
            Placement placement;
            placement.base = 64;
            placement.levels = make_levels(splits, banks, lanes, true);
            std::set<std::int64_t> seen;
            for (std::int64_t element = 0; element < 768; ++element) {
                const std::int64_t address = placement.address(element);
                CHECK(address >= 64);
                CHECK(address < 64 + occupied_words(placement.levels));
                seen.insert(address);
            }
            CHECK(seen.size() == 768);
            for (const LayoutLevel& level : placement.levels) {
                if (level.dense > 1) {
                    CHECK(level.stride % lanes == 0);
                    CHECK(strided(memory(banks, lanes), 0, static_cast<std::int32_t>(level.stride), banks).cycles == 1);
                }
            }
        }
    }
}
