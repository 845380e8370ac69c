// contraflow run --timeline from outside: a file that Perfetto opens, and one that agrees with the report.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "support/program_under_test.h"
#include "support/temporary_folder.h"

using contraflow::test::check_refused;
using contraflow::test::contraflow_program;
using contraflow::test::Outcome;
using contraflow::test::read_bytes;
using contraflow::test::TemporaryFolder;
using nlohmann::json;

namespace {

const std::string kTiny = " -c " + std::string(CONTRAFLOW_SOURCE_DIR) + "/configs/tiny.ini ";

struct Run {
    json report;
    std::map<std::string, std::vector<json>> tracks;  // slices by the name of their track
};

Run run_with_timeline(const std::string& arguments) {
    const TemporaryFolder temp;
    Run run;
    run.report =
        contraflow_program("run" + kTiny + "--json --timeline " + temp.file("t.json") + " " + arguments).report();
    const json timeline = json::parse(read_bytes(temp.file("t.json")));
    CHECK(timeline["displayTimeUnit"] == "ns");
    std::map<int, std::string> names;
    for (const json& event : timeline["traceEvents"]) {
        CHECK(event["pid"] == 0);
        if (event["ph"] == "M") {
            if (event["name"] == "thread_name") {
                names[event["tid"].get<int>()] = event["args"]["name"];
                run.tracks[event["args"]["name"]];
            }
            continue;
        }
        REQUIRE(event["ph"] == "X");
        REQUIRE(names.count(event["tid"].get<int>()) == 1);
        run.tracks[names[event["tid"].get<int>()]].push_back(event);
    }
    return run;
}

std::uint64_t arg(const json& slice, const char* name) {
    return slice["args"][name].get<std::uint64_t>();
}

// Slices in order of time, none before the one before has ended; microseconds agree with the edges in `args`.
void check_track(std::vector<json>& slices, double clock_hz) {
    std::sort(slices.begin(), slices.end(),
              [](const json& a, const json& b) { return arg(a, "start") < arg(b, "start"); });
    std::uint64_t end = 0;
    for (const json& slice : slices) {
        INFO(slice.dump());
        CHECK(arg(slice, "start") >= end);
        end = arg(slice, "end");
        CHECK(end > arg(slice, "start"));
        CHECK(slice["ts"].get<double>() == Approx(1e6 * static_cast<double>(arg(slice, "start")) / clock_hz));
        CHECK(slice["dur"].get<double>() == Approx(1e6 * static_cast<double>(end - arg(slice, "start")) / clock_hz));
    }
}

std::uint64_t sum_of(const std::vector<json>& slices, const char* what) {
    std::uint64_t sum = 0;
    for (const json& slice : slices) {
        sum += arg(slice, what);
    }
    return sum;
}

constexpr const char* kMachine = "--steps 3 --engine.count=3 --vector.count=2 --dram.channels=2 ";

}  // namespace

TEST_CASE("every engine, vector unit, DMA and DRAM channel has a track, and slices on it do not overlap") {
    for (const char* policy : {"overlap", "serial"}) {
        INFO(policy);
        Run run = run_with_timeline(kMachine + std::string("--schedule.policy=") + policy);
        std::vector<std::string> names;
        for (auto& [name, slices] : run.tracks) {
            INFO(name);
            names.push_back(name);
            CHECK((!slices.empty() || name == "vector1"));  // one at a time never needs a second
            check_track(slices, run.report["clock_hz"].get<double>());
        }
        CHECK(names == std::vector<std::string>{"dma", "dram0", "dram1", "engine0", "engine1", "engine2", "steps",
                                                "vector0", "vector1"});
    }
}

