// contraflow run and check from outside: what the report says must add up, repeat, and be refused by name.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "contraflow/safetensors.h"
#include "support/program_under_test.h"
#include "support/temporary_folder.h"

using contraflow::make_f32;
using contraflow::read_safetensors;
using contraflow::TensorFile;
using contraflow::write_safetensors;
using contraflow::test::check_refused;
using contraflow::test::contraflow_program;
using contraflow::test::Outcome;
using contraflow::test::read_bytes;
using contraflow::test::TemporaryFolder;
using nlohmann::json;

namespace {

const std::string kConfigs = std::string(CONTRAFLOW_SOURCE_DIR) + "/configs/";
const std::string kTiny = " -c " + kConfigs + "tiny.ini ";

json without_host(json report) {
    report.erase("host");
    return report;
}

std::uint64_t sum_of(const json& numbers) {
    std::uint64_t sum = 0;
    for (const auto& number : numbers) {
        sum += number.get<std::uint64_t>();
    }
    return sum;
}

void check_identities(const json& report) {
    const json& cycles = report["cycles"];
    const std::uint64_t total = cycles["total"];
    const std::uint64_t steps = report["steps"];
    CHECK(total == cycles["forward"].get<std::uint64_t>() + cycles["backward"].get<std::uint64_t>() +
                       cycles["update"].get<std::uint64_t>());
    CHECK(total == sum_of(report["step_cycles"]));
    const double latency = static_cast<double>(total) / static_cast<double>(steps) / report["clock_hz"].get<double>();
    CHECK(report["latency_s"].get<double>() == Approx(latency).epsilon(1e-12));

    // Every kernel and every block accounts for each of its cycles.
    std::uint64_t kernel_macs = 0;
    for (const json& kernel : report["kernels"]) {
        const std::uint64_t kernel_cycles = kernel["cycles"];
        kernel_macs += kernel["macs"].get<std::uint64_t>();
        if (kernel_cycles != kernel["end"].get<std::uint64_t>() - kernel["start"].get<std::uint64_t>() ||
            kernel_cycles != kernel["busy"].get<std::uint64_t>() + sum_of(kernel["stalls"])) {
            FAIL("cycles of " << kernel.dump());
        }
    }
    json unit_stalls = json::object();
    for (const json& block : report["blocks"]) {
        INFO(block.dump());
        CHECK(block["cycles"].get<std::uint64_t>() ==
              block["busy"].get<std::uint64_t>() + sum_of(block["stalls"]) + block["idle"].get<std::uint64_t>());
        if (block["stalls"].contains("write_back")) {  // engines, vector units and the DMA
            for (const auto& [cause, stalled] : block["stalls"].items()) {
                unit_stalls[cause] = unit_stalls.value(cause, std::uint64_t{0}) + stalled.get<std::uint64_t>();
            }
        }
    }
    CHECK(report["stalls"] == unit_stalls);

    CHECK(report["macs"] == kernel_macs);
    std::uint64_t class_macs = 0;
    std::uint64_t class_kernels = 0;
    for (const json& totals : report["classes"]) {
        class_macs += totals["macs"].get<std::uint64_t>();
        class_kernels += totals["kernels"].get<std::uint64_t>();
        CHECK(totals["cycles"] == sum_of(totals["phases"]));
    }
    CHECK(class_macs == kernel_macs);
    CHECK(class_kernels == report["kernels"].size());

    for (const auto& [name, use] : report["utilisation"].items()) {
        INFO(name);
        CHECK(use.get<double>() >= 0);
        CHECK(use.get<double>() <= 1);
    }
    CHECK(report["utilisation"]["pe"].get<double>() > 0.1);
    for (const auto& [name, link] : report["links"].items()) {
        INFO(name);
        CHECK(link["sent"] == link["received"]);
        CHECK(link["sent"].get<std::uint64_t>() > 0);
    }

    const json& bound = report["lower_bound"];
    for (const char* part : {"macs", "vector", "bytes", "chain"}) {
        CHECK(bound[part].get<std::uint64_t>() > 0);
        CHECK(bound[part].get<std::uint64_t>() <= bound["cycles"].get<std::uint64_t>());
    }
    for (const auto& step_cycles : report["step_cycles"]) {
        CHECK(bound["cycles"] <= step_cycles);
    }
    CHECK(bound["ratio"].get<double>() * static_cast<double>(steps) * bound["cycles"].get<double>() ==
          Approx(static_cast<double>(total)));

    const json& energy = report["energy_j"];
    std::map<std::string, double> groups;
    for (const json& row : report["energy"]["rows"]) {
        groups[row["group"]] += row["joules"].get<double>();
    }
    double joules = 0;
    for (const auto& [name, value] : energy.items()) {
        if (name != "total") {
            joules += value.get<double>();
            CHECK(value.get<double>() == Approx(groups[name]).epsilon(1e-12));
        }
    }
    CHECK(groups.size() + 1 == energy.size());
    CHECK(energy["total"].get<double>() == Approx(joules).epsilon(1e-12));
    const double per_step = report["energy"]["per_step_j"];
    CHECK(per_step * static_cast<double>(steps) == Approx(joules).epsilon(1e-12));
    CHECK(report["energy"]["per_epoch_j"].get<double>() == Approx(4478 * per_step).epsilon(1e-12));

    const json& resources = report["resources"];
    for (const char* primitive : {"dsp", "lut", "ff", "bram36", "uram"}) {
        double used = 0;
        for (const json& row : resources["rows"]) {
            used += row[primitive].get<double>();
        }
        CHECK(resources[primitive].get<double>() == std::ceil(used - 1e-6));
        CHECK(resources["available"][primitive].get<double>() <= resources["chip"][primitive].get<double>());
    }

    const json& memory = report["memory"];
    std::uint64_t parameter_bytes = 0;
    std::uint64_t all_bytes = 0;
    for (const json& tensor : memory["tensors"]) {
        const std::uint64_t bytes = tensor["bytes"];
        parameter_bytes += tensor["class"] == "parameter" ? bytes : 0;
        all_bytes += bytes;
        CHECK(tensor["words_occupied"].get<std::uint64_t>() * 4 >= bytes);
    }
    CHECK(memory["parameters_bytes"] == parameter_bytes);
    CHECK(memory["gradients_bytes"].get<std::uint64_t>() + memory["activations_bytes"].get<std::uint64_t>() +
              memory["scratch_bytes"].get<std::uint64_t>() + memory["buffers_bytes"].get<std::uint64_t>() +
              parameter_bytes ==
          all_bytes);
    CHECK(memory["peak_on_chip_bytes"].get<std::uint64_t>() <= all_bytes);
    CHECK(memory["bits_used"].get<std::uint64_t>() <= memory["bits_occupied"].get<std::uint64_t>());

    // The sample comes in and the loss goes out, once a step.
    const json& config = report["config"];
    CHECK(report["ddr"]["read_bytes"] == steps * 4 * (3 * config["network"]["seq_len"].get<std::uint64_t>() + 2));
    CHECK(report["ddr"]["write_bytes"] == steps * 12);
}

// The critical path is a chain: no kernel of it starts before the one before has ended.
void check_critical_path(const json& report) {
    std::map<std::string, json> last_step;
    for (const json& kernel : report["kernels"]) {
        last_step[kernel["name"]] = kernel;  // steps in order: the last one stays
    }
    const json& path = report["critical_path"];
    REQUIRE(path.size() > 1);
    std::uint64_t end = 0;
    for (const json& name : path) {
        const json& kernel = last_step.at(name);
        CHECK(kernel["start"].get<std::uint64_t>() >= end);
        end = kernel["end"];
    }
    const std::uint64_t completion = report["cycles"]["total"].get<std::uint64_t>();
    CHECK(completion - end <= 2);  // the sequencer and the host each take an edge
}

}  // namespace

