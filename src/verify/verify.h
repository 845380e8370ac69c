// Vector files through the simulated machine: every result's error against its bound.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "verify/verify_case.h"

namespace contraflow::verify {

struct TensorResult {
    std::string name;
    double error = 0;  // infinity: not a number, or wrong where exactly zero is required
    double bound = 0;
    std::string worst;  // of a result over its bound: where, what was found, what was expected

    [[nodiscard]] bool passed() const { return error <= bound; }
};

struct CaseResult {
    std::string path, kind, flow;
    std::uint64_t steps = 0, cycles = 0;
    std::vector<TensorResult> tensors;  // "loss" of each step of a model among them
    std::vector<std::string> unchecked;
    std::string failure;  // the simulation itself failed

    [[nodiscard]] bool passed() const;
};

// The cases of files of one operation, of models' directories (those with a trace.safetensors or init.safetensors), and
// of directories that hold files of operations. Throws ConfigError with one line per malformed file.
[[nodiscard]] std::vector<VerifyCase> load_cases(const std::vector<std::string>& paths, const Config& machine);

// Runs a case in this process. REQUIRES: nothing was elaborated before.
[[nodiscard]] CaseResult run_case(const VerifyCase& verify_case, RunMode run_mode);
// Runs it in a child process. A simulation that fails or crashes leaves its message in `failure`.
[[nodiscard]] CaseResult run_case_in_child(const VerifyCase& verify_case, RunMode run_mode);

// {path, kind, flow, steps, cycles, passed, failure, tensors [{name, error, bound, passed, worst}], unchecked []}; an
// infinite error is null.
[[nodiscard]] nlohmann::ordered_json to_json(const CaseResult& result);

}  // namespace contraflow::verify
