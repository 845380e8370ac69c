// The installed tree stands on its own: program, library, designs and documents.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "support/program_under_test.h"
#include "support/temporary_folder.h"

using contraflow::test::contraflow_program;
using contraflow::test::Outcome;
using contraflow::test::read_bytes;
using contraflow::test::run_shell;
using contraflow::test::TemporaryFolder;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

// Under a name that a shell, CMake and pkg-config may trip over.
fs::path install_into(const TemporaryFolder& temp) {
    const fs::path prefix = temp.path() / "Größe mit Maß";
    const Outcome outcome = run_shell("cmake --install '" CONTRAFLOW_BINARY_DIR "' --prefix '" + prefix.string() + "'");
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.status == 0);
    return prefix;
}

std::string in_quotes(const fs::path& path) {
    return "'" + path.string() + "'";
}

json without_host(json report) {
    report.erase("host");
    return report;
}

}  // namespace

TEST_CASE("the installed program finds its own files wherever it lies and from any folder") {
    const TemporaryFolder temp;
    fs::path prefix = install_into(temp);
    for (const char* file : {"bin/contraflow", "share/contraflow/configs/u50-2enc.ini", "share/doc/contraflow/keys.md",
                             "share/doc/contraflow/README.md", "share/contraflow/configs/sweeps/rank-pes.sh",
                             "include/contraflow/training_run.h", "lib/cmake/contraflow/contraflow-config.cmake"}) {
        INFO(file);
        CHECK(fs::exists(prefix / file));
    }
    const fs::path moved = temp.path() / "moved";
    fs::rename(prefix, moved);
    prefix = moved;
    const std::string program = "cd /; " + in_quotes(prefix / "bin/contraflow") + " ";

    const json here = contraflow_program("run --json -c " CONTRAFLOW_SOURCE_DIR "/configs/tiny.ini").report();
    const json there =
        run_shell(program + "run --json -c " + in_quotes(prefix / "share/contraflow/configs/tiny.ini")).report();
    CHECK(without_host(here) == without_host(there));

    // A design of the user's own, elsewhere, on a device that only the installed tree has: not the source tree's.
    const fs::path devices = prefix / "share/contraflow/configs/devices";
    fs::copy_file(devices / "kv260.ini", devices / "mine.ini");
    const std::string design =
        temp.write("design.ini", "[device]\nfile = devices/mine.ini\n[data]\npath = traces/atis_like\n");
    const json own = run_shell(program + "check --json --allow-overflow -c " + in_quotes(design)).report();
    const json kv260 =
        contraflow_program("check --json --allow-overflow --device.file=devices/kv260.ini -c " + in_quotes(design))
            .report();
    CHECK(own["memory"] == kv260["memory"]);
    CHECK(run_shell(program + "devices").out.find("mine") != std::string::npos);
    CHECK(run_shell(program + "run --allow-overflow --values off -c " + in_quotes(design)).status == 0);

    const Outcome sweep = run_shell("cd " + in_quotes(temp.path()) +
                                    "; DESIGN=tiny.ini CONTRAFLOW=" + in_quotes(prefix / "bin/contraflow") + " " +
                                    in_quotes(prefix / "share/contraflow/configs/sweeps/devices.sh"));
    INFO(sweep.err);
    CHECK(sweep.status == 0);
}

TEST_CASE("a program of the user's own builds against the installed library and reports what the command does") {
    const TemporaryFolder temp;
    const fs::path prefix = install_into(temp);
    const fs::path example = prefix / "share/contraflow/examples/embed";
    const fs::path build = temp.path() / "build";
    const Outcome built =
        run_shell("cmake -S " + in_quotes(example) + " -B " + in_quotes(build) + " -DCMAKE_BUILD_TYPE=Release " +
                  "-DCMAKE_PREFIX_PATH=" + in_quotes(prefix) + " && cmake --build " + in_quotes(build));
    INFO(built.out << built.err);
    REQUIRE(built.status == 0);

    const std::string design = in_quotes(prefix / "share/contraflow/configs/tiny.ini");
    const Outcome embedded = run_shell("cd /; " + in_quotes(build / "embed") + " " + design + " 3 engine.rows=3");
    INFO(embedded.err);
    REQUIRE(embedded.status == 0);
    const json report = contraflow_program("run --json --steps 3 --engine.rows=3 -c " + design).report();
    std::istringstream lines(embedded.out);
    std::string line;
    std::getline(lines, line);
    std::uint64_t cycles = 0;
    for (int step = 0; step < 3; ++step) {
        std::getline(lines, line);
        CHECK(line.rfind(std::to_string(step) + ',', 0) == 0);
        cycles += std::stoull(line.substr(2));
    }
    CHECK(cycles == report["cycles"]["total"]);
    CHECK(without_host(json::parse(embedded.out.substr(embedded.out.find('{')))) == without_host(report));

    const Outcome refused = run_shell(in_quotes(build / "embed") + " " + design + " 1 engine.row=3");
    CHECK(refused.status == 2);
    CHECK(refused.err.find("did you mean engine.rows?") != std::string::npos);
}
