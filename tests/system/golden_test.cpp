// The machine against vectors of an independent float64 implementation of the model, within the bounds of
// tests/golden/README.md. Each run is a child process of its own.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "contraflow/load_config.h"
#include "reference/golden_vectors.h"
#include "verify/verify.h"

using namespace contraflow;
using verify::CaseResult;
using verify::TensorResult;

namespace {

using Overrides = std::vector<std::pair<std::string, std::string>>;

std::string path_of(const std::string& name) {
    return std::string(CONTRAFLOW_SOURCE_DIR) + "/" + name;
}

Config machine_of(const std::string& design, const std::string& flow, Overrides more = {}) {
    more.emplace_back("network.flow", flow);
    return load_config(path_of("configs/" + design + ".ini"), more).config;
}

void check(const CaseResult& result) {
    INFO(result.path << " " << result.flow);
    CHECK(result.failure == "");
    CHECK(!result.tensors.empty());
    for (const TensorResult& tensor : result.tensors) {
        INFO(tensor.name << " " << tensor.worst);
        CHECK(tensor.error <= tensor.bound);
    }
}

CaseResult run(const std::string& path, const Config& machine, RunMode run_mode) {
    const auto cases = verify::load_cases({path_of("tests/golden/" + path)}, machine);
    REQUIRE(cases.size() == 1);
    CaseResult result = verify::run_case_in_child(cases.front(), run_mode);
    check(result);
    return result;
}

// Runs a file and requires that nothing in it was left out but tensors whose names begin with one of `unchecked`.
void run_whole(const std::string& path, const Config& machine, RunMode run_mode,
               const std::vector<std::string>& unchecked = {}) {
    const CaseResult result = run(path, machine, run_mode);
    for (const std::string& name : result.unchecked) {
        INFO(path << ": " << name);
        CHECK(std::any_of(unchecked.begin(), unchecked.end(),
                          [&](const std::string& prefix) { return name.compare(0, prefix.size(), prefix) == 0; }));
    }
}

const std::vector<std::string> kTraceOnly{"trace loss.float32_run", "trace loss_after_training",
                                          "trace dense_from_cores", "trace atis_train_index"};

bool is_big(const std::string& path) {
    return golden::load(path).tensors.at("x").elements() > 2000;
}

void check_tt_linears(const std::string& flow, const std::vector<std::string>& unchecked) {
    for (const std::string& path : golden::files_of("tt_linear")) {
        run_whole(path, machine_of("u50-2enc", flow), RunMode::Leap, unchecked);
        if (!is_big(path)) {
            run_whole(path, machine_of("u50-2enc", flow), RunMode::Clocked, unchecked);
            run_whole(path, machine_of("tiny", flow), RunMode::Leap, unchecked);
        }
    }
}

bool has_result(const CaseResult& result, const std::string& name) {
    return std::any_of(result.tensors.begin(), result.tensors.end(),
                       [&](const TensorResult& tensor) { return tensor.name == name; });
}

}  // namespace

TEST_CASE("every TT linear is reproduced in the bidirectional flow, with its merged halves") {
    check_tt_linears("btt", {"mm."});
}

TEST_CASE("every TT linear is reproduced in the right-to-left flow") {
    check_tt_linears("tt", {"mm.", "btt."});
}

TEST_CASE("every TT linear is reproduced in the dense flow") {
    check_tt_linears("mm", {"core.", "dcore.", "btt."});
    const CaseResult result = run("tt_linear/d2.safetensors", machine_of("u50-2enc", "mm"), RunMode::Leap);
    CHECK(has_result(result, "mm.dW"));
}

TEST_CASE("every TTM embedding is reproduced") {
    for (const std::string& path : golden::files_of("ttm_embedding")) {
        for (const RunMode run_mode : {RunMode::Leap, RunMode::Clocked}) {
            run_whole(path, machine_of("u50-2enc", "btt"), run_mode);
        }
        run_whole(path, machine_of("tiny", "btt"), RunMode::Leap);
    }
}

TEST_CASE("every single operation is reproduced") {
    for (const std::string& path : golden::files_of("ops")) {
        for (const RunMode run_mode : {RunMode::Leap, RunMode::Clocked}) {
            run_whole(path, machine_of("u50-2enc", "btt"), run_mode);
        }
        if (path.find("paper") == std::string::npos) {
            run_whole(path, machine_of("tiny", "btt"), RunMode::Leap);
        }
    }
}

TEST_CASE("the attention layer is reproduced in the right-to-left and dense flows") {
    for (const std::string path : {"ops/mha_tt_small.safetensors", "ops/mha_tt_paper.safetensors"}) {
        run_whole(path, machine_of("u50-2enc", "tt"), RunMode::Leap);
        const CaseResult dense = run(path, machine_of("u50-2enc", "mm"), RunMode::Leap);
        CHECK(has_result(dense, "dx"));
        CHECK(has_result(dense, "dk.bias"));
    }
}

TEST_CASE("the tiny model trains as the vectors say in both tensor-train flows, clocked and leap") {
    for (const std::string flow : {"btt", "tt"}) {
        for (const RunMode run_mode : {RunMode::Leap, RunMode::Clocked}) {
            for (const std::string design : {"u50-2enc", "tiny"}) {
                run_whole("model_tiny", machine_of(design, flow), run_mode, kTraceOnly);
            }
        }
    }
}

TEST_CASE("the tiny dense model trains as the vectors say whatever flow the design names") {
    for (const RunMode run_mode : {RunMode::Leap, RunMode::Clocked}) {
        run_whole("model_tiny_dense", machine_of("u50-2enc", "btt"), run_mode, kTraceOnly);
    }
}

TEST_CASE("the tiny model multiplied out trains as the vectors of the dense model say") {
    const CaseResult result = run("model_tiny", machine_of("u50-2enc", "mm"), RunMode::Leap);
    CHECK(has_result(result, "loss of step 4"));
    CHECK(has_result(result, "dacts0 embed.ln"));
    CHECK(has_result(result, "after1 embed.pos"));
}

TEST_CASE("the paper's model trains ten steps as the vectors say in the bidirectional flow") {
    run_whole("model_paper", machine_of("u50-2enc", "btt"), RunMode::Leap, kTraceOnly);
}

TEST_CASE("the paper's model trains ten steps as the vectors say in the right-to-left flow") {
    run_whole("model_paper", machine_of("u50-2enc", "tt"), RunMode::Leap, kTraceOnly);
}

// With one accumulator, sums of 768 products round to 1e-6 in the first five losses and to 7e-6 in the sixth, over the
// bound; with eight, every loss stays under it.
TEST_CASE("the paper's model multiplied out trains ten steps as the vectors say with eight partial sums") {
    const CaseResult result =
        run("model_paper", machine_of("u50-2enc", "mm", {{"engine.partial_sums", "8"}}), RunMode::Leap);
    CHECK(has_result(result, "loss of step 9"));
}
