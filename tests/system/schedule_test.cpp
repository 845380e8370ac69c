// What the schedule and the mapping may change, and what not: cycles, never a bit.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "contraflow/error.h"
#include "random_design.h"

using namespace contraflow;
using namespace contraflow::test;

namespace {

MachineCase with(Overrides design, const Overrides& more) {
    design.insert(design.end(), more.begin(), more.end());
    return case_of(design);
}

// Edge at which the last kernel ended.
std::uint64_t last_end(const Observations& observations) {
    std::uint64_t last = 0;
    for (const auto& [name, value] : observations) {
        if (name.size() > 4 && name.compare(0, 7, "kernel ") == 0 && name.compare(name.size() - 4, 4, " end") == 0) {
            last = std::max(last, value);
        }
    }
    return last;
}

}  // namespace

TEST_CASE("overlap is never slower than serial in random designs") {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        const Overrides design = random_design(seed);
        MachineCase serial = with(design, {{"schedule.policy", "serial"}});
        MachineCase overlap = with(design, {{"schedule.policy", "overlap"}});
        serial.options.values = overlap.options.values = false;
        const std::uint64_t slow = last_end(observe_in_child(serial));
        const std::uint64_t fast = last_end(observe_in_child(overlap));
        REQUIRE(slow > 0);
        INFO("seed " << seed << '\n' << ini_of(design));
        CHECK(fast <= slow);
    }
}

TEST_CASE("no policy and no forced mapping changes a bit") {
    const Overrides design{{"engine.count", "3"}, {"engine.interleave", "6"}};
    const Observations base = only_values(observe_in_child(with(design, {})));
    REQUIRE(base.size() > 100);
    const std::vector<Overrides> others{{{"schedule.look_ahead", "off"}},
                                        {{"schedule.policy", "serial"}, {"schedule.split", "off"}},
                                        {{"engine.mapping", "*:rows"}},
                                        {{"engine.mapping", "*:cols"}},
                                        {{"engine.mapping", "*.fwd.*:cols/1x1,*:rows/1x1x1"}},
                                        {{"engine.mapping", "*attn.fwd.scores:rows/3x2"}}};
    for (const Overrides& other : others) {
        INFO(ini_of(other));
        CHECK(differences(base, only_values(observe_in_child(with(design, other)))) == "");
    }
}

TEST_CASE("a forced mapping is taken, and one that does not exist is refused") {
    const Overrides design{{"engine.count", "1"}, {"engine.rows", "2"}, {"engine.cols", "7"}};
    const auto cycles = [&design](const char* rule) {
        return last_end(observe_in_child(with(design, {{"engine.mapping", rule}, {"schedule.policy", "serial"}})));
    };
    CHECK(cycles("*:rows/1x1") != cycles("*:cols/1x1"));
    CHECK(cycles("no.such.kernel:rows/1x1") ==
          last_end(observe_in_child(with(design, {{"schedule.policy", "serial"}}))));
    CHECK_THROWS_WITH(observe(with(design, {{"engine.mapping", "*.T:rows/64x64"}})),
                      Catch::Contains("engine.mapping: *.T matches ") && Catch::Contains("no mapping of this form"));
}