TEST_CASE("the parts of a report sum to its totals, under every flow and policy") {
    for (const char* flow : {"btt", "tt", "mm"}) {
        for (const char* policy : {"overlap", "serial"}) {
            INFO(flow << " " << policy);
            const json report = contraflow_program("run" + kTiny + "--steps 3 --json --network.flow=" + flow +
                                                   " --schedule.policy=" + policy)
                                    .report();
            check_identities(report);
            check_critical_path(report);
        }
    }
}

TEST_CASE("the parts of a report sum to its totals with several engines and vector units") {
    const json report =
        contraflow_program("run" + kTiny + "--steps 2 --json --engine.count=3 --vector.count=2 --memory.ports=1")
            .report();
    check_identities(report);
    check_critical_path(report);
}

TEST_CASE("a constant's price moves the rows that it names and no cycle") {
    const json before = contraflow_program("run" + kTiny + "--json").report();
    const json after = contraflow_program("run" + kTiny + "--json --energy.multiply_pj=240").report();
    CHECK(after["kernels"] == before["kernels"]);
    std::size_t moved = 0;
    for (std::size_t i = 0; i < before["energy"]["rows"].size(); ++i) {
        const json& row = before["energy"]["rows"][i];
        const bool own = row["constant"] == "energy.multiply_pj";
        moved += own ? 1 : 0;
        const double expected = (own ? 10 : 1) * row["joules"].get<double>();
        CHECK(after["energy"]["rows"][i]["joules"].get<double>() == Approx(expected).epsilon(1e-12));
    }
    CHECK(moved == 2);  // of the engines and of the vector units
}

