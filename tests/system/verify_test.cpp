// contraflow verify: wrong vectors are found, malformed files are refused by name.
#include <sys/wait.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "contraflow/error.h"
#include "contraflow/load_config.h"
#include "process/child_process.h"
#include "reference/golden_vectors.h"
#include "support/temporary_folder.h"
#include "verify/verify.h"

using namespace contraflow;
using Catch::Contains;
using test::TemporaryFolder;
using verify::CaseResult;
using verify::TensorResult;

namespace {

const std::string kSource = CONTRAFLOW_SOURCE_DIR;
const std::string kDesign = kSource + "/configs/tiny.ini";
const std::string kLinear = "tt_linear/r2_small.safetensors";

Config machine() {
    return load_config(kDesign).config;
}

// A golden file after `change`, written to `name` in the folder.
std::string changed(const TemporaryFolder& folder, const std::string& golden_path, const std::string& name,
                    const std::function<void(TensorFile&)>& change) {
    TensorFile file = golden::load(golden_path);
    change(file);
    write_safetensors(folder.file(name), file);
    return folder.file(name);
}

// The lines that loading the paths is refused with.
std::string problem_of(const std::vector<std::string>& paths) {
    try {
        (void)verify::load_cases(paths, machine());
    } catch (const ConfigError& error) {
        std::string text;
        for (const std::string& line : error.lines()) {
            text += line + '\n';
        }
        return text;
    }
    return "";
}

std::string problem_with(const std::string& golden_path, const std::function<void(TensorFile&)>& change) {
    const TemporaryFolder folder;
    return problem_of({changed(folder, golden_path, "file.safetensors", change)});
}

CaseResult run(const std::string& path) {
    const auto cases = verify::load_cases({path}, machine());
    REQUIRE(cases.size() == 1);
    return verify::run_case_in_child(cases.front(), RunMode::Leap);
}

std::vector<std::string> over_bound(const CaseResult& result) {
    std::vector<std::string> names;
    for (const TensorResult& tensor : result.tensors) {
        if (!tensor.passed()) {
            names.push_back(tensor.name);
        }
    }
    return names;
}

void set_element(TensorFile& file, const std::string& name, std::size_t element, float value) {
    std::memcpy(file.tensors.at(name).data.data() + element * sizeof value, &value, sizeof value);
}

// A folder with the files of the tiny model.
void copy_model(const TemporaryFolder& folder, const std::string& model) {
    for (const auto& entry : std::filesystem::directory_iterator(kSource + "/tests/golden/" + model)) {
        std::filesystem::copy(entry.path(), folder.path() / entry.path().filename());
    }
}

struct Ended {
    int status = 0;
    std::string output, errors;
};

std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

Ended run_program(const std::string& arguments) {
    const TemporaryFolder folder;
    const std::string command = std::string(CONTRAFLOW_PROGRAM) + " verify -c " + kDesign + " " + arguments + " >" +
                                folder.file("out") + " 2>" + folder.file("err");
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(folder.file("out")), text_of(folder.file("err"))};
}

std::string golden_file(const std::string& path) {
    return kSource + "/tests/golden/" + path;
}

}  // namespace

TEST_CASE("a result that is off by twice its bound is over it, and no other") {
    const TemporaryFolder folder;
    const std::string path = changed(folder, kLinear, "off.safetensors", [](TensorFile& file) {
        const std::vector<float> stored = file.tensors.at("dcore.2").as_floats();
        const auto largest = static_cast<float>(golden::largest_magnitude(stored));
        set_element(file, "dcore.2", 3, stored[3] + 2e-5F * largest);
    });
    const CaseResult result = run(path);
    CHECK(over_bound(result) == std::vector<std::string>{"dcore.2"});
    const auto wrong = std::find_if(result.tensors.begin(), result.tensors.end(),
                                    [](const TensorResult& tensor) { return tensor.name == "dcore.2"; });
    CHECK(wrong->error == Approx(2e-5).epsilon(0.2));
    CHECK_THAT(wrong->worst, Contains("element 3"));
}

