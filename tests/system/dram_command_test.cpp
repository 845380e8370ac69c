// contraflow dram from outside: traces plain and compressed, its files, and what is wrong with an input.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support/program_under_test.h"
#include "support/temporary_folder.h"

using contraflow::test::check_refused;
using contraflow::test::contraflow_program;
using contraflow::test::Outcome;
using contraflow::test::read_bytes;
using contraflow::test::run_shell;
using contraflow::test::TemporaryFolder;
using nlohmann::json;

namespace {

const std::string kSource = CONTRAFLOW_SOURCE_DIR;

// The command on DDR4-2400.
std::string replay_arguments(const std::string& trace, const std::string& options) {
    return "dram --memory memories/ddr4-2400.ini --trace '" + trace + "' " + options;
}

Outcome replay(const std::string& trace, const std::string& options = "") {
    return contraflow_program(replay_arguments(trace, options));
}

void check_replay_refused(const std::string& trace, const std::string& options, const std::string& text) {
    check_refused(replay_arguments(trace, options), {text});
}

}  // namespace

TEST_CASE("a trace is replayed, plain and compressed, and its figures are those of its requests") {
    const TemporaryFolder folder;
    const std::string trace =
        folder.write("t.trc", "# two rows of a bank\n0 R 0x0\n\n100 W 0x40000\r\n200 R 0x40100\n");
    REQUIRE(run_shell("gzip -k '" + trace + "'").status == 0);
    const json report = replay(trace, "--json").report();
    CHECK(replay(trace + ".gz", "--json").report() == report);
    CHECK(report["requests"] == 3);
    CHECK(report["reads"] == 2);
    CHECK(report["write_bytes"] == 64);
    CHECK(report["row_hits"] == 1);
    CHECK(report["row_misses"] == 2);
    CHECK(report["row_conflicts"] == 1);
    CHECK(report["commands"]["ACT"] == 2);
    CHECK(report["commands"]["PRE"] == 1);
    CHECK(report["total_cycles"] == 222);
    CHECK(report["bandwidth_gb_per_s"].get<double>() == Approx(3 * 64 * 1.2 / 222));
    CHECK(report["percent_of_peak"].get<double>() == Approx(3 * 4 * 100.0 / 222));
    CHECK(report["read_latency_cycles"]["max"] == 39);
    CHECK(report["read_latency_cycles"]["mean"] == (39 + 22) / 2.0);
    CHECK(report["channels"].size() == 1);
    CHECK(replay(trace).out.find("3 requests in 222 memory cycles") != std::string::npos);
}

TEST_CASE("completions and commands are written with the trace's lines") {
    const TemporaryFolder folder;
    const std::string trace =
        folder.write("t.trc", "# a read, then a write to another bank group\n0 R 0x0\n100 W 0x40040\n");
    const std::string completions = folder.file("completions.csv");
    const std::string commands = folder.file("commands.csv");
    REQUIRE(replay(trace, "--completions '" + completions + "' --commands '" + commands + "'").status == 0);
    CHECK(read_bytes(completions) == "line,accepted,done\n1,0,39\n2,100,134\n");
    CHECK(read_bytes(commands) ==
          "cycle,cmd,rank,bg,bank,row,col,req\n"
          "1,ACT,0,0,0,0,-1,-1\n"
          "18,RD,0,0,0,0,0,1\n"
          "101,ACT,0,1,0,2,-1,-1\n"
          "118,WR,0,1,0,2,0,2\n");
}

TEST_CASE("mapping A and B, and keys of the controller") {
    const TemporaryFolder folder;
    std::ostringstream text;
    for (int i = 0; i < 64; ++i) {
        text << "0 R 0x" << std::hex << 64 * i << "\n";
    }
    const std::string trace = folder.write("t.trc", text.str());
    // One bank group after another, or four in turn.
    const auto cycles = [&](const std::string& options) {
        return replay(trace, "--json " + options).report()["total_cycles"].get<int>();
    };
    CHECK(cycles("--mapping A") == 1 + 17 + 63 * 6 + 17 + 4);
    CHECK(cycles("--mapping B") == 1 + 17 + 63 * 4 + 17 + 4);
    CHECK(cycles("--dram.mapping=ro,ra,bg,ba,co") == cycles("--mapping A"));
    CHECK(cycles("--mapping B --dram.page_policy=closed") >= cycles("--mapping B"));
    CHECK(cycles("--mapping B --dram.channels=2") < cycles("--mapping B"));
}

