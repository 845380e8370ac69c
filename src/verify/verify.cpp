#include "verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "contraflow/error.h"
#include "contraflow/simulation.h"
#include "process/child_process.h"

namespace contraflow::verify {
namespace {

namespace fs = std::filesystem;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const char* flow_text(const VerifyCase& verify_case) {
    if (!verify_case.is_model && verify_case.kind != "tt_linear" && verify_case.kind != "mha_tt") {
        return "";
    }
    switch (verify_case.config.network.flow) {
        case Flow::Btt:
            return "btt";
        case Flow::Tt:
            return "tt";
        case Flow::Mm:
            break;
    }
    return "mm";
}

double largest(const std::vector<float>& values) {
    double result = 0;
    for (const float value : values) {
        result = std::max(result, std::abs(static_cast<double>(value)));
    }
    return result;
}

std::string place(std::size_t element, float got, float expected) {
    return fmt::format("element {} is {:.9g}, expected {:.9g}", element, got, expected);
}

// A difference over a scale; no difference is no error whatever the scale.
double ratio(double difference, double scale) {
    return difference == 0 ? 0 : difference / scale;
}

TensorResult compare(const Expectation& expectation, const std::vector<float>& got, const std::vector<float>& keys,
                     std::int64_t positions) {
    TensorResult result{expectation.name, 0, expectation.bound, ""};
    const bool to_zero = expectation.rule != Rule::Relative;
    double worst = -1;
    for (std::size_t i = 0; i < expectation.stored.size(); ++i) {  // the loss buffer is longer than the stored loss
        const float expected = to_zero ? 0.0F : expectation.stored[i];
        const bool must_be_zero = !expectation.zeros.empty() && expectation.zeros[i];
        double difference = std::abs(static_cast<double>(got[i]) - static_cast<double>(expected));
        if (std::isnan(difference) || (must_be_zero && got[i] != 0)) {
            difference = kInfinity;
        }
        if (difference > worst) {
            worst = difference;
            result.worst = place(i, got[i], must_be_zero ? 0.0F : expected);
        }
    }
    worst = std::max(worst, 0.0);
    switch (expectation.rule) {
        case Rule::Relative:
            result.error = ratio(worst, largest(expectation.stored));
            break;
        case Rule::KeyBias:
            result.error = ratio(worst, static_cast<double>(positions) * largest(keys));
            break;
        case Rule::Zero:
            result.error = worst;
            break;
    }
    if (std::isnan(result.error)) {
        result.error = kInfinity;
    }
    if (result.passed()) {
        result.worst.clear();
    }
    return result;
}

TensorResult compare_loss(std::size_t step, float got, double expected) {
    TensorResult result{fmt::format("loss of step {}", step), 0, kLossBound, ""};
    const double difference = std::abs(static_cast<double>(got) - expected);
    result.error = std::isnan(difference) ? kInfinity : ratio(difference, std::abs(expected));
    if (!result.passed()) {
        result.worst = fmt::format("is {:.9g}, expected {:.9g}", got, expected);
    }
    return result;
}

CaseResult empty_result(const VerifyCase& verify_case) {
    CaseResult result;
    result.path = verify_case.path;
    result.kind = verify_case.kind;
    result.flow = flow_text(verify_case);
    result.unchecked = verify_case.unchecked;
    return result;
}

CaseResult from_json(const nlohmann::json& json) {
    CaseResult result;
    result.path = json.at("path");
    result.kind = json.at("kind");
    result.flow = json.at("flow");
    result.steps = json.at("steps");
    result.cycles = json.at("cycles");
    result.failure = json.at("failure");
    result.unchecked = json.at("unchecked").get<std::vector<std::string>>();
    for (const auto& tensor : json.at("tensors")) {
        result.tensors.push_back({tensor.at("name"),
                                  tensor.at("error").is_null() ? kInfinity : tensor.at("error").get<double>(),
                                  tensor.at("bound"), tensor.at("worst")});
    }
    return result;
}

void add_directory(const std::string& directory, const Config& machine, std::vector<VerifyCase>& cases,
                   std::vector<std::string>& problems);

void add_path(const std::string& path, const Config& machine, std::vector<VerifyCase>& cases,
              std::vector<std::string>& problems) {
    try {
        if (!fs::is_directory(path)) {
            cases.push_back(load_operation(path, machine));
        } else if (fs::exists(fs::path(path) / "trace.safetensors") ||
                   fs::exists(fs::path(path) / "init.safetensors")) {
            cases.push_back(load_model(path, machine));
        } else {
            add_directory(path, machine, cases, problems);
        }
    } catch (const ConfigError& error) {
        problems.insert(problems.end(), error.lines().begin(), error.lines().end());
    } catch (const fs::filesystem_error& error) {
        problems.push_back(path + ": " + error.code().message());
    }
}

void add_directory(const std::string& directory, const Config& machine, std::vector<VerifyCase>& cases,
                   std::vector<std::string>& problems) {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(directory)) {
        if (entry.path().extension() == ".safetensors" && !entry.is_directory()) {
            files.push_back(entry.path().string());
        }
    }
    if (files.empty()) {
        problems.push_back(directory +
                           ": has no .safetensors file; expected files of operations, or a model's init, "
                           "trace, ...");
    }
    std::sort(files.begin(), files.end());
    for (const std::string& file : files) {
        add_path(file, machine, cases, problems);
    }
}

}  // namespace

