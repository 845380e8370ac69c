// contraflow trace from outside: the files load in GTKWave's tools, hold the window and the scope that were asked for,
// and say what the report says.
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support/program_under_test.h"
#include "support/temporary_folder.h"
#include "support/vcd_reader.h"

using contraflow::test::check_refused;
using contraflow::test::contraflow_program;
using contraflow::test::Outcome;
using contraflow::test::read_bytes;
using contraflow::test::run_shell;
using contraflow::test::TemporaryFolder;
using contraflow::test::VcdReader;
using nlohmann::json;

namespace {

const std::string kConfigs = std::string(CONTRAFLOW_SOURCE_DIR) + "/configs/";
const std::string kTiny = " -c " + kConfigs + "tiny.ini ";
const std::string kProgram = CONTRAFLOW_PROGRAM;

json kernel_named(const json& report, const std::string& name) {
    for (const json& kernel : report["kernels"]) {
        if (kernel["name"] == name) {
            return kernel;
        }
    }
    FAIL("no kernel " << name);
    return {};
}

// GTKWave's converter reads the whole file and says nothing.
void check_loads(const TemporaryFolder& folder, const std::string& vcd) {
    const Outcome outcome = run_shell("vcd2fst '" + vcd + "' " + folder.file("check.fst"));
    INFO(vcd << ": " << outcome.out << outcome.err);
    CHECK(outcome.status == 0);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.empty());
    CHECK(std::filesystem::file_size(folder.file("check.fst")) > 0);
    VcdReader reader(vcd);
    CHECK(reader.timescales == 1);
    reader.for_each_edge("top.clk", [](const VcdReader&) {});
}

// Each signal line of a save file names a signal of the dump, vectors with their range.
void check_save_file(const std::string& gtkw, const VcdReader& reader) {
    std::istringstream text(read_bytes(gtkw));
    std::size_t shown = 0;
    for (std::string line; std::getline(text, line);) {
        if (line.rfind("top.", 0) == 0) {
            INFO(line);
            CHECK(reader.has(line.substr(0, line.find('['))));
            ++shown;
        }
    }
    CHECK(shown == reader.names.size());
}

}  // namespace

TEST_CASE("a trace holds the kernel's run and its busy cycles, loads without a word, and its report is that of a run") {
    const TemporaryFolder folder;
    for (const std::string& design : {kTiny, " -c " + kConfigs + "u50-2enc.ini "}) {
        const std::string vcd = folder.file("a b.vcd");
        const json traced = contraflow_program("trace" + design + "--kernel encoder.0.attn.q.fwd.T --json --vcd '" +
                                               vcd + "' --gtkw " + folder.file("a.gtkw"))
                                .report();
        json plain = contraflow_program("run" + design + "--json").report();
        json same = traced;
        plain.erase("host");
        same.erase("host");
        CHECK(same.dump() == plain.dump());
        check_loads(folder, vcd);
        const json kernel = kernel_named(traced, "encoder.0.attn.q.fwd.T");
        const std::string unit = kernel["unit"];
        VcdReader reader(vcd);
        std::uint64_t edges = 0;
        std::uint64_t busy = 0;
        std::uint64_t write_back = 0;
        std::vector<std::uint64_t> cycles;
        reader.for_each_edge("top.clk", [&](const VcdReader&) {
            ++edges;
            cycles.push_back(reader.number("top.cycle"));
            if (reader.value("top." + unit + ".kernel") == "encoder.0.attn.q.fwd.T") {
                busy += reader.value("top." + unit + ".activity") == "busy" ? 1 : 0;
                write_back += reader.value("top." + unit + ".activity") == "write_back" ? 1 : 0;
            }
        });
        CHECK(edges == kernel["cycles"].get<std::uint64_t>() + 1);
        CHECK(cycles.front() == kernel["start"].get<std::uint64_t>());
        CHECK(cycles.back() == kernel["end"].get<std::uint64_t>());
        CHECK(busy == kernel["busy"].get<std::uint64_t>());
        CHECK(write_back == kernel["stalls"]["write_back"].get<std::uint64_t>());
        check_save_file(folder.file("a.gtkw"), reader);
    }
}