TEST_CASE("what is wrong with a trace is told with file and line") {
    const TemporaryFolder folder;
    const auto check = [&](const std::string& content, const std::string& line, const std::string& text) {
        const std::string trace = folder.write("t.trc", content);
        check_replay_refused(trace, "", trace + (line.empty() ? "" : ":" + line) + ": " + text);
    };
    check("0 R 0x0\n-1 R 0x0\n", "2", "cycle \"-1\" is not a whole number of 0 to ");
    check("0\n", "1", "request \"\" is neither R nor W");
    check("0 R 0x0\n# comment\n1 X 0x0\n", "3", "request \"X\" is neither R nor W");
    check("0 R 40\n", "1", "address \"40\" is not a hexadecimal number");
    check("0 R 0x\n", "1", "address \"0x\" is not a hexadecimal number");
    check("0 R 0x1ffffffffffffffff\n", "1", "address \"0x1ffffffffffffffff\" is not");
    check("0 R 0x0 1\n", "1", "\"1\" follows the address");
    check("5 R 0x0\n4 R 0x0\n", "2", "cycle 4 comes after cycle 5");
    check("0 R 0x200000000\n", "1",
          "address 0x200000000 is beyond DDR4-2400T, 8 Gb x8, 64 bits, which holds 8589934592 bytes");
    check("0 R 0x0\n0 R 0x" + std::string(500, '0') + "\n", "2", "is longer than ");
    check("", "", "holds no request");
    check("# nothing\n", "", "holds no request");
    check(std::string("0 R 0x0\n\0\0\n", 11), "2", "is longer than 198 characters, or not text");
    check_replay_refused(folder.file("none.trc"), "", folder.file("none.trc") + ": No such file or directory");
    check_replay_refused(folder.path().string(), "", folder.path().string() + ":1: is not readable: Is a directory");
}

TEST_CASE("a damaged compressed trace is refused") {
    const TemporaryFolder folder;
    const std::string whole = folder.file("whole.gz");
    const std::string cut = folder.file("cut.gz");
    REQUIRE(run_shell("for i in $(seq 0 99999); do echo \"$i R 0x0\"; done | gzip > '" + whole + "'").status == 0);
    REQUIRE(run_shell("head -c 20000 '" + whole + "' > '" + cut + "'").status == 0);
    check_replay_refused(cut, "", "unexpected end of file");
}

TEST_CASE("options that cannot be are refused") {
    const TemporaryFolder folder;
    const std::string trace = folder.write("t.trc", "0 R 0x0\n");
    check_replay_refused(trace, "--mapping C", "--dram.mapping=C: \"C\" is no field; expected A, B, or ");
    check_replay_refused(trace, "--dram.scheduler=best", "--dram.scheduler=best");
    check_replay_refused(trace, "--commands '" + folder.file("no/x.csv") + "'", "no/x.csv: No such file or directory");
    check_replay_refused(trace, "--commands '" + trace + "'", "t.trc: is used by the same command");
    const std::string both = "'" + folder.file("x.csv") + "'";
    check_replay_refused(trace, "--commands " + both + " --completions " + both, "x.csv: is used by the same command");
    CHECK(read_bytes(trace) == "0 R 0x0\n");
    const Outcome full = replay(trace, "--commands /dev/full");
    CHECK(full.status == 1);
    CHECK(full.err.find("/dev/full: could not be written: No space left on device") != std::string::npos);
    const Outcome no_memory = contraflow_program("dram --trace '" + trace + "'");
    CHECK(no_memory.status == 2);
    CHECK(no_memory.err.find("no --memory given") != std::string::npos);
    const Outcome bad_memory = contraflow_program("dram --memory '" + trace + "' --trace '" + trace + "'");
    CHECK(bad_memory.status == 2);
    CHECK(bad_memory.err.find("t.trc") != std::string::npos);
}