TEST_CASE("a report has every field that scripts rely on") {
    const json report = contraflow_program("run" + kTiny + "--json").report();
    CHECK(report["schema"] == "contraflow-report/1");
    CHECK(report["mode"] == "leap");
    CHECK(report["steps"] == 1);
    CHECK(report["clock_hz"] == 100'000'000);
    CHECK(report["loss"].size() == 1);
    CHECK(report["host_link_s"].get<double>() == Approx(28e-6));
    CHECK_FALSE(report["config"].contains("mode"));
    CHECK(report["config"]["engine"]["count"] == 1);
    for (const char* field :
         {"version", "latency_s", "lower_bound", "critical_path", "utilisation", "stalls", "ram_accesses"}) {
        CHECK(report.contains(field));
    }
    for (const char* field : {"dsp", "lut", "ff"}) {
        CHECK(report["resources"].contains(field));
    }
    for (const char* field : {"used", "available", "chip"}) {
        CHECK(report["memory"]["bram36"].contains(field));
        CHECK(report["memory"]["uram"].contains(field));
    }
    CHECK(report["memory"]["bram36"]["available"] == 1163);
    CHECK(report["memory"]["uram"]["available"] == 636);
    for (const char* field : {"reads", "writes", "read_bytes", "write_bytes", "row_hits", "row_misses", "refreshes"}) {
        CHECK(report["ddr"].contains(field));
    }
    for (const char* field : {"startup_seconds", "seconds", "peak_rss_bytes"}) {
        CHECK(report["host"].contains(field));
    }
    for (const char* field : {"step", "name", "class", "phase", "start", "end", "cycles", "macs", "stalls"}) {
        CHECK(report["kernels"][0].contains(field));
    }
}

TEST_CASE("the same command gives the same bytes apart from the host object") {
    const TemporaryFolder temp;
    const auto run = [&](const std::string& name) {
        const Outcome outcome = contraflow_program("run" + kTiny + "--steps 2 --json --out " + temp.file(name));
        CHECK(without_host(json::parse(read_bytes(temp.file(name + "/report.json")))) ==
              without_host(outcome.report()));
        return without_host(outcome.report()).dump();
    };
    CHECK(run("first") == run("second"));
    for (const char* file : {"kernels.csv", "memory.csv", "memory_timeline.csv", "effective.ini"}) {
        CHECK(read_bytes(temp.file("first/") + file) == read_bytes(temp.file("second/") + file));
        CHECK_FALSE(read_bytes(temp.file("first/") + file).empty());
    }
}