TEST_CASE("a scope keeps only what it names, a range of cycles only those") {
    const TemporaryFolder folder;
    const std::string vcd = folder.file("scope.vcd");
    const Outcome outcome = contraflow_program(
        "trace" + kTiny + "--cycles 500:599 --scope clk --scope 'engine0.pe_*' --scope cycle --vcd " + vcd);
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
    check_loads(folder, vcd);
    VcdReader reader(vcd);
    for (const std::string& name : reader.names) {
        INFO(name);
        CHECK((name == "top.clk" || name == "top.cycle" || name.rfind("top.engine0.pe_", 0) == 0));
    }
    CHECK(reader.names.size() == 2 + 2 * 2 * 2);
    std::uint64_t edges = 0;
    std::uint64_t nonzero = 0;
    reader.for_each_edge("top.clk", [&](const VcdReader&) {
        CHECK(reader.number("top.cycle") == 500 + edges);
        ++edges;
        nonzero += reader.value("top.engine0.pe_1_1.acc") != "0" ? 1 : 0;
    });
    CHECK(edges == 100);
    CHECK(nonzero > 0);
}

TEST_CASE("accesses of each memory's banks counted in the waveform of a step are those of the report") {
    const TemporaryFolder folder;
    const std::string vcd = folder.file("banks.vcd");
    const json report =
        contraflow_program("trace" + kTiny + "--cycles 0:1000000 --scope clk --scope 'bank*' --json --vcd " + vcd)
            .report();
    check_loads(folder, vcd);
    struct BankPort {
        std::string en, we, ram;
    };
    std::vector<BankPort> ports;
    VcdReader reader(vcd);
    for (const std::string& name : reader.names) {
        if (name.size() > 3 && name.substr(name.size() - 3) == "_en") {
            const std::size_t bank = name.rfind('.');
            const std::size_t ram = name.rfind('.', bank - 1) + 1;
            ports.push_back({name, name.substr(0, name.size() - 3) + "_we", name.substr(ram, bank - ram)});
        }
    }
    std::map<std::string, std::uint64_t> reads;
    std::map<std::string, std::uint64_t> writes;
    reader.for_each_edge("top.clk", [&](const VcdReader&) {
        for (const BankPort& port : ports) {
            if (reader.value(port.en) == "1") {
                ++(reader.value(port.we) == "1" ? writes : reads)[port.ram];
            }
        }
    });
    REQUIRE(report["ram_accesses"].size() == report["memory"]["rams"].size());
    std::uint64_t conflicts = 0;
    for (const json& accesses : report["ram_accesses"]) {
        const std::string ram = accesses["ram"];
        INFO(ram);
        CHECK(reads[ram] == accesses["reads"].get<std::uint64_t>());
        CHECK(writes[ram] == accesses["writes"].get<std::uint64_t>());
        conflicts += accesses["conflict_cycles"].get<std::uint64_t>();
    }
    CHECK(conflicts > 0);
}

TEST_CASE("a file that is full ends the trace and not the run") {
    const TemporaryFolder folder;
    const std::string vcd = folder.file("full.vcd");
    const Outcome outcome = contraflow_program("trace" + kTiny + "--kernel 'encoder*' --max-bytes 40000 --json --vcd " +
                                               vcd + " --gtkw " + folder.file("full.gtkw"));
    INFO(outcome.err);
    CHECK(outcome.status == 0);
    CHECK(outcome.err.find("--max-bytes 40000 ended the trace") != std::string::npos);
    CHECK(json::parse(outcome.out)["steps"] == 1);
    CHECK(std::filesystem::file_size(vcd) <= 40000);
    CHECK(std::filesystem::file_size(vcd) > 39000);
    check_loads(folder, vcd);
    check_save_file(folder.file("full.gtkw"), VcdReader(vcd));
    check_refused("trace" + kTiny + "--kernel 'encoder*' --max-bytes 100 --vcd " + folder.file("none.vcd"),
                  {"--max-bytes 100", "the header alone takes"});
    CHECK(!std::filesystem::exists(folder.file("none.vcd")));
}

