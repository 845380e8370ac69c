// What one vector file, or the directory of a model, asks of the machine: a step, its inputs, and what must come out.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "contraflow/config.h"
#include "contraflow/sample.h"
#include "contraflow/step.h"
#include "verify/vector_file.h"

namespace contraflow::verify {

// Bounds on max |got - stored| / max |stored|, recommended in tests/golden/README.md.
inline constexpr double kTtLinearBound = 1e-5;
inline constexpr double kTtmEmbeddingBound = 3e-6;
inline constexpr double kElementwiseBound = 2e-6;  // layer normalisation, GELU, tanh
inline constexpr double kSoftmaxBound = 3e-5;      // and cross entropy
inline constexpr double kAttentionBound = 3e-6;
inline constexpr double kMhaBound = 3e-5;
inline constexpr double kLossBound = 5e-6;
inline constexpr double kLogitsBound = 1e-5;
inline constexpr double kActivationBound = 4e-5;
inline constexpr double kGradientBound = 3e-5;
inline constexpr double kParameterBound = 3e-6;
inline constexpr double kKeyBiasBound = 1e-5;

enum class Rule {
    Relative,  // max |got - stored| / max |stored|
    KeyBias,   // zero in exact arithmetic: max |got| / (S max |dk|), whatever is stored
    Zero,      // exactly zero: max |got|, whatever is stored
};

struct Expectation {
    std::string name;  // as in the file; of a model with the file's name before it: "acts0 embed.ln"
    TensorId tensor = kNoTensor;
    std::vector<float> stored;
    double bound = 0;
    Rule rule = Rule::Relative;
    TensorId keys = kNoTensor;  // Rule::KeyBias: d k
    std::vector<bool> zeros;    // elements that must be exactly zero; empty: none
};

struct TrainingStep {
    Sample sample;
    double loss = 0;  // of a model: expected
    bool has_loss = false;
    std::vector<Expectation> expectations;  // after the step
};

struct VerifyCase {
    std::string path, kind;
    Config config;  // the machine's, with the file's network
    Step step;
    bool is_model = false;  // otherwise one operation, whose step stores no loss
    std::vector<std::pair<TensorId, std::vector<float>>> inputs;
    std::vector<TrainingStep> steps;
    std::vector<std::string> unchecked;  // tensors of the file that no rule is known for
};

// The case of a file of one operation. `machine` gives the hardware and, for tensor-train layers, the flow.
// Throws ConfigError naming the file.
[[nodiscard]] VerifyCase load_operation(const std::string& path, const Config& machine);
// The case of a model's directory. Throws ConfigError.
[[nodiscard]] VerifyCase load_model(const std::string& directory, const Config& machine);

// W = U Vt from cores in order, multiplied out in double and rounded once.
[[nodiscard]] std::vector<float> multiplied_out(const TtShape& shape, const std::vector<std::vector<float>>& cores);

// Elements of core k's gradient in slices that no token selects.
[[nodiscard]] std::vector<bool> unselected_slices(const TtmShape& shape, std::size_t core,
                                                  const std::vector<std::int32_t>& tokens);
// Elements in columns (of the last axis) or rows (of the last but one) whose flag is 0.
[[nodiscard]] std::vector<bool> padding_columns(std::size_t elements, const std::vector<std::int32_t>& real);
[[nodiscard]] std::vector<bool> padding_rows(std::size_t elements, std::size_t cols,
                                             const std::vector<std::int32_t>& real);

}  // namespace contraflow::verify