TEST_CASE("the effective configuration reproduces the run") {
    const TemporaryFolder temp;
    const json first =
        contraflow_program("run" + kTiny + "--json --engine.count=2 --train.seed=7 --out " + temp.file("out")).report();
    const json again = contraflow_program("run --json -c " + temp.file("out/effective.ini")).report();
    CHECK(without_host(first) == without_host(again));
}

TEST_CASE("clocked and leap give the same report") {
    json leap = without_host(contraflow_program("run" + kTiny + "--steps 2 --json --mode leap").report());
    json clocked = without_host(contraflow_program("run" + kTiny + "--steps 2 --json --mode clocked").report());
    CHECK(leap["mode"] == "leap");
    CHECK(clocked["mode"] == "clocked");
    leap.erase("mode");
    clocked.erase("mode");
    CHECK(leap == clocked);
}

TEST_CASE("without values the cycles are the same and there is no loss") {
    json with = without_host(contraflow_program("run" + kTiny + "--steps 2 --json").report());
    json without = without_host(contraflow_program("run" + kTiny + "--steps 2 --json --values off").report());
    CHECK(with["values"] == "on");
    CHECK(without["values"] == "off");
    CHECK(with.contains("loss"));
    for (const char* field : {"loss", "intent_loss", "slot_loss"}) {
        CHECK_FALSE(without.contains(field));
        with.erase(field);
    }
    with.erase("values");
    without.erase("values");
    CHECK(with == without);
}

TEST_CASE("a layout that puts what is read together into one bank shows in its memory's conflicts") {
    const auto of_memory = [](const std::string& layout) {
        const json report =
            contraflow_program("run --json --values off -c " + kConfigs +
                               "u50-2enc.ini --memory.tensors=encoder.0.attn.q.T:" + layout + ":group=alone")
                .report();
        for (const json& tensor : report["memory"]["tensors"]) {
            for (const json& accesses : report["ram_accesses"]) {
                if (tensor["name"] == "encoder.0.attn.q.T" && accesses["ram"] == tensor["ram"]) {
                    return accesses["conflict_cycles"].get<std::uint64_t>();
                }
            }
        }
        FAIL("no memory holds the tensor");
        return std::uint64_t{0};
    };
    CHECK(of_memory("uram") == 0);           // laid out automatically
    CHECK(of_memory("cyclic.1=12") > 1000);  // the eight rows that an engine reads are in one bank
}

TEST_CASE("a long run lists the kernels of its first and last step, and counts all") {
    const json report = contraflow_program("run" + kTiny + "--steps 17 --json").report();
    CHECK(report["kernels_steps"] == json::array({0, 16}));
    std::set<int> listed;
    for (const json& kernel : report["kernels"]) {
        listed.insert(kernel["step"].get<int>());
    }
    CHECK(listed == std::set<int>{0, 16});
    std::uint64_t kernels = 0;
    for (const json& totals : report["classes"]) {
        kernels += totals["kernels"].get<std::uint64_t>();
    }
    CHECK(kernels * 2 == report["kernels"].size() * 17);
    CHECK(report["loss"].size() == 17);
}

TEST_CASE("saving and going on from there equals one longer run") {
    const TemporaryFolder temp;
    const json whole = contraflow_program("run" + kTiny + "--steps 4 --json").report();
    const json first =
        contraflow_program("run" + kTiny + "--steps 2 --json --save " + temp.file("half.safetensors")).report();
    const json second =
        contraflow_program("run" + kTiny + "--steps 2 --json --data.first=2 --init " + temp.file("half.safetensors"))
            .report();
    CHECK(first["loss"][0] == whole["loss"][0]);
    CHECK(first["loss"][1] == whole["loss"][1]);
    CHECK(second["loss"][0] == whole["loss"][2]);
    CHECK(second["loss"][1] == whole["loss"][3]);
}

