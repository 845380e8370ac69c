// The parameters of the network: their names and shapes, initial values, and checkpoints. Names and row-major layouts
// are those of the vector files (tests/golden/README.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "contraflow/config.h"

namespace contraflow {

using Weights = std::map<std::string, std::vector<float>>;

struct ParameterSpec {
    std::string name;
    std::vector<std::int64_t> shape;

    [[nodiscard]] std::int64_t words() const;  // product of the shape
};

// Every parameter in the order of the network, input first: tensor-train cores, or matrices if `dense`.
[[nodiscard]] std::vector<ParameterSpec> parameter_specs(const Config& config, bool dense);
// The same in the form network.flow trains: dense for mm.
[[nodiscard]] std::vector<ParameterSpec> parameter_specs(const Config& config);

// 32-bit words of all parameters.
[[nodiscard]] std::int64_t parameter_words(const Config& config, bool dense);

// Random initial values of parameter_specs(config). A tensor's values depend on train.seed, its name and its shape
// only, and are the same bits on every host. Every entry of a linear's W has variance 1 / (inputs + outputs), whether W
// is made of cores or not; of an output layer's 2 / (inputs + outputs), of the token table 0.04, of the position table
// 0.0016; biases and betas are 0, gammas 1.
[[nodiscard]] Weights initial_weights(const Config& config);

// Reads a checkpoint for `config`. Under flow mm, a layer that the file holds as cores of any tensor-train shape is
// multiplied out (in double, rounded once).
// Throws ConfigError with one line per problem: a missing or unknown tensor, another shape or type, NaN or infinity.
[[nodiscard]] Weights load_weights(const std::string& path, const Config& config);

// Writes a checkpoint that load_weights reads; a killed run leaves no half file.
// REQUIRES: weights holds exactly the tensors of parameter_specs(config). Throws ConfigError if `path` cannot be
// written.
void save_weights(const std::string& path, const Config& config, const Weights& weights);

}  // namespace contraflow
