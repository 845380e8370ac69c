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
    AccessCounter counter;
    for (int trial = 0; trial < 500; ++trial) {
        const RamGeometry ram = memory(1 + static_cast<int>(random() % 40), 1 + static_cast<int>(random() % 3));
        std::vector<std::int32_t> offsets;
        for (std::uint64_t i = 1 + random() % 60; i > 0; --i) {
            offsets.push_back(static_cast<std::int32_t>(random() % 500));
        }
        const auto base = static_cast<std::int64_t>(random() % 1000);
        std::map<std::int64_t, std::set<std::int64_t>> rows;
        for (const std::int32_t offset : offsets) {
            const std::int64_t address = base + offset;
            rows[address / ram.lanes % ram.banks].insert(address / ram.lanes / ram.banks);
        }
        std::size_t fullest = 0;
        std::size_t all = 0;
        for (const auto& [bank, own] : rows) {
            fullest = std::max(fullest, own.size());
            all += own.size();
        }
        const AccessCost cost = counter.cost(ram, base, offsets.data(), static_cast<std::int64_t>(offsets.size()));
        CHECK(static_cast<std::size_t>(cost.cycles) == fullest);
        CHECK(static_cast<std::size_t>(cost.rows) == all);
        // Moving the set by whole rows rotates the banks and changes nothing.
        CHECK(counter.cost(ram, base + ram.lanes * 17, offsets.data(), static_cast<std::int64_t>(offsets.size()))
                  .cycles == cost.cycles);
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