TEST_CASE("the table for people goes to stdout and nothing to stderr") {
    const Outcome outcome = contraflow_program("run" + kTiny);
    CHECK(outcome.status == 0);
    CHECK(outcome.err.empty());
    for (const char* text : {"Network: 1 encoder block", "BRAM36", "forward", "core_grad", "Utilisation", "write-back",
                             "DRAM: ", "Energy", "Loss", "on the FPGA", "times as long"}) {
        INFO(text);
        CHECK(outcome.out.find(text) != std::string::npos);
    }
}

TEST_CASE("check reproduces the published compression and the MACs of every flow") {
    struct Row {
        const char* design;
        double compression;
        int bram36_at_most;
    };
    for (const Row& row :
         {Row{"u50-2enc.ini", 29.76, 1163}, Row{"u50-4enc.ini", 42.53, 1163}, Row{"u50-6enc.ini", 51.15, 1163}}) {
        INFO(row.design);
        const json check = contraflow_program("check --json -c " + kConfigs + row.design).report();
        CHECK(check["fits"] == true);
        CHECK(check["memory"]["compression"].get<double>() == Approx(row.compression).margin(0.005));
        CHECK(check["memory"]["bram36"]["used"] <= row.bram36_at_most);
    }
    const json check = contraflow_program("check --json -c " + kConfigs + "u50-2enc.ini").report();
    CHECK(check["macs"]["btt"] == 63'023'616);
    CHECK(check["macs"]["tt"] == 78'513'408);
    CHECK(check["macs"]["mm"] == 756'877'824);
    const Outcome table = contraflow_program("check -c " + kConfigs + "u50-2enc.ini");
    CHECK(table.out.find("29.76 times smaller") != std::string::npos);
    CHECK(table.out.find("63,023,616") != std::string::npos);
}

TEST_CASE("check and run plan the same memory") {
    json check = contraflow_program("check --json" + kTiny).report()["memory"];
    json run = contraflow_program("run --json" + kTiny).report()["memory"];
    for (const char* simulated : {"simulated_peak_on_chip_bytes", "simulated_peak_scratch_bytes"}) {
        check.erase(simulated);
        run.erase(simulated);
    }
    CHECK(check == run);
}

TEST_CASE("check tells what is alive at each kernel, as the run's memory_timeline.csv does") {
    const TemporaryFolder temp;
    REQUIRE(contraflow_program("run" + kTiny + "--values off --out " + temp.file("out")).status == 0);
    const json check = contraflow_program("check --json" + kTiny).report();
    std::string csv =
        "kernel,name,parameter_bytes,gradient_bytes,activation_bytes,scratch_bytes,buffer_bytes,"
        "total_bytes\n";
    std::int64_t peak = 0;
    for (std::size_t i = 0; i < check["memory_timeline"].size(); ++i) {
        const json& at = check["memory_timeline"][i];
        csv += std::to_string(i) + "," + at["kernel"].get<std::string>();
        for (const char* bytes : {"parameter_bytes", "gradient_bytes", "activation_bytes", "scratch_bytes",
                                  "buffer_bytes", "total_bytes"}) {
            csv += "," + at[bytes].dump();
        }
        csv += "\n";
        peak = std::max(peak, at["total_bytes"].get<std::int64_t>());
    }
    CHECK(csv == read_bytes(temp.file("out/memory_timeline.csv")));
    CHECK(peak == check["memory"]["peak_on_chip_bytes"]);
}

TEST_CASE("check tells why a flow has no plan") {
    const Outcome outcome = contraflow_program("check" + kTiny + "'--memory.tensors=*.core.*:bram'");
    CHECK(outcome.status == 0);
    CHECK(outcome.out.find("  mm: memory.tensors: *.core.* matches no tensor of this design") != std::string::npos);
}

