// The scripts of configs/sweeps find what they say they find.
#include <catch2/catch.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "support/program_under_test.h"
#include "support/temporary_folder.h"

using contraflow::test::contraflow_program;
using contraflow::test::Outcome;
using contraflow::test::run_shell;
using contraflow::test::TemporaryFolder;
using nlohmann::json;

namespace {

const std::string kSweeps = std::string(CONTRAFLOW_SOURCE_DIR) + "/configs/sweeps/";
const std::string kTiny = std::string(CONTRAFLOW_SOURCE_DIR) + "/configs/tiny.ini";
const std::string kProgram = CONTRAFLOW_PROGRAM;

// "OPTIONS: N cycles, M BRAM36": what the program says of a design with these options.
json report_of_answer(const std::string& answer, const std::string& more) {
    return contraflow_program("run --json -c " + kTiny + " " + more + " " + answer.substr(0, answer.find(": ")))
        .report();
}

std::uint64_t cycles_in(const std::string& answer) {
    return std::stoull(answer.substr(answer.find(": ") + 2));
}

}  // namespace

TEST_CASE("the shell script ends at the fastest design that it has seen within the budget") {
    const TemporaryFolder temp;
    const auto search = [&](const std::string& budget) {
        const std::string db = temp.file("within " + budget);
        const Outcome outcome = run_shell("CONTRAFLOW='" + kProgram + "' DATABASE='" + db + "' " + kSweeps +
                                          "fastest-within.sh " + budget + " -c " + kTiny);
        INFO(outcome.out << outcome.err);
        REQUIRE(outcome.status == 0);
        const json report = report_of_answer(outcome.out, "");
        CHECK(report["cycles"]["total"] == cycles_in(outcome.out));
        CHECK(report["memory"]["bram36"]["used"] <= std::stoi(budget));

        const json rows = contraflow_program("export --json --db '" + db + "'").report();
        CHECK(rows.size() > 54);  // it moved
        for (const json& row : rows) {
            if (row["status"] == "done" && row["report"]["memory"]["bram36"]["used"] <= std::stoi(budget)) {
                CHECK(row["report"]["cycles"]["total"] >= report["cycles"]["total"]);
            }
        }
        return cycles_in(outcome.out);
    };
    CHECK(search("40") > search("150"));  // the budget binds
    CHECK(run_shell("CONTRAFLOW='" + kProgram + "' DATABASE='" + temp.file("none") + "' " + kSweeps +
                    "fastest-within.sh 0 -c " + kTiny + " --memory.parameters=bram")
              .status == 1);
}

TEST_CASE("the Python script finds the best of a small grid, and the budget binds") {
    const auto search = [](const std::string& budget) {
        const Outcome outcome = run_shell("python3 " + kSweeps + "fastest_within.py --program '" + kProgram + "' " +
                                          budget + " " + kTiny + " memory.banks=2,4,16 engine.cols=2,8");
        INFO(outcome.err);
        REQUIRE(outcome.status == 0);
        const json report = report_of_answer(outcome.out, "");
        CHECK(report["cycles"]["total"] == cycles_in(outcome.out));
        CHECK(report["memory"]["bram36"]["used"] <= std::stoi(budget));
        return cycles_in(outcome.out);
    };
    std::uint64_t best = UINT64_MAX;
    for (const char* banks : {"2", "4", "16"}) {
        for (const char* cols : {"2", "8"}) {
            const json report = contraflow_program("run --json --values off -c " + kTiny + " --memory.banks=" + banks +
                                                   " --engine.cols=" + cols)
                                    .report();
            best = std::min(best, report["cycles"]["total"].get<std::uint64_t>());
        }
    }
    CHECK(search("1000") == best);
    CHECK(search("40") > best);
}

TEST_CASE("the ready-made sweeps run") {
    const TemporaryFolder temp;
    const auto run = [&](const std::string& script, const std::string& options) {
        const Outcome outcome = run_shell("cd '" + temp.path().string() + "'; DESIGN=tiny.ini CONTRAFLOW='" + kProgram +
                                          "' '" + kSweeps + script + "' " + options);
        INFO(script << outcome.err);
        CHECK(outcome.status == 0);
        return outcome.out;
    };
    CHECK(run("rank-pes.sh", "").find("memory.parameters_bytes") != std::string::npos);
    CHECK(run("flow-encoders.sh", "").find("\n8,mm,6,done,,") != std::string::npos);
    CHECK(run("devices.sh", "").find("\n5,devices/kv260.ini,") != std::string::npos);
}