bool CaseResult::passed() const {
    return failure.empty() &&
           std::all_of(tensors.begin(), tensors.end(), [](const TensorResult& tensor) { return tensor.passed(); });
}

std::vector<VerifyCase> load_cases(const std::vector<std::string>& paths, const Config& machine) {
    std::vector<VerifyCase> cases;
    std::vector<std::string> problems;
    for (const std::string& path : paths) {
        add_path(path, machine, cases, problems);
    }
    if (!problems.empty()) {
        throw ConfigError(std::move(problems));
    }
    return cases;
}

CaseResult run_case(const VerifyCase& verify_case, RunMode run_mode) {
    SimulationOptions options;
    options.run_mode = run_mode;
    options.keep_all = true;
    Simulation simulation(verify_case.config, verify_case.step, options);
    for (const auto& [tensor, values] : verify_case.inputs) {
        simulation.set(tensor, values);
    }
    CaseResult result = empty_result(verify_case);
    for (std::size_t i = 0; i < verify_case.steps.size(); ++i) {
        const TrainingStep& step = verify_case.steps[i];
        if (!verify_case.is_model) {
            simulation.set_sample(step.sample);  // its step has no transfer that loads it
        }
        const StepOutcome outcome = simulation.run({step.sample}).at(0);
        ++result.steps;
        result.cycles += outcome.end - outcome.start;
        if (step.has_loss) {
            result.tensors.push_back(compare_loss(i, outcome.loss, step.loss));
        }
        for (const Expectation& expectation : step.expectations) {
            const std::vector<float> keys =
                expectation.rule == Rule::KeyBias ? simulation.get(expectation.keys) : std::vector<float>{};
            result.tensors.push_back(
                compare(expectation, simulation.get(expectation.tensor), keys, verify_case.step.seq_len));
        }
    }
    return result;
}

CaseResult run_case_in_child(const VerifyCase& verify_case, RunMode run_mode) {
    try {
        const std::string answer = run_in_child([&] { return to_json(run_case(verify_case, run_mode)).dump(); });
        return from_json(nlohmann::json::parse(answer));
    } catch (const ChildError& error) {
        CaseResult result = empty_result(verify_case);
        result.failure = error.what();
        return result;
    }
}

nlohmann::ordered_json to_json(const CaseResult& result) {
    nlohmann::ordered_json json{{"path", result.path},      {"kind", result.kind},     {"flow", result.flow},
                                {"steps", result.steps},    {"cycles", result.cycles}, {"passed", result.passed()},
                                {"failure", result.failure}};
    json["tensors"] = nlohmann::ordered_json::array();
    for (const TensorResult& tensor : result.tensors) {
        nlohmann::ordered_json error = nullptr;
        if (std::isfinite(tensor.error)) {
            error = tensor.error;
        }
        json["tensors"].push_back({{"name", tensor.name},
                                   {"error", error},
                                   {"bound", tensor.bound},
                                   {"passed", tensor.passed()},
                                   {"worst", tensor.worst}});
    }
    json["unchecked"] = result.unchecked;
    return json;
}

}  // namespace contraflow::verify