TEST_CASE("kernels that run one after another have the planned peaks of memory") {
    for (const char* flow : {"btt", "tt", "mm"}) {
        const json memory =
            contraflow_program("run --json --values off --schedule.policy=serial --network.flow=" + std::string(flow) +
                               kTiny)
                .report()["memory"];
        CHECK(memory["simulated_peak_on_chip_bytes"] == memory["peak_on_chip_bytes"]);
        CHECK(memory["simulated_peak_scratch_bytes"] == memory["peak_scratch_bytes"]);
        CHECK(memory["peak_scratch_bytes"] > 0);
    }
}

TEST_CASE("a design that does not fit is named with what overflows, and simulated only when allowed") {
    const TemporaryFolder temp;
    std::string device = read_bytes(kConfigs + "devices/u50.ini");
    for (const auto& [from, to] :
         {std::pair<std::string, std::string>{"available_bram36 = 1163", "available_bram36 = 1"},
          {"available_urams = 636", "available_urams = 0"},
          {"memory = memories/", "memory = " + kConfigs + "memories/"}}) {
        REQUIRE(device.find(from) != std::string::npos);
        device.replace(device.find(from), from.size(), to);
    }
    const std::string design = kTiny + "--device.file=" + temp.write("small.ini", device) + " ";
    const Outcome check = contraflow_program("check" + design);
    CHECK(check.status == 2);
    CHECK(check.out.find("DOES NOT FIT") != std::string::npos);
    CHECK(check.err.find(" URAM, ") != std::string::npos);
    CHECK(check.err.find(" too many") != std::string::npos);
    CHECK(contraflow_program("check --allow-overflow" + design).status == 0);

    const Outcome run = contraflow_program("run" + design + "--out " + temp.file("out"));
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    CHECK(run.err.find("--allow-overflow simulates it anyway") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(temp.file("out")));

    const json allowed = contraflow_program("run --json --allow-overflow" + design).report();
    CHECK(allowed["memory"]["allow_overflow"] == true);
    CHECK_FALSE(allowed["memory"]["overflows"].empty());
    CHECK(contraflow_program("run --allow-overflow" + design).out.find("DOES NOT FIT") != std::string::npos);
}

TEST_CASE("wrong options are refused with what would be right") {
    check_refused("run", {"no design given"});
    check_refused("run" + kTiny + "--steps 0", {"--steps 0: expected a whole number from 1 to 1000000"});
    check_refused("run" + kTiny + "--steps 1.5", {"--steps 1.5: expected a whole number"});
    check_refused("run" + kTiny + "--steps 99999999999999999999", {"expected a whole number"});
    check_refused("run" + kTiny + "--mode fast", {"--mode fast: expected leap or clocked"});
    check_refused("run" + kTiny + "--values no", {"--values no: expected on or off"});
    check_refused("run" + kTiny + "--force", {"--force has no effect without --out DIR"});
    check_refused("run" + kTiny + "--stpes 3", {"did you mean --steps?"});
    check_refused("run" + kTiny + "--train.lr=nan", {"--train.lr=nan", "is not a finite number"});
    check_refused("run" + kTiny + "--engine.rows=0", {"--engine.rows=0"});
}

TEST_CASE("what planning refuses is told with the place in the design") {
    const TemporaryFolder temp;
    const std::string file = temp.file("design.ini");
    std::ofstream(file) << "[memory]\ntensors = embed.pos:cyclic.2=4\n";
    const std::string what = "memory.tensors: embed.pos (32 x 768): has no dimension 2; expected 0 to 1\n";
    for (const std::string command : {"run", "check"}) {
        const Outcome in_file = contraflow_program(command + " -c " + file);
        CHECK(in_file.status == 2);
        CHECK(in_file.err == "contraflow: " + file + ":2: " + what);
        const Outcome option = contraflow_program(command + " -c " + file + " --memory.tensors=encoder.9.*:bram");
        CHECK(option.status == 2);
        INFO(option.err);
        CHECK(option.err.rfind("contraflow: --memory.tensors=encoder.9.*:bram: encoder.9.* matches no tensor", 0) == 0);
    }
}