TEST_CASE("a wrong loss, activation, gradient, parameter and key-bias rule are found in a model") {
    const TemporaryFolder folder;
    copy_model(folder, "model_tiny");
    changed(folder, "model_tiny/trace.safetensors", "trace.safetensors", [](TensorFile& file) {
        double loss = file.tensors.at("loss.f64").as_doubles().at(2) * 1.00002;
        std::memcpy(file.tensors.at("loss.f64").data.data() + 2 * sizeof loss, &loss, sizeof loss);
    });
    changed(folder, "model_tiny/acts0.safetensors", "acts0.safetensors",
            [](TensorFile& file) { set_element(file, "embed.ln", 0, 9); });
    changed(folder, "model_tiny/grads0.safetensors", "grads0.safetensors", [](TensorFile& file) {
        set_element(file, "embed.ln.beta", 1, 9);
        set_element(file, "encoder.0.attn.k.bias", 1, 9);  // only rounding is stored there: not compared
    });
    changed(folder, "model_tiny/after5.safetensors", "after5.safetensors",
            [](TensorFile& file) { set_element(file, "embed.pos", 5, 9); });
    CHECK(over_bound(run(folder.path().string())) ==
          std::vector<std::string>{"acts0 embed.ln", "grads0 embed.ln.beta", "loss of step 2", "after5 embed.pos"});
}

TEST_CASE("a zero that must be exact is not compared relatively") {
    // Another token makes slices of the cores' gradients nonzero that must be zero.
    const TemporaryFolder folder;
    const auto cases = verify::load_cases({golden_file("ttm_embedding/same_token.safetensors")}, machine());
    verify::VerifyCase moved = cases.front();
    moved.steps[0].sample.tokens.front() = moved.steps[0].sample.tokens.front() == 0 ? 26 : 0;
    for (verify::Expectation& expectation : moved.steps[0].expectations) {
        expectation.bound = 1e30;
    }
    const CaseResult result = verify::run_case_in_child(moved, RunMode::Leap);
    CHECK(over_bound(result) == std::vector<std::string>{"dcore.0", "dcore.1", "dcore.2"});
}

TEST_CASE("a simulation that crashes is reported and leaves the others alone") {
    auto cases = verify::load_cases({golden_file(kLinear)}, machine());
    cases.front().inputs.front().second.pop_back();
    const CaseResult result = verify::run_case_in_child(cases.front(), RunMode::Leap);
    CHECK_FALSE(result.passed());
    CHECK_THAT(result.failure, Contains("number of words"));
}

TEST_CASE("a vector file that lacks or contradicts something is refused by file and name") {
    CHECK_THAT(problem_with(kLinear, [](TensorFile& file) { file.metadata.erase("kind"); }),
               Contains("file.safetensors: the metadata has no \"kind\"; expected one of attention"));
    CHECK_THAT(problem_with(kLinear, [](TensorFile& file) { file.metadata["kind"] = "tt_lineer"; }),
               Contains("kind = \"tt_lineer\"; expected one of"));
    CHECK_THAT(problem_with(kLinear, [](TensorFile& file) { file.metadata["kind"] = "model"; }),
               Contains("expected the model's directory"));
    CHECK_THAT(problem_with(kLinear, [](TensorFile& file) { file.metadata.erase("ranks"); }), Contains("no \"ranks\""));
    CHECK_THAT(problem_with(kLinear, [](TensorFile& file) { file.metadata["ranks"] = "1,2,2,2,2,1"; }),
               Contains("expected 7 ranks for 3 output and 3 input cores, 1 at both ends"));
    CHECK_THAT(problem_with(kLinear, [](TensorFile& file) { file.metadata["out_modes"] = "2,3,x"; }),
               Contains("out_modes = \"2,3,x\"; expected comma-separated whole numbers"));
    CHECK_THAT(problem_with(kLinear, [](TensorFile& file) { file.metadata["S"] = "5"; }),
               Contains("tensor \"x\" is 4 x 24; expected 5 x 24"));
    CHECK_THAT(problem_with(kLinear, [](TensorFile& file) { file.metadata["S"] = "99999999999999999999"; }),
               Contains("S = \"99999999999999999999\"; expected a whole number of 1 to"));
    CHECK_THAT(problem_with(kLinear, [](TensorFile& file) { file.tensors.erase("bias"); }),
               Contains("has no tensor \"bias\"; expected one of shape 24"));
    CHECK_THAT(problem_with(kLinear, [](TensorFile& file) { set_element(file, "x", 2, std::nanf("")); }),
               Contains("tensor \"x\": element 2 is nan; expected finite values"));
    CHECK_THAT(problem_with("ttm_embedding/one_token.safetensors",
                            [](TensorFile& file) {
                                const std::int32_t token = 64;
                                std::memcpy(file.tensors.at("tokens").data.data(), &token, sizeof token);
                            }),
               Contains("tensor \"tokens\": element 0 is 64; expected 0 to 63"));
    CHECK_THAT(problem_with("ops/attention_small.safetensors", [](TensorFile& file) { file.metadata["heads"] = "5"; }),
               Contains("heads = 5 does not divide d_model = 24"));
    CHECK_THAT(problem_with("ops/cross_entropy_slots.safetensors",
                            [](TensorFile& file) { file.metadata["row_count"] = "32"; }),
               Contains("row_count = \"32\"; expected a whole number of 1 to 31"));
    CHECK_THAT(problem_with("ops/layernorm_odd.safetensors", [](TensorFile& file) { file.metadata["eps"] = "zero"; }),
               Contains("eps = \"zero\"; expected a positive number"));
    CHECK_THAT(problem_with("ops/tanh.safetensors",
                            [](TensorFile& file) {
                                file.tensors.erase("y");
                                file.tensors.erase("dx");
                            }),
               Contains("holds no result to compare with"));
}