TEST_CASE("an interrupt ends the run and leaves a trace that loads") {
    const TemporaryFolder folder;
    const std::string vcd = folder.file("int.vcd");
    // While the window is open, and while the run is on its way to it.
    for (const char* window :
         {"--cycles 0:900000000 --scope clk --scope 'engine*'", "--kernel 'encoder*' --step 900000"}) {
        const Outcome outcome =
            run_shell("timeout -s INT --preserve-status 1.5 " + kProgram + " trace -c " + kConfigs + "u50-6enc.ini " +
                      window + " --vcd " + vcd + " --gtkw " + folder.file("int.gtkw"));
        INFO(window << ": " << outcome.err);
        CHECK(outcome.status == 130);
        CHECK(outcome.out.empty());
        CHECK(outcome.err.find("interrupted") != std::string::npos);
        check_loads(folder, vcd);
        check_save_file(folder.file("int.gtkw"), VcdReader(vcd));
    }
}

TEST_CASE("what matches nothing is refused in one line") {
    const TemporaryFolder folder;
    const std::string vcd = " --vcd " + folder.file("x.vcd");
    check_refused("trace" + kTiny + "--kernel encoder.0.atn.q.fwd.Y" + vcd,
                  {"--kernel encoder.0.atn.q.fwd.Y", "matches no kernel", "encoder.0.attn.q.fwd.Y"});
    check_refused("trace" + kTiny + "--cycles 90000000:90000001" + vcd,
                  {"--cycles 90000000:90000001", "step 0", "from cycle"});
    check_refused("trace" + kTiny + "--kernel sample.fwd.load --cycles 2000:2001" + vcd,
                  {"--cycles 2000:2001", "sample.fwd.load from"});
    check_refused("trace" + kTiny + "--cycles 0:9 --scope engin" + vcd,
                  {"--scope engin", "matches no signal", "engine0"});
    check_refused("trace" + kTiny + "--cycles 9:1" + vcd, {"--cycles 9:1", "FIRST:LAST"});
    check_refused("trace" + kTiny + vcd, {"--kernel PATTERN or --cycles FIRST:LAST"});
    check_refused("trace" + kTiny + "--cycles 0:9", {"--vcd FILE"});
    check_refused("trace" + kTiny + "--cycles 0:9 --vcd /nonexistent/x.vcd", {"--vcd /nonexistent/x.vcd"});
    check_refused("trace" + kTiny + "--cycles 0:9 --gtkw /nonexistent/x.gtkw" + vcd, {"--gtkw /nonexistent/x.gtkw"});
    CHECK(!std::filesystem::exists(folder.file("x.vcd")));
    check_refused("trace" + kTiny + "--cycles 0:9 --vcd " + folder.write("d.ini", "[network]\n"),
                  {"d.ini", "is no VCD file"});
    CHECK(read_bytes(folder.file("d.ini")) == "[network]\n");
}

TEST_CASE("the step to trace is counted from 0") {
    const TemporaryFolder folder;
    const std::string vcd = folder.file("step.vcd");
    const json report =
        contraflow_program("trace" + kTiny + "--kernel loss.bwd.store --step 2 --json --vcd " + vcd).report();
    CHECK(report["steps"] == 3);
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    VcdReader reader(vcd);
    reader.for_each_edge("top.clk", [&](const VcdReader&) {
        last = reader.number("top.cycle");
        first = first == 0 ? last : first;
    });
    for (const json& kernel : report["kernels"]) {
        if (kernel["name"] == "loss.bwd.store" && kernel["step"] == 2) {
            CHECK(first == kernel["start"].get<std::uint64_t>());
            CHECK(last == kernel["end"].get<std::uint64_t>());
            return;
        }
    }
    FAIL("the kernel did not run");
}
