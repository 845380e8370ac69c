// The DRAM against recorded results of three open simulators (DRAMsim3, Ramulator 2, DRAMSys), where a copy of them is
// found: -DCONTRAFLOW_DRAM_REFERENCE=FOLDER. Without it the tests say so and pass: tests/unit/dram_timing_test.cpp
// holds the same cycles to closed forms.
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "contraflow/load_config.h"
#include "dram_trace/replay.h"
#include "support/temporary_folder.h"

using namespace contraflow;

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kReference = CONTRAFLOW_DRAM_REFERENCE;

struct Memory {
    std::string device, geometry, file;
};
const std::vector<Memory> kMemories{
    {"ddr4_2400_8gb_x8", "ddr4_8gb_x8", "ddr4-2400"}, {"ddr4_3200_8gb_x8", "ddr4_8gb_x8", "ddr4-3200"},
    {"ddr3_1600_4gb_x8", "ddr3_4gb_x8", "ddr3-1600"}, {"hbm2_2000_legacy128", "hbm2_legacy128", "hbm2-legacy"},
    {"hbm2_2000_pc64", "hbm2_pc64", "hbm2-pc"},       {"lpddr4_3200_8gb_x16x2", "lpddr4_8gb_x16x2", "lpddr4-3200"}};

bool reference_is_there() {
    if (fs::exists(kReference / "results" / "expectations.json")) {
        return true;
    }
    WARN("skipped: no recorded results in " << kReference);
    return false;
}

DramConfig config_of(const Memory& memory, const std::string& mapping) {
    const std::string file = std::string(CONTRAFLOW_SOURCE_DIR) + "/configs/memories/" + memory.file + ".ini";
    return load_config("", {{"dram.file", file}, {"dram.mapping", mapping}}).config.dram;
}

std::vector<TraceRequest> trace_of(const Memory& memory, const std::string& mapping, const std::string& name,
                                   const DramConfig& config) {
    fs::path file = kReference / "traces" / (memory.geometry + "." + mapping) / (name + ".trc");
    if (!fs::exists(file)) {
        file += ".gz";
    }
    return read_request_trace(file.string(), static_cast<std::uint64_t>(config.capacity_bytes()), config.name);
}

// Rows of a CSV file that may be compressed, by column.
std::map<std::string, std::vector<std::string>> csv_of(const fs::path& file) {
    std::map<std::string, std::vector<std::string>> columns;
    std::vector<std::string> names;
    std::FILE* pipe = popen(("gzip -dc '" + file.string() + "'").c_str(), "r");
    REQUIRE(pipe != nullptr);
    char buffer[4096];
    while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) {
        std::istringstream line(std::string(buffer, std::string(buffer).find_last_not_of("\r\n") + 1));
        std::vector<std::string> cells;
        for (std::string cell; std::getline(line, cell, ',');) {
            cells.push_back(cell);
        }
        if (names.empty()) {
            names = cells;
            continue;
        }
        for (std::size_t i = 0; i < names.size(); ++i) {
            columns[names[i]].push_back(i < cells.size() ? cells[i] : "");
        }
    }
    REQUIRE(pclose(pipe) == 0);
    return columns;
}

// Requests of the reference that were done in another cycle, of a simulator that models what ours does.
void check_every_request(const fs::path& file, bool same_command_lengths, const Replay& replay) {
    const auto columns = csv_of(file);
    std::size_t compared = 0;
    for (const auto& [name, done] : columns) {
        const std::size_t dot = name.rfind(".done");
        // DRAMsim3 has no commands of several cycles.
        if (dot == std::string::npos || (!same_command_lengths && name.compare(0, 8, "dramsim3") == 0)) {
            continue;
        }
        CAPTURE(name);
        std::size_t differences = 0;
        const std::vector<std::string>& requests = columns.at("req");
        for (std::size_t i = 0; i < requests.size(); ++i) {
            if (!done[i].empty() && done[i] != "None") {
                ++compared;
                differences += replay.requests[std::stoul(requests[i])].done != std::stoull(done[i]) ? 1 : 0;
            }
        }
        CHECK(differences == 0);
    }
    CHECK(compared > 0);
}

void check_trace(const Memory& memory, const std::string& mapping, const std::string& trace, const json& expected) {
    CAPTURE(memory.file, mapping, trace);
    const DramConfig config = config_of(memory, mapping);
    const Replay result = replay(config, trace_of(memory, mapping, trace, config));
    const std::string kind = expected["cls"];
    const json& totals = expected["total_cycles"];
    const auto total = static_cast<double>(result.total_cycles);
    if (kind == "exact" || kind == "exact_up_to_command_length") {
        check_every_request(kReference / "results" / "requests" / (memory.device + "." + mapping) / (trace + ".csv.gz"),
                            kind == "exact", result);
        return;
    }
    CHECK(total >= expected["accept_total_cycles"][0].get<double>());
    CHECK(total <= expected["accept_total_cycles"][1].get<double>());
    if (kind == "near") {
        double nearest = 1;
        for (const char* simulator : {"dramsim3.rankq32", "ramulator2.frfcfs", "dramsys.frfcfs"}) {
            if (totals.contains(simulator)) {
                nearest = std::min(nearest, std::abs(total / totals[simulator].get<double>() - 1));
            }
        }
        CHECK(nearest <= 0.01);
    }
}

}  // namespace

TEST_CASE("every recorded trace is done in the reference's cycles") {
    if (!reference_is_there()) {
        return;
    }
    const json expectations = json::parse(std::ifstream(kReference / "results" / "expectations.json"));
    std::size_t traces = 0;
    for (const Memory& memory : kMemories) {
        for (const char* mapping : {"A", "B"}) {
            const std::string key = memory.device + "." + mapping;
            if (!expectations.contains(key)) {
                continue;
            }
            for (const auto& [trace, expected] : expectations[key].items()) {
                check_trace(memory, mapping, trace, expected);
                ++traces;
            }
        }
    }
    CHECK(traces == 260);
}

TEST_CASE("the reference's checker finds no violation in a command trace") {
    if (!reference_is_there()) {
        return;
    }
    const test::TemporaryFolder folder;
    const std::string out = (folder.path() / "commands.csv").string();
    for (const Memory& memory : kMemories) {
        for (const char* trace : {"t15_random_rw50", "t18_refresh_crossing", "t14_copy_stream"}) {
            CAPTURE(memory.file, trace);
            fs::path file = kReference / "traces" / (memory.geometry + ".A") / (std::string(trace) + ".trc");
            file += fs::exists(file) ? "" : ".gz";
            const std::string replayed = std::string(CONTRAFLOW_PROGRAM) + " dram --mapping A --memory " +
                                         CONTRAFLOW_SOURCE_DIR + "/configs/memories/" + memory.file + ".ini --trace " +
                                         file.string() + " --commands " + out + " > /dev/null";
            REQUIRE(std::system(replayed.c_str()) == 0);
            const std::string checked = "python3 " + (kReference / "check_commands.py").string() + " -q " +
                                        (kReference / "devices" / (memory.device + ".json")).string() + " " + out +
                                        " > /dev/null";
            CHECK(std::system(checked.c_str()) == 0);
        }
    }
}
