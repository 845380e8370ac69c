// contraflow verify: vector files through the machine, every result's error against its bound.
#include "verify/verify.h"

#include <fmt/format.h>

#include <iostream>
#include <limits>
#include <string>

#include "cli/command_line.h"
#include "contraflow/error.h"

namespace contraflow::cli {

namespace {

namespace po = boost::program_options;
using verify::CaseResult;
using verify::TensorResult;

struct Totals {
    std::size_t cases = 0, failed_cases = 0, tensors = 0, failed_tensors = 0;

    void add(const CaseResult& result) {
        ++cases;
        failed_cases += result.passed() ? 0 : 1;
        for (const TensorResult& tensor : result.tensors) {
            ++tensors;
            failed_tensors += tensor.passed() ? 0 : 1;
        }
    }
};

RunMode parse_mode(const std::string& text) {
    if (text != "leap" && text != "clocked") {
        throw ConfigError("--mode=" + text + " is unknown; expected leap or clocked");
    }
    return text == "leap" ? RunMode::Leap : RunMode::Clocked;
}

void print(const CaseResult& result) {
    std::cout << fmt::format("{}: {}{}{}, {} step{}, {} cycles\n", result.path, result.kind,
                             result.flow.empty() ? "" : ", ", result.flow, result.steps, result.steps == 1 ? "" : "s",
                             result.cycles);
    std::size_t width = 0;
    for (const TensorResult& tensor : result.tensors) {
        width = std::max(width, tensor.name.size());
    }
    for (const TensorResult& tensor : result.tensors) {
        std::cout << fmt::format("  {:<{}}  {:9.2e} of {:.0e}  {}\n", tensor.name, width, tensor.error, tensor.bound,
                                 tensor.passed() ? "ok" : "OVER: " + tensor.worst);
    }
    if (!result.unchecked.empty()) {
        std::cout << fmt::format("  not checked: {}\n", fmt::join(result.unchecked, ", "));
    }
    if (!result.failure.empty()) {
        std::cout << "  FAILED: " << result.failure << '\n';
    }
    std::cout.flush();
}

}  // namespace

int verify_command(const Arguments& args) {
    Syntax syntax;
    syntax.usage = "verify -c FILE VECTORS... [--json] [--mode leap|clocked]";
    syntax.summary =
        "Runs vector files through the simulated machine and compares every result with its bound. VECTORS are files\n"
        "of one operation, directories of such files, or a model's directory (docs/verify.md). The shapes come from\n"
        "the files, the machine from the design; a dense file runs as mm, others as network.flow says. The memory may\n"
        "overflow. Exit status 1 if a result is over its bound, 2 if a file is malformed (then nothing runs).";
    syntax.takes_design = true;
    syntax.max_positionals = std::numeric_limits<std::size_t>::max();
    syntax.options.add_options()("json", "print JSON");
    syntax.options.add_options()("mode", po::value<std::string>()->default_value("leap")->value_name("MODE"),
                                 "leap or clocked; the results are the same");
    const auto line = parse_command(args, syntax);
    if (!line) {
        return 0;
    }
    const RunMode run_mode = parse_mode(line->values["mode"].as<std::string>());
    if (line->positionals.empty()) {
        throw ConfigError("no vector files given; usage: contraflow " + syntax.usage);
    }
    const auto cases = verify::load_cases(line->positionals, line->design.config);
    Totals totals;
    nlohmann::ordered_json json;
    json["cases"] = nlohmann::ordered_json::array();
    for (const verify::VerifyCase& verify_case : cases) {
        const CaseResult result = verify::run_case_in_child(verify_case, run_mode);
        totals.add(result);
        line->has("json") ? json["cases"].push_back(verify::to_json(result)) : print(result);
    }
    const bool passed = totals.failed_cases == 0;
    if (line->has("json")) {
        json["mode"] = line->values["mode"].as<std::string>();
        json["passed"] = passed;
        std::cout << json.dump(2) << '\n';
    } else if (passed) {
        std::cout << fmt::format("{} of {} within bounds, {} results\n", totals.cases, totals.cases, totals.tensors);
    } else {
        std::cout << fmt::format("{} of {} FAILED, {} of {} results over their bounds\n", totals.failed_cases,
                                 totals.cases, totals.failed_tensors, totals.tensors);
    }
    return passed ? 0 : 1;
}

}  // namespace contraflow::cli