TEST_CASE("data that cannot be used is refused by the key that named it") {
    const TemporaryFolder temp;
    check_refused("run" + kTiny + "--data.path=/nowhere", {"--data.path=/nowhere: ", "no such folder"});
    check_refused("run" + kTiny + "--data.split=tset", {"--data.split=tset: ", "no such folder"});
    check_refused("run" + kTiny + "--data.first=600", {"--data.first=600: ", "which holds 600: expected 0 to 599"});
    temp.write("train/seq.in", "one two\n");
    temp.write("train/seq.out", "O\n");
    temp.write("train/label", "x\n");
    check_refused("run" + kTiny + "--data.path=" + temp.path().string(), {"seq.out:1: 1 tags for the 2 words"});
}

TEST_CASE("a checkpoint that does not fit is refused with the tensor") {
    const TemporaryFolder temp;
    const std::string good = temp.file("good.safetensors");
    REQUIRE(contraflow_program("run" + kTiny + "--save " + good).status == 0);
    const std::string bad = temp.file("bad.safetensors");
    const std::string with_bad = "run" + kTiny + "--init " + bad;

    TensorFile missing = read_safetensors(good);
    missing.tensors.erase("encoder.0.ln1.gamma");
    write_safetensors(bad, missing);
    check_refused(with_bad, {bad, "'encoder.0.ln1.gamma'", "is missing"});

    TensorFile wrong = read_safetensors(good);
    wrong.tensors["encoder.0.ln1.gamma"] = make_f32({23}, std::vector<float>(23, 1.0F));
    write_safetensors(bad, wrong);
    check_refused(with_bad, {bad, "'encoder.0.ln1.gamma' has shape (23), expected (24)"});

    const std::string bytes = read_bytes(good);
    temp.write("bad.safetensors", bytes.substr(0, bytes.size() - 4));
    check_refused(with_bad, {bad});
    temp.write("bad.safetensors", std::string("\xff\xff\x0f\0\0\0\0\0{}", 10));
    check_refused(with_bad, {bad, "reaches beyond the file"});
    check_refused("run" + kTiny + "--init " + temp.file("none"), {temp.file("none"), "no such file"});
    check_refused("run" + kTiny + "--init " + temp.path().string(), {temp.path().string()});
}

TEST_CASE("outputs that cannot be written are refused before the simulation") {
    const TemporaryFolder temp;
    const std::string file = temp.write("file", "x");
    check_refused("run" + kTiny + "--out " + file, {"--out " + file + ": is a file, expected a folder"});
    check_refused("run" + kTiny + "--out /proc/contraflow", {"--out /proc/contraflow: /proc cannot be written to"});
    check_refused("run" + kTiny + "--save " + temp.path().string(), {"is a folder, expected the name of a file"});
    check_refused("run" + kTiny + "--save " + temp.file("no/file"), {"there is no folder"});
    check_refused("run" + kTiny + "--values off --save " + temp.file("new"), {"nothing is trained with --values off"});
    CHECK_FALSE(std::filesystem::exists(temp.file("new")));
}

TEST_CASE("a result is replaced only with --force") {
    const TemporaryFolder temp;
    const std::string out = "run" + kTiny + "--out " + temp.file("out");
    REQUIRE(contraflow_program(out).status == 0);
    const std::string before = read_bytes(temp.file("out/report.json"));
    check_refused(out + " --steps 2", {"holds a result already", "--force replaces it"});
    CHECK(read_bytes(temp.file("out/report.json")) == before);
    CHECK(contraflow_program(out + " --steps 2 --force").status == 0);
    CHECK(json::parse(read_bytes(temp.file("out/report.json")))["steps"] == 2);
    const std::filesystem::directory_iterator files(temp.file("out"));
    CHECK(std::distance(begin(files), end(files)) == 5);
}

TEST_CASE("without --out no file is written") {
    const TemporaryFolder temp;
    const std::string command =
        "cd " + temp.path().string() + " && " + CONTRAFLOW_PROGRAM + " run" + kTiny + " >/dev/null";
    CHECK(std::system(command.c_str()) == 0);
    CHECK(std::filesystem::is_empty(temp.path().string()));
}
