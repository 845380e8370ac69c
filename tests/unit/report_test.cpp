// The report's own arithmetic, on hand-made numbers; whole runs are in tests/system/run_test.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <iterator>
#include <limits>

#include "config/key_table.h"
#include "contraflow/error.h"
#include "report/bounds.h"
#include "report/estimates.h"
#include "report/memory_report.h"
#include "report/report_csv.h"
#include "report/report_json.h"
#include "report/report_text.h"
#include "report/result_folder.h"
#include "report/table.h"
#include "support/temporary_folder.h"

using namespace contraflow;
using contraflow::test::read_bytes;
using contraflow::test::TemporaryFolder;

namespace {

// Two contractions, a vector kernel and a transfer: load -> a -> gelu, load -> b.
struct SmallProgram {
    Config config;
    Program program;
    std::vector<KernelRecord> records;

    SmallProgram() {
        config.engine.count = 2;
        config.engine.rows = 2;
        config.engine.cols = 4;  // 16 PEs
        config.dma.beat_bytes = 32;
        program.contractions.resize(2);
        program.contractions[0].depth = 10;
        program.contractions[1].depth = 300;
        program.vectors.resize(1);
        program.transfers.resize(1);
        program.transfers[0].words = 80;
        add("load", UnitKind::Dma, 0, {}, 0);
        add("a", UnitKind::Engine, 0, {0}, 1601);
        add("b", UnitKind::Engine, 1, {0}, 600);
        add("gelu", UnitKind::Vector, 0, {1}, 0);
    }

    void add(const std::string& name, UnitKind unit, std::uint32_t command, std::vector<std::uint32_t> dependences,
             std::int64_t macs) {
        KernelCommand kernel;
        kernel.name = name;
        kernel.unit = unit;
        kernel.command = command;
        kernel.dependences = std::move(dependences);
        kernel.macs = macs;
        program.kernels.push_back(kernel);
    }

