// The trace file by itself, behind SystemC's sc_trace.
#include <sysc/tracing/sc_tracing_ids.h>

#include <catch2/catch.hpp>
#include <limits>
#include <string>

#include "support/expected_reports.h"
#include "support/temporary_folder.h"
#include "support/vcd_reader.h"
#include "trace/vcd_file.h"

using namespace contraflow;
using namespace contraflow::test;

namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

// Some members, traced by sc_trace; each time step is a sample.
struct Traced {
    bool clk = false;
    unsigned number = 5;
    float real = 1.5F;
    unsigned state = 0;
    const char* literals[3] = {"idle", "busy", nullptr};
    VcdFile file;

    explicit Traced(const std::string& path, std::uint64_t max_bytes = kNoLimit) : file(path, max_bytes) {
        sc_core::sc_trace(&file, clk, "top.clk");
        sc_core::sc_trace(&file, number, "top.unit.number", 8);
        sc_core::sc_trace(&file, real, "top.unit.real");
        static_cast<sc_core::sc_trace_file&>(file).trace(state, "top.unit.state", literals);
    }
};

}  // namespace

TEST_CASE("a change is written once, at its time, and nothing outside of windows") {
    const TemporaryFolder folder;
    Traced traced(folder.file("a.vcd"));
    traced.file.begin(1000);
    const std::uint64_t before = traced.file.bytes();
    traced.file.sample(2000);
    CHECK(traced.file.bytes() == before);
    traced.clk = true;
    traced.number = 200;
    traced.real = -std::numeric_limits<float>::infinity();
    traced.state = 1;
    traced.file.sample(3000);
    CHECK(traced.file.bytes() - before == std::string("#3000\n1!\nb11001000 \"\nr-inf #\nsbusy $\n").size());
    traced.real = std::numeric_limits<float>::quiet_NaN();
    traced.file.sample(3500);
    traced.file.end(4000);
    traced.file.close();
    VcdReader reader(folder.file("a.vcd"));
    CHECK(reader.timescale == "1ps");
    std::size_t edges = 0;
    reader.for_each_edge("top.clk", [&](const VcdReader&) {
        ++edges;
        CHECK(reader.time() == 3000);
        CHECK(reader.number("top.unit.number") == 200);
        CHECK(reader.value("top.unit.state") == "busy");
    });
    CHECK(edges == 1);
    CHECK(reader.value("top.unit.number") == "x");
}

TEST_CASE("a file is cut at a whole time step before it is too large") {
    const TemporaryFolder folder;
    Traced traced(folder.file("a.vcd"), 2000);
    traced.file.begin(0);
    for (unsigned i = 1; i < 1000; ++i) {
        traced.clk = i % 2 == 1;
        traced.number = i % 256;
        traced.file.sample(i * std::uint64_t{10});
    }
    CHECK(traced.file.full());
    traced.file.close();
    CHECK(std::filesystem::file_size(folder.file("a.vcd")) <= 2000);
    VcdReader reader(folder.file("a.vcd"));
    reader.for_each_edge("top.clk",
                         [&](const VcdReader&) { CHECK(reader.number("top.unit.number") == reader.time() / 10); });
}

TEST_CASE("sc_trace after elaboration is SystemC's error E720") {
    const TemporaryFolder folder;
    Traced traced(folder.file("a.vcd"));
    sc_core::sc_start(sc_core::sc_time(1, sc_core::SC_NS));
    bool late = false;
    expect_reports(sc_core::SC_ERROR);
    try {
        sc_core::sc_trace(&traced.file, late, "top.late");
        FAIL("it was accepted");
    } catch (const sc_core::sc_report& report) {
        CHECK(std::string(report.get_msg_type()) == sc_core::SC_ID_TRACING_ALREADY_INITIALIZED_);
        CHECK(report.get_id() == 720);
    }
}

TEST_CASE("time that falls is a broken invariant") {
    const TemporaryFolder folder;
    Traced traced(folder.file("a.vcd"));
    traced.file.begin(1000);
    traced.number = 6;
    expect_reports(sc_core::SC_ERROR);
    CHECK_THROWS_WITH(traced.file.sample(999), Catch::Contains("falls"));
}