TEST_CASE("a model's directory that lacks or contradicts something is refused by file and name") {
    const TemporaryFolder folder;
    const std::string path = folder.path().string();
    CHECK_THAT(problem_of({path}), Contains("has no .safetensors file"));
    copy_model(folder, "model_tiny");
    CHECK(problem_of({path}) == "");
    const auto trace_with = [&](const std::function<void(TensorFile&)>& change) {
        changed(folder, "model_tiny/trace.safetensors", "trace.safetensors", change);
        return problem_of({path});
    };
    CHECK_THAT(trace_with([](TensorFile& file) { file.metadata.erase("heads"); }),
               Contains("trace.safetensors: the metadata has no \"heads\""));
    CHECK_THAT(trace_with([](TensorFile& file) { file.metadata["heads"] = "5"; }), Contains("heads"));
    CHECK_THAT(trace_with([](TensorFile& file) { file.tensors.erase("loss.f64"); }),
               Contains("has no tensor \"loss.f64\"; expected one of shape 5"));
    CHECK_THAT(trace_with([](TensorFile& file) { file.metadata["form"] = "dense"; }), Contains("init.safetensors"));
    CHECK(trace_with([](TensorFile&) {}) == "");
    changed(folder, "model_tiny/after5.safetensors", "after6.safetensors", [](TensorFile&) {});
    CHECK_THAT(problem_of({path}), Contains("after6.safetensors: is named after 6 steps; expected 1 to 5"));
    std::filesystem::remove(folder.path() / "after6.safetensors");
    changed(folder, "model_tiny/acts0.safetensors", "acts0.safetensors",
            [](TensorFile& file) { file.tensors["embed.tokens"] = file.tensors.at("embed.token"); });
    CHECK_THAT(problem_of({path}), Contains("acts0.safetensors: tensor \"embed.tokens\" is unknown"));
}

TEST_CASE("every malformed file is named, and nothing runs") {
    const Ended ended = run_program(kDesign + " missing.safetensors " + golden_file(kLinear));
    CHECK(ended.status == 2);
    CHECK(ended.output == "");
    CHECK_THAT(ended.errors, Contains("tiny.ini") && Contains("missing.safetensors"));
    CHECK(std::count(ended.errors.begin(), ended.errors.end(), '\n') == 2);
    CHECK(run_program("").status == 2);
    CHECK(run_program("--mode fast " + golden_file(kLinear)).status == 2);
}

TEST_CASE("the program verifies files and folders in one command, and fails for a result over its bound") {
    const Ended passed = run_program(golden_file(kLinear) + " " + golden_file("ttm_embedding") + " " +
                                     golden_file("model_tiny") + " --mode clocked");
    CHECK(passed.status == 0);
    CHECK_THAT(passed.output, Contains("9 of 9 within bounds"));
    CHECK(passed.errors == "");

    const TemporaryFolder folder;
    const std::string path =
        changed(folder, kLinear, "off.safetensors", [](TensorFile& file) { set_element(file, "y", 0, 99); });
    const Ended failed = run_program("--json " + path + " " + golden_file(kLinear));
    CHECK(failed.status == 1);
    const auto json = nlohmann::json::parse(failed.output);
    CHECK(json.at("passed") == false);
    CHECK(json.at("cases").at(0).at("passed") == false);
    CHECK(json.at("cases").at(0).at("tensors").at(0).at("name") == "y");
    CHECK(json.at("cases").at(1).at("passed") == true);
    CHECK(json.at("cases").at(1).at("cycles").get<int>() > 0);
}
