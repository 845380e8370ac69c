// What the machine computes: the bits of the plain interpreter, in every configuration.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "random_design.h"

using namespace contraflow;
using namespace contraflow::test;

namespace {

using Designs = std::vector<Overrides>;

// Designs that change one thing at a time, or a few that belong together.
Designs machines() {
    Designs designs;
    for (const char* count : {"1", "2", "3", "4"}) {
        designs.push_back({{"engine.count", count}});
        designs.push_back({{"engine.count", count}, {"schedule.split", "off"}});
        designs.push_back({{"engine.count", count}, {"schedule.policy", "serial"}});
    }
    for (const auto& [rows, cols] : std::vector<std::pair<const char*, const char*>>{
             {"1", "1"}, {"2", "5"}, {"7", "13"}, {"5", "2"}, {"32", "64"}}) {
        designs.push_back({{"engine.rows", rows}, {"engine.cols", cols}});
        designs.push_back({{"engine.rows", rows}, {"engine.cols", cols}, {"engine.count", "3"}});
    }
    for (const char* interleave : {"1", "2", "3", "4", "5", "6", "7", "8"}) {
        designs.push_back({{"engine.interleave", interleave}});
    }
    for (const char* lanes : {"1", "5", "32"}) {
        designs.push_back({{"vector.lanes", lanes}, {"vector.special_lanes", "1"}});
        designs.push_back({{"vector.lanes", lanes}, {"vector.special_lanes", "8"}, {"vector.count", "2"}});
    }
    for (const char* banks : {"1", "4", "32"}) {
        for (const char* ports : {"1", "2"}) {
            for (const char* layout : {"naive", "auto"}) {
                designs.push_back({{"memory.banks", banks}, {"memory.ports", ports}, {"memory.layout", layout}});
            }
        }
    }
    const Overrides all_in_dram{{"memory.parameters", "dram"},
                                {"memory.gradients", "dram"},
                                {"memory.activations", "dram"},
                                {"memory.scratch", "dram"}};
    designs.push_back(all_in_dram);
    designs.push_back(
        {all_in_dram[0], all_in_dram[1], {"memory.stream_words", "6000"}, {"memory.stream_buffers", "2"}});
    designs.push_back({{"memory.tensors", "*:reshape=2,embed.pos:block.1=3:cyclic.0=2,*.gamma:cyclic.0=4"}});
    return designs;
}

// Streamed in tiles: the tiny dense network has matrices of up to 5,184 words.
Designs streamed_machines() {
    Designs designs;
    for (const char* words : {"400", "700"}) {
        for (const char* engines : {"1", "3"}) {
            designs.push_back({{"memory.parameters", "dram"},
                               {"memory.gradients", "dram"},
                               {"memory.stream_words", words},
                               {"engine.count", engines}});
        }
    }
    return designs;
}

MachineCase run_of(Overrides design, const Overrides& more, RunMode run_mode) {
    design.insert(design.end(), more.begin(), more.end());
    MachineCase machine_case;
    machine_case.config = tiny_config(design);
    machine_case.samples = random_samples(machine_case.config, 2);
    machine_case.options.run_mode = run_mode;
    return machine_case;
}

void check_against_reference(const char* flow, RunMode run_mode) {
    for (const Overrides& design : machines()) {
        const Overrides more{{"network.flow", flow}};
        INFO(ini_of(design));
        CHECK(difference_from_reference(run_of(design, more, run_mode)) == "");
    }
}

// Losses and parameters of a run.
Observations bits_of(const Overrides& design, const Overrides& more) {
    return only_values(observe_in_child(run_of(design, more, RunMode::Leap)));
}

}  // namespace

TEST_CASE("the machine computes the reference's bits in the bidirectional flow") {
    check_against_reference("btt", RunMode::Leap);
}

TEST_CASE("the machine computes the reference's bits in the right-to-left flow") {
    check_against_reference("tt", RunMode::Leap);
}

TEST_CASE("the machine computes the reference's bits in the dense flow") {
    check_against_reference("mm", RunMode::Leap);
}

TEST_CASE("the machine computes the reference's bits when dense weights stream through tiles") {
    for (const Overrides& design : streamed_machines()) {
        for (const RunMode run_mode : {RunMode::Leap, RunMode::Clocked}) {
            INFO(ini_of(design));
            CHECK(difference_from_reference(run_of(design, {{"network.flow", "mm"}}, run_mode)) == "");
        }
    }
}

TEST_CASE("the clocked machine computes the reference's bits") {
    check_against_reference("btt", RunMode::Clocked);
}

TEST_CASE("the machine computes the reference's bits for every number of partial sums") {
    for (const char* flow : {"btt", "tt", "mm"}) {
        for (const char* sums : {"1", "2", "3", "5", "64"}) {
            for (const char* interleave : {"1", "8"}) {
                const Overrides design{{"network.flow", flow},
                                       {"engine.partial_sums", sums},
                                       {"engine.interleave", interleave},
                                       {"engine.count", "2"}};
                INFO(ini_of(design));
                CHECK(difference_from_reference(run_of(design, {}, RunMode::Leap)) == "");
            }
        }
    }
}

TEST_CASE("the machine computes the reference's bits in random designs") {
    for (std::uint64_t seed = 1001; seed <= 1060; ++seed) {
        const Overrides design = random_design(seed);
        INFO("seed " << seed << '\n' << ini_of(design));
        CHECK(difference_from_reference(case_of(design)) == "");
    }
}

TEST_CASE("no bit of a loss or tensor depends on array size, engines, split, schedule, lanes or memory") {
    for (const char* flow : {"btt", "tt", "mm"}) {
        const Overrides more{{"network.flow", flow}};
        const Observations base = bits_of({}, more);
        REQUIRE(base.size() > 100);
        for (const Overrides& design : machines()) {
            INFO(flow << '\n' << ini_of(design));
            CHECK(differences(base, bits_of(design, more)) == "");
        }
    }
}