    void ran(std::uint32_t kernel, Cycle start, Cycle end, int unit = 0, int gang = 1, std::uint64_t busy = 0) {
        KernelRecord record;
        record.kernel = kernel;
        record.start = start;
        record.end = end;
        record.unit = static_cast<std::uint16_t>(unit);
        record.gang_size = static_cast<std::uint16_t>(gang);
        record.cycles.busy = busy;
        records.push_back(record);
    }
};

std::string message_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const ConfigError& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace

TEST_CASE("lower bound: MACs, vector work, DRAM bytes and the longest chain, and the largest of them") {
    SmallProgram small;
    small.ran(0, 1, 40);
    small.ran(1, 40, 200);
    small.ran(2, 40, 500);
    small.ran(3, 200, 320, 0, 1, 77);
    const LowerBound bound = lower_bound(small.program, small.config, small.records);
    CHECK(bound.macs == 138);   // ceil(2201 / 16)
    CHECK(bound.vector == 77);  // one unit
    CHECK(bound.bytes == 2);    // 320 B at 19.2 GB/s are 1.67 cycles of 10 ns
    // load takes 10 beats of 32 bytes; a 101 cycles (MACs), gelu 77; b 300 (its depth), although its MACs need 38.
    CHECK(bound.chain == 310);
    CHECK(bound.cycles == 310);
}

TEST_CASE("lower bound: two vector units share the vector work") {
    SmallProgram small;
    small.config.vector.count = 2;
    small.ran(3, 0, 100, 0, 1, 77);
    CHECK(lower_bound(small.program, small.config, small.records).vector == 39);
}

TEST_CASE("critical path: from the kernel that ended last back through what it waited for") {
    SmallProgram small;
    small.ran(0, 1, 40);
    small.ran(1, 41, 200, 0);
    small.ran(2, 41, 150, 1);
    small.ran(3, 200, 320);
    CHECK(critical_path(small.program, small.config, small.records) == std::vector<std::size_t>{0, 1, 3});
}

TEST_CASE("critical path: a kernel that waited for its engine follows the one that held it") {
    SmallProgram small;
    small.ran(0, 1, 40);
    small.ran(1, 41, 200, 0, 2);
    small.ran(2, 201, 900, 1);
    small.ran(3, 200, 320);
    CHECK(critical_path(small.program, small.config, small.records) == std::vector<std::size_t>{0, 1, 2});
}

TEST_CASE("critical path: under the serial policy every kernel waits for the one before") {
    SmallProgram small;
    small.config.schedule_policy = SchedulePolicy::Serial;
    small.ran(0, 1, 40);
    small.ran(1, 41, 200);
    small.ran(3, 201, 320);
    small.ran(2, 321, 900, 1);
    CHECK(critical_path(small.program, small.config, small.records) == std::vector<std::size_t>{0, 1, 2, 3});
}

TEST_CASE("critical path of a step without kernels is empty") {
    const SmallProgram small;
    CHECK(critical_path(small.program, small.config, {}).empty());
}

namespace {

double primitive_of(const Primitives& use, const std::string& name) {
    return name == "dsp" ? use.dsp : name == "lut" ? use.lut : name == "ff" ? use.ff : use.bram36;
}

std::vector<RamGeometry> some_rams() {
    RamGeometry ram;
    ram.banks = 4;
    return std::vector<RamGeometry>(3, ram);
}

}  // namespace

TEST_CASE("resources: a PE takes its operators and accumulators, and the parts sum to the total") {
    Config config;
    const auto of_pes = [&config] { return estimate_resources(config, {}, {}).of_part("pe"); };
    const Primitives before = of_pes();
    config.engine.rows += 1;
    const Primitives after = of_pes();
    const double pes = double{1} * config.engine.count * config.engine.cols;
    CHECK(after.dsp - before.dsp == Approx(5 * pes));
    CHECK(after.lut - before.lut == Approx((298 + 33) * pes));
    // One more operand register a row.
    CHECK(after.ff - before.ff == Approx((320 + 32) * pes + 32 * config.engine.count));

    const ResourceEstimate all = estimate_resources(config, {}, some_rams());
    CHECK(all.parts() ==
          std::vector<std::string>{"pe", "vector", "memory", "interconnect", "dma", "dram_controller", "sequencer"});
    Primitives parts;
    for (const std::string& part : all.parts()) {
        parts += all.of_part(part);
    }
    Primitives rows;
    for (const ResourceRow& row : all.rows) {
        rows += row.use;
    }
    for (const char* name : {"dsp", "lut", "ff", "bram36"}) {
        CHECK(primitive_of(parts, name) == Approx(primitive_of(all.total(), name)));
        CHECK(primitive_of(rows, name) == Approx(primitive_of(all.total(), name)));
    }
}

TEST_CASE("resources: memories add their blocks, odd BRAM18 halves rounded up") {
    BlockCount blocks;
    blocks.luts = 100;
    blocks.bram18 = 7;
    blocks.urams = 3;
    const Primitives memory = estimate_resources(Config{}, blocks, {}).of_part("memory");
    CHECK(memory.lut == 100);
    CHECK(memory.bram36 == 4);
    CHECK(memory.uram == 3);
    CHECK(memory.dsp == 0);
}

TEST_CASE("resources: the interconnect grows with memories and with clients") {
    Config config;
    const auto luts = [&config](std::size_t memories) {
        RamGeometry ram;
        ram.banks = 32;
        return estimate_resources(config, {}, std::vector<RamGeometry>(memories, ram)).of_part("interconnect").lut;
    };
    // 4 engines, 1 vector unit, 1 DMA; one memory: two ports of 1,024 bits that choose among six clients.
    CHECK(luts(1) == Approx(2 * 1024 * 5 / 3.0));
    CHECK(luts(2) == Approx(2 * luts(1) + 6 * 2 * 1024 / 3.0));
    const double before = luts(2);
    config.engine.count += 1;
    CHECK(luts(2) > before);
}

TEST_CASE("resources: a DRAM channel takes what the device's controllers leave to the fabric") {
    Config config;
    config.dram.channels = 3;
    const auto luts = [&config](DramAttachment attachment) {
        config.device.dram_attachment = attachment;
        return estimate_resources(config, {}, {}).of_part("dram_controller").lut;
    };
    CHECK(luts(DramAttachment::Hbm) == 3 * config.resources.hbm_port.lut);
    CHECK(luts(DramAttachment::Soft) == 3 * config.resources.dram_controller.lut);
    CHECK(luts(DramAttachment::Hard) == 0);
}

TEST_CASE("resources: every constant changed tenfold moves its own rows alone, tenfold") {
    std::size_t keys = 0;
    for (const config::Key& key : config::design_keys()) {
        if (key.section != "resources") {
            continue;
        }
        ++keys;
        CAPTURE(key.name);
        const std::size_t end = key.name.rfind('_');
        const std::string component = key.name.substr(0, end);
        const std::string primitive = key.name.substr(end + 1);
        Config config;
        config.device.dram_attachment = component == "dram_controller" ? DramAttachment::Soft : DramAttachment::Hbm;
        const ResourceEstimate before = estimate_resources(config, {}, some_rams());
        Config changed = config;
        const double old_value = std::stod(key.text(config));
        const double new_value = old_value == 0 ? 7 : 10 * old_value;
        key.set(changed, fmt::format("{:.17g}", new_value));
        const ResourceEstimate after = estimate_resources(changed, {}, some_rams());
        REQUIRE(after.rows.size() == before.rows.size());
        std::size_t moved = 0;
        for (std::size_t i = 0; i < after.rows.size(); ++i) {
            CAPTURE(after.rows[i].component);
            for (const std::string name : {"dsp", "lut", "ff", "bram36"}) {
                const bool own = after.rows[i].component == component && name == primitive;
                moved += own ? 1 : 0;
                CHECK(primitive_of(after.rows[i].use, name) ==
                      (own ? Approx(after.rows[i].count * new_value) : Approx(primitive_of(before.rows[i].use, name))));
            }
        }
        CHECK(moved > 0);
        if (old_value > 0) {
            CHECK(primitive_of(after.total(), primitive) > primitive_of(before.total(), primitive));
        }
    }
    CHECK(keys == 3 * 17 + 3);
}

namespace {

EnergyEvents a_million_of_each() {
    constexpr std::uint64_t kMillion = 1'000'000;
    EnergyEvents events;
    events.seconds = 2;
    events.cycles = events.macs = events.write_back_adds = kMillion;
    events.vector_adds = events.vector_multiplies = events.vector_compares = kMillion;
    events.exps = events.tanhs = events.erfs = kMillion;
    events.bram_words = events.uram_rows = events.lutram_words = events.moved_words = kMillion;
    events.dram_bits = 8 * kMillion;
    events.dram_activates = events.dram_refreshes = kMillion;
    return events;
}

Config priced_config() {
    Config config;
    config.device.static_power_w = 5;
    config.device.shell_power_w = 8;
    config.dram.energy_pj_per_bit = 7;
    config.dram.energy_activate_pj = 400;
    config.dram.energy_refresh_pj = 30'000;
    return config;
}

}  // namespace

TEST_CASE("energy: every event counts at its price, and the groups sum to the total") {
    const Primitives resources{1, 0, 2, 1, 1};
    const EnergyEstimate energy = estimate_energy(a_million_of_each(), resources, priced_config());
    CHECK(energy.of_group("static") == Approx(10));
    CHECK(energy.of_group("shell") == Approx(16));
    CHECK(energy.of_group("clock") == Approx((2 * 0.025 + 0.5 + 1.5 + 1) * 1e-6));
    CHECK(energy.of_group("kernel") == Approx((3 * 32 + 2 * 24 + 6 + 90 + 224 + 482) * 1e-6));
    CHECK(energy.of_group("memory") == Approx((15 + 20 + 2 + 2) * 1e-6));
    CHECK(energy.of_group("dram") == Approx((56 + 400 + 30'000) * 1e-6));
    double sum = 0;
    for (const EnergyRow& row : energy.rows) {
        sum += row.joules;
    }
    CHECK(energy.total() == Approx(sum).epsilon(1e-12));
}

TEST_CASE("energy: every constant changed tenfold moves its own rows alone, tenfold") {
    const Primitives resources{10, 20, 30, 40, 50};
    const Config config = priced_config();
    const EnergyEstimate before = estimate_energy(a_million_of_each(), resources, config);
    std::vector<const config::Key*> keys;
    for (const auto* table : {&config::design_keys(), &config::device_keys(), &config::memory_keys()}) {
        for (const config::Key& key : *table) {
            if (key.section == "energy" || key.unit == "W" || key.name.rfind("energy_", 0) == 0) {
                keys.push_back(&key);
            }
        }
    }
    CHECK(keys.size() == 14 + 2 + 3);
    for (const config::Key* const key : keys) {
        CAPTURE(key->full_name());
        Config other = config;
        key->set(other, fmt::format("{:.17g}", 10 * std::stod(key->text(config))));
        const EnergyEstimate after = estimate_energy(a_million_of_each(), resources, other);
        REQUIRE(after.rows.size() == before.rows.size());
        std::size_t moved = 0;
        for (std::size_t i = 0; i < after.rows.size(); ++i) {
            const bool own = before.rows[i].constant == key->full_name();
            moved += own ? 1 : 0;
            CHECK(before.rows[i].joules > 0);
            CHECK(after.rows[i].joules == Approx((own ? 10 : 1) * before.rows[i].joules).epsilon(1e-12));
        }
        CHECK(moved > 0);
    }
}

TEST_CASE("numbers for people: grouped digits, and a unit that keeps three to four digits") {
    CHECK(grouped(std::int64_t{0}) == "0");
    CHECK(grouped(std::int64_t{-1234567}) == "-1,234,567");
    CHECK(grouped(std::uint64_t{999}) == "999");
    CHECK(grouped(std::uint64_t{1000}) == "1,000");
    CHECK(with_prefix(1234988, "B") == "1.235 MB");
    CHECK(with_prefix(36750956, "B") == "36.75 MB");
    CHECK(with_prefix(404, "B") == "404 B");
    CHECK(with_prefix(999.96, "B") == "1.000 kB");
    CHECK(with_prefix(0, "J") == "0 J");
    CHECK(with_prefix(3.35e-3, "s") == "3.350 ms");
    CHECK(with_prefix(28e-6, "s") == "28.00 us");
    CHECK(percent(0.4912) == "49.1 %");
}

TEST_CASE("a table's columns are as wide as their widest cell, without blanks at the end") {
    TextTable table({"block", "busy"});
    table.add({"dma", "1,000"});
    table.add({"dram", ""});
    CHECK(table.text() == "  block   busy\n  dma    1,000\n  dram\n");
}

TEST_CASE("a loss that diverged is null in JSON and leaves the rest readable") {
    RunReport report;
    StepOutcome outcome;
    outcome.loss = std::numeric_limits<float>::quiet_NaN();
    outcome.slot_loss = std::numeric_limits<float>::infinity();
    outcome.intent_loss = 1.5F;
    report.outcomes = {outcome};
    report.steps = 1;
    report.step_cycles = {7};
    const auto json = nlohmann::json::parse(report_json(report).dump());
    CHECK(json["loss"][0].is_null());
    CHECK(json["slot_loss"][0].is_null());
    CHECK(json["intent_loss"][0] == 1.5);
}

TEST_CASE("a run without values has no loss, and says so in the table") {
    RunReport report;
    report.values = false;
    report.steps = 1;
    report.outcomes = {StepOutcome{}};
    report.step_cycles = {7};
    CHECK(report_json(report).count("loss") == 0);
    CHECK(report_json(report)["values"] == "off");
    CHECK(report_text(report).find("Loss: not computed (values off)") != std::string::npos);
}

TEST_CASE("many losses: the table shows the first and the last three") {
    RunReport report;
    report.steps = 20;
    for (int i = 0; i < 20; ++i) {
        StepOutcome outcome;
        outcome.loss = static_cast<float>(i) + 0.25F;
        report.outcomes.push_back(outcome);
        report.step_cycles.push_back(7);
    }
    const std::string text = report_text(report);
    for (const char* shown : {" 0.250000", " 2.250000", " 17.250000", " 19.250000"}) {
        CHECK(text.find(shown) != std::string::npos);
    }
    for (const char* hidden : {" 3.250000", " 16.250000"}) {
        CHECK(text.find(hidden) == std::string::npos);
    }
    CHECK(report_json(report)["loss"].size() == 20);
}

TEST_CASE("CSV: one line per kernel and per tensor, as many cells as the header has") {
    RunReport report;
    report.kernels.resize(2);
    report.kernels[0].name = "a.fwd.T";
    report.memory.tensors.resize(1);
    report.memory.tensors[0].name = "a.core.0";
    for (const std::string& text : {kernels_csv(report), memory_csv(report.memory)}) {
        const auto commas = [&](std::size_t begin) {
            const std::size_t end = text.find('\n', begin);
            return std::count(text.begin() + static_cast<std::ptrdiff_t>(begin),
                              text.begin() + static_cast<std::ptrdiff_t>(end), ',');
        };
        const std::size_t second = text.find('\n') + 1;
        CHECK(commas(second) == commas(0));
    }
    const std::string kernels = kernels_csv(report);
    CHECK(std::count(kernels.begin(), kernels.end(), '\n') == 3);
}

TEST_CASE("a result folder is made with its parents and holds the files, and nothing else") {
    const TemporaryFolder temp;
    const ResultFolder folder(temp.file("a/b/c/"), false);
    CHECK_FALSE(std::filesystem::exists(temp.file("a")));  // checking leaves nothing behind
    folder.write({{"report.json", "{}"}, {"memory.csv", "name\n"}});
    CHECK(read_bytes(temp.file("a/b/c/report.json")) == "{}");
    CHECK(read_bytes(temp.file("a/b/c/memory.csv")) == "name\n");
    const std::filesystem::directory_iterator in_folder(temp.file("a/b/c"));
    CHECK(std::distance(begin(in_folder), end(in_folder)) == 2);
    const std::filesystem::directory_iterator beside(temp.file("a/b"));
    CHECK(std::distance(begin(beside), end(beside)) == 1);
}

TEST_CASE("a folder that holds a result is replaced only by force, and other files in it stay") {
    const TemporaryFolder temp;
    temp.write("out/report.json", "old");
    temp.write("out/notes.txt", "mine");
    CHECK(message_of([&] { ResultFolder(temp.file("out"), false); }) ==
          "--out " + temp.file("out") + ": holds a result already (report.json); --force replaces it");
    ResultFolder(temp.file("out"), true).write({{"report.json", "new"}});
    CHECK(read_bytes(temp.file("out/report.json")) == "new");
    CHECK(read_bytes(temp.file("out/notes.txt")) == "mine");
}

TEST_CASE("a folder without a result needs no force") {
    const TemporaryFolder temp;
    temp.write("out/notes.txt", "mine");
    ResultFolder(temp.file("out"), false).write({{"report.json", "new"}});
    CHECK(read_bytes(temp.file("out/report.json")) == "new");
}

TEST_CASE("an output that cannot be written is refused before anything is done") {
    const TemporaryFolder temp;
    const std::string file = temp.write("file", "x");
    CHECK(message_of([&] { ResultFolder(file, false); }) == "--out " + file + ": is a file, expected a folder");
    CHECK(message_of([&] { ResultFolder(file + "/below", false); }).find(" is not a folder") != std::string::npos);
    CHECK(message_of([&] { ResultFolder("/proc/contraflow", false); }).find("/proc cannot be written to") !=
          std::string::npos);
    CHECK(message_of([&] { check_writable_file(temp.path().string(), "--save x"); }) ==
          "--save x: is a folder, expected the name of a file");
    CHECK(message_of([&] { check_writable_file("/dev/null", "--save x"); }) == "--save x: is not a regular file");
    CHECK(message_of([&] { check_writable_file(temp.file("no/file"), "--save x"); }) ==
          "--save x: there is no folder " + temp.file("no"));
    CHECK(message_of([&] { check_writable_file(file, "--save x"); }) == "no error");
    CHECK(read_bytes(file) == "x");
}
