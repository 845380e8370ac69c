// Clocked equals leap: the same start, end and cycles of every kernel, the same counters of every block and memory, the
// same losses and tensors bit for bit. Long runs: make fuzz N=10000.
#include <catch2/catch.hpp>
#include <string>

#include "random_design.h"

using namespace contraflow;
using namespace contraflow::test;

namespace {

void check_designs(std::uint64_t first_seed, std::uint64_t count) {
    for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
        const Overrides design = random_design(seed);
        if (!difference_of_modes(design).empty()) {
            const Overrides shrunk = shrink(design, difference_of_modes);
            FAIL("seed " << seed << ": " << difference_of_modes(shrunk) << "configs/tiny.ini with\n" << ini_of(shrunk));
        }
    }
    SUCCEED(count << " designs");
}

MachineCase tiny_case(const Overrides& overrides, RunMode run_mode, bool reversed) {
    MachineCase machine_case = case_of(overrides);
    machine_case.options.run_mode = run_mode;
    machine_case.options.reversed_blocks = reversed;
    return machine_case;
}

}  // namespace

TEST_CASE("clocked equals leap in random designs 1 to 50") {
    check_designs(1, 50);
}

TEST_CASE("clocked equals leap in random designs 51 to 100") {
    check_designs(51, 50);
}

TEST_CASE("clocked equals leap in random designs 101 to 150") {
    check_designs(101, 50);
}

TEST_CASE("clocked equals leap in random designs 151 to 200") {
    check_designs(151, 50);
}

TEST_CASE("the order of instantiation and a second run change no cycle, counter or bit") {
    for (const char* flow : {"btt", "tt", "mm"}) {
        const Overrides design{{"network.flow", flow}, {"engine.count", "3"}, {"vector.count", "2"}};
        const Observations first = observe_in_child(tiny_case(design, RunMode::Clocked, false));
        INFO(flow);
        CHECK(differences(first, observe_in_child(tiny_case(design, RunMode::Clocked, false))) == "");
        CHECK(differences(first, observe_in_child(tiny_case(design, RunMode::Clocked, true))) == "");
        CHECK(differences(first, observe_in_child(tiny_case(design, RunMode::Leap, false))) == "");
        CHECK(differences(first, observe_in_child(tiny_case(design, RunMode::Leap, true))) == "");
    }
}

TEST_CASE("clocked equals leap in ten steps of the paper's design") {
    const std::string design = std::string(CONTRAFLOW_SOURCE_DIR) + "/configs/u50-2enc.ini";
    MachineCase machine_case;
    machine_case.config = config_of(design, {});
    machine_case.samples = random_samples(machine_case.config, 10);
    machine_case.options.run_mode = RunMode::Clocked;
    const Observations clocked = observe_in_child(machine_case, 250);
    machine_case.options.run_mode = RunMode::Leap;
    CHECK(differences(clocked, observe_in_child(machine_case, 250)) == "");
}

TEST_CASE("a comparison of runs sees a different machine, sample and tensor") {
    const Observations base = observe_in_child(tiny_case({}, RunMode::Leap, false));
    CHECK(differences(base, observe_in_child(tiny_case({{"engine.add_latency_cycles", "9"}}, RunMode::Leap, false))) !=
          "");
    CHECK(differences(only_values(base),
                      only_values(observe_in_child(tiny_case({{"train.lr", "0.06"}}, RunMode::Leap, false)))) != "");
    CHECK(differences(base, observe_in_child(tiny_case({{"train.seed", "2"}}, RunMode::Leap, false))) != "");
}

TEST_CASE("a shrunk design keeps only the keys that the failure needs") {
    const Property needs_two = [](const Overrides& design) {
        int found = 0;
        for (const auto& [key, text] : design) {
            found += key == "engine.count" || key == "memory.banks" ? 1 : 0;
        }
        return std::string(found == 2 ? "fails" : "");
    };
    const Overrides shrunk = shrink({{"train.seed", "5"},
                                     {"engine.count", "2"},
                                     {"engine.rows", "3"},
                                     {"memory.banks", "7"},
                                     {"network.slots", "3"}},
                                    needs_two);
    CHECK(shrunk == Overrides{{"train.seed", "5"}, {"engine.count", "2"}, {"memory.banks", "7"}});
    CHECK(ini_of(shrunk) == "[engine]\ncount = 2\n[memory]\nbanks = 7\n[train]\nseed = 5\n");
}