TEST_CASE("the slices of a timeline are the kernels and the steps of the report") {
    const Run run = run_with_timeline(kMachine);
    const auto& steps = run.tracks.at("steps");
    REQUIRE(steps.size() == 3);
    for (std::size_t i = 0; i < steps.size(); ++i) {
        CHECK(arg(steps[i], "end") - arg(steps[i], "start") == run.report["step_cycles"][i].get<std::uint64_t>());
    }
    std::map<std::pair<int, std::string>, json> kernels;
    for (const json& kernel : run.report["kernels"]) {
        kernels[{kernel["step"].get<int>(), kernel["name"].get<std::string>()}] = kernel;
    }
    std::size_t engine_slices = 0;
    std::size_t expected_engine_slices = 0;
    for (const auto& [track, slices] : run.tracks) {
        for (const json& slice : slices) {
            if (track == "steps") {
                continue;
            }
            INFO(track << ": " << slice.dump());
            const json& args = slice["args"];
            const json& kernel = kernels.at({args["step"].get<int>(), slice["name"].get<std::string>()});
            CHECK(slice["cat"] == kernel["class"]);
            for (const char* field : {"phase", "macs", "start", "end", "busy", "units"}) {
                CHECK(args[field] == kernel[field]);
            }
            for (const auto& [cause, cycles] : kernel["stalls"].items()) {
                CHECK(args[cause] == cycles);
            }
            if (track.rfind("engine", 0) == 0) {
                ++engine_slices;
                CHECK(args["operation"] == "contraction");
                // batch x rows x cols x depth, whose product are the MACs.
                const std::string shape = args["shape"];
                CHECK(std::count(shape.begin(), shape.end(), 'x') == 3);
            }
        }
    }
    for (const json& kernel : run.report["kernels"]) {
        expected_engine_slices +=
            kernel["unit"].get<std::string>().rfind("engine", 0) == 0 ? kernel["units"].get<std::size_t>() : 0;
    }
    CHECK(engine_slices == expected_engine_slices);
}

TEST_CASE("the slices of a unit hold exactly the busy and stalled cycles of its block") {
    const Run run = run_with_timeline(kMachine);
    std::size_t units = 0;
    for (const json& block : run.report["blocks"]) {
        const std::string name = block["name"];
        if (!block["stalls"].contains("write_back")) {
            continue;  // no unit that runs kernels
        }
        INFO(block.dump());
        ++units;
        const std::vector<json>& slices = run.tracks.at(name);
        std::uint64_t used = block["busy"];
        for (const auto& stall : block["stalls"]) {
            used += stall.get<std::uint64_t>();
        }
        // A slice begins at the edge that posts the command, one before the unit takes it.
        CHECK(sum_of(slices, "end") - sum_of(slices, "start") == used + slices.size());
        if (name.rfind("engine", 0) != 0) {  // of a gang, the slices hold the account of its first engine
            CHECK(sum_of(slices, "busy") == block["busy"].get<std::uint64_t>());
        }
    }
    CHECK(units == 6);
}

TEST_CASE("a long run's timeline holds its first and its last step, and all steps as slices") {
    const Run run = run_with_timeline("--steps 17 --values off");
    CHECK(run.tracks.at("steps").size() == 17);
    const auto& dma = run.tracks.at("dma");
    CHECK(std::all_of(dma.begin(), dma.end(),
                      [](const json& slice) { return slice["args"]["step"] == 0 || slice["args"]["step"] == 16; }));
}

TEST_CASE("a timeline replaces a timeline, but no other file, and lies beside the results") {
    const TemporaryFolder temp;
    const std::string timeline = " --timeline " + temp.file("t.json");
    CHECK(contraflow_program("run" + kTiny + timeline).status == 0);
    const std::string first = read_bytes(temp.file("t.json"));
    CHECK(contraflow_program("run" + kTiny + timeline).status == 0);
    CHECK(read_bytes(temp.file("t.json")) == first);
    const auto refused = [](const std::string& arguments, const std::string& text) {
        check_refused("run" + kTiny + arguments, {text});
    };
    CHECK(contraflow_program("run" + kTiny + "--json --out " + temp.file("out")).status == 0);
    refused("--timeline " + temp.file("out/report.json"), "exists and is no timeline");
    refused("--timeline " + temp.file("none/t.json"), "there is no folder");
    for (const char* out : {"out", "out/"}) {
        refused("--force --out " + temp.file(out) + " --timeline " + temp.file("out/t.json"), "lies in --out");
    }
    CHECK(contraflow_program("run" + kTiny + timeline + " --force --out " + temp.file("out")).status == 0);
}
