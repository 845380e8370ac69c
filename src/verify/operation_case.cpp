// Vector files of one operation.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "contraflow/op_steps.h"
#include "verify/verify_case.h"

namespace contraflow::verify {
namespace {

constexpr std::int64_t kMaxPositions = 1 << 20;
constexpr std::int64_t kMaxFeatures = 1 << 24;
using Shape = std::vector<std::int64_t>;

// Collects the inputs and expectations of one operation.
class OperationCase {
public:
    OperationCase(VectorFile& file, const Config& machine, double bound) : file_(file), bound_(bound) {
        case_.config = machine;
        case_.steps.resize(1);
    }

    // The step, before anything else is added.
    void set_step(Step step) {
        case_.step = std::move(step);
        const auto positions = static_cast<std::size_t>(case_.step.seq_len);
        sample().tokens.assign(positions, 0);
        sample().slot_labels.assign(positions, 0);
        sample().real.assign(positions, 1);
    }
    [[nodiscard]] Sample& sample() { return case_.steps[0].sample; }
    [[nodiscard]] const Shape& machine_shape(const std::string& name) const {
        return case_.step.tensor(case_.step.find(name)).shape;
    }

    void input(const std::string& name) {
        const TensorId id = case_.step.find(name);
        case_.inputs.emplace_back(id, file_.floats(name, case_.step.tensor(id).shape));
    }
    void input(const std::string& name, std::vector<float> values) {
        case_.inputs.emplace_back(case_.step.find(name), std::move(values));
    }
    // A result, if the file has it. Returns its expectation or nullptr.
    Expectation* result(const std::string& name) { return result(name, machine_shape(name)); }
    Expectation* result(const std::string& name, const Shape& shape) {
        if (!file_.has(name)) {
            return nullptr;
        }
        Expectation expectation;
        expectation.name = name;
        expectation.tensor = case_.step.find(name);
        expectation.stored = file_.floats(name, shape);
        expectation.bound = bound_;
        case_.steps[0].expectations.push_back(std::move(expectation));
        return &case_.steps[0].expectations.back();
    }
    // A result that is zero whatever rounding the file holds.
    void zero_result(const std::string& name) {
        if (Expectation* expectation = result(name)) {
            expectation->rule = Rule::Zero;
            expectation->bound = 0;
        }
    }

    VerifyCase finish() {
        if (case_.steps[0].expectations.empty()) {
            file_.fail("holds no result to compare with; docs/verify.md lists them");
        }
        return std::move(case_);
    }

private:
    VectorFile& file_;
    double bound_;
    VerifyCase case_;
};

std::int64_t last(const Shape& shape) {
    return shape.empty() ? 1 : shape.back();
}

std::int64_t rows_of(const Shape& shape) {
    return std::accumulate(shape.begin(), shape.end() - (shape.empty() ? 0 : 1), std::int64_t{1},
                           [](std::int64_t left, std::int64_t right) { return left * right; });
}

void require_elements(const VectorFile& file, const std::string& name) {
    const Shape& shape = file.shape(name);
    const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
    if (empty) {
        file.fail(fmt::format("tensor \"{}\" is {}; expected at least one element", name, shape_text(shape)));
    }
}

bool has_cores(const VectorFile& file, const std::string& prefix) {
    return file.has_any(prefix + "core.");
}

std::vector<std::vector<float>> read_cores(VectorFile& file, const std::string& prefix, const TtShape& shape) {
    std::vector<std::vector<float>> cores;
    for (std::size_t k = 0; k < shape.num_cores(); ++k) {
        cores.push_back(file.floats(prefix + "core." + std::to_string(k),
                                    {shape.ranks[k], shape.tensor_mode(k), shape.ranks[k + 1]}));
    }
    return cores;
}

// The shape of a linear: of a dense file only the numbers of outputs and inputs matter.
TtShape linear_shape(const VectorFile& file, const std::string& weight, const std::string& first_core) {
    if (file.has(first_core) || file.has_key("ranks")) {
        return file.tt_shape();
    }
    const Shape shape = file.shape(weight);
    if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1) {
        file.fail(fmt::format("tensor \"{}\" is {}; expected outputs x inputs", weight, shape_text(shape)));
    }
    return {{shape[0]}, {shape[1]}, {1, 1, 1}};
}

VerifyCase tt_linear_case(VectorFile& file, const Config& machine) {
    OperationCase result(file, machine, kTtLinearBound);
    const bool dense = !has_cores(file, "");
    if (dense && !file.has("mm.W")) {
        file.fail("has neither core.0 nor mm.W; expected the cores of a TT linear, or mm.W of a dense one");
    }
    const Flow flow = dense ? Flow::Mm : machine.network.flow;
    const TtShape shape = linear_shape(file, "mm.W", "core.0");
    result.set_step(build_tt_linear_step(shape, file.integer("S", 1, kMaxPositions), flow));
    for (const char* name : {"x", "dy", "bias"}) {
        result.input(name);
    }
    if (flow != Flow::Mm) {
        for (std::size_t k = 0; k < shape.num_cores(); ++k) {
            result.input("core." + std::to_string(k));
        }
    } else if (file.has("mm.W")) {
        result.input("mm.W");
    } else {
        result.input("mm.W", multiplied_out(shape, read_cores(file, "", shape)));
    }
    for (const char* name : {"y", "dx", "dbias"}) {
        result.result(name);
    }
    for (std::size_t k = 0; k < shape.num_cores() && flow != Flow::Mm; ++k) {
        result.result("dcore." + std::to_string(k));
    }
    if (flow == Flow::Btt) {
        for (const char* name : {"btt.U", "btt.Vt", "btt.T", "btt.dT", "btt.dU", "btt.dVt"}) {
            result.result(name);
        }
    }
    if (flow == Flow::Mm) {
        result.result("mm.dW");
    }
    VerifyCase finished = result.finish();
    finished.config.network.flow = flow;
    return finished;
}

VerifyCase ttm_embedding_case(VectorFile& file, const Config& machine) {
    OperationCase result(file, machine, kTtmEmbeddingBound);
    const TtmShape shape = file.ttm_shape("ranks");
    require_elements(file, "tokens");
    const std::int64_t positions = last(file.shape("tokens"));
    const std::vector<std::int32_t> tokens =
        file.ints("tokens", {positions}, 0, static_cast<std::int32_t>(shape.vocab() - 1));
    result.set_step(build_ttm_embedding_step(shape, positions));
    result.sample().tokens = tokens;
    result.input("dy");
    for (std::size_t k = 0; k < shape.num_cores(); ++k) {
        result.input("core." + std::to_string(k));
    }
    result.result("y");
    for (std::size_t k = 0; k < shape.num_cores(); ++k) {
        if (Expectation* gradient = result.result("dcore." + std::to_string(k))) {
            gradient->zeros = unselected_slices(shape, k, tokens);
        }
    }
    return result.finish();
}

VerifyCase layernorm_case(VectorFile& file, const Config& machine) {
    OperationCase result(file, machine, kElementwiseBound);
    require_elements(file, "x");
    const Shape shape = file.shape("x");
    result.set_step(build_layernorm_step(rows_of(shape), last(shape), static_cast<float>(file.number("eps"))));
    for (const char* name : {"x", "gamma", "beta", "dy"}) {
        result.input(name);
    }
    for (const char* name : {"y", "dx", "dgamma", "dbeta"}) {
        result.result(name);
    }
    return result.finish();
}

std::vector<std::int32_t> read_real(VectorFile& file, std::int64_t positions) {
    std::vector<std::int32_t> real = file.ints("real", {positions}, 0, 1);
    if (std::find(real.begin(), real.end(), 1) == real.end()) {
        file.fail("tensor \"real\" has no 1; expected at least one real position");
    }
    return real;
}

bool has_one(const std::vector<std::int32_t>& real) {
    return std::count(real.begin(), real.end(), 1) == 1;
}

VerifyCase softmax_masked_case(VectorFile& file, const Config& machine) {
    OperationCase result(file, machine, kSoftmaxBound);
    require_elements(file, "x");
    const Shape shape = file.shape("x");
    const std::vector<std::int32_t> real = read_real(file, last(shape));
    result.set_step(build_softmax_masked_step(rows_of(shape), last(shape)));
    result.sample().real = real;
    result.input("x");
    result.input("dy");
    if (Expectation* y = result.result("y")) {
        y->zeros = padding_columns(y->stored.size(), real);
    }
    if (has_one(real)) {  // a constant
        result.zero_result("dx");
    } else if (Expectation* dx = result.result("dx")) {
        dx->zeros = padding_columns(dx->stored.size(), real);
    }
    return result.finish();
}

VerifyCase elementwise_case(VectorFile& file, const Config& machine, Step (*build)(std::int64_t, std::int64_t)) {
    OperationCase result(file, machine, kElementwiseBound);
    require_elements(file, "x");
    const Shape shape = file.shape("x");
    result.set_step(build(rows_of(shape), last(shape)));
    result.input("x");
    result.input("dy");
    result.result("y");
    result.result("dx");
    return result.finish();
}

VerifyCase gelu_case(VectorFile& file, const Config& machine) {
    return elementwise_case(file, machine, build_gelu_step);
}

VerifyCase tanh_case(VectorFile& file, const Config& machine) {
    return elementwise_case(file, machine, build_tanh_step);
}

std::int64_t read_heads(const VectorFile& file, std::int64_t d_model) {
    const std::int64_t heads = file.integer("heads", 1, d_model);
    if (d_model % heads != 0) {
        file.fail(fmt::format("metadata heads = {} does not divide d_model = {}; expected a divisor", heads, d_model));
    }
    return heads;
}

VerifyCase attention_case(VectorFile& file, const Config& machine) {
    OperationCase result(file, machine, kAttentionBound);
    const std::int64_t positions = file.integer("S", 1, kMaxPositions);
    const std::int64_t d_model = file.integer("d_model", 1, kMaxFeatures);
    const std::int64_t heads = read_heads(file, d_model);
    const std::vector<std::int32_t> real = read_real(file, positions);
    for (const char* name : {"q", "k", "v", "dcontext"}) {  // before a step of the claimed size is built
        (void)file.floats(name, {positions, d_model});
    }
    result.set_step(build_attention_step(positions, d_model, heads));
    result.sample().real = real;
    for (const char* name : {"q", "k", "v", "dcontext"}) {
        result.input(name);
    }
    if (Expectation* prob = result.result("prob")) {
        prob->zeros = padding_columns(prob->stored.size(), real);
    }
    result.result("context");
    result.result("dv");
    for (const char* name : {"dq", "dk"}) {
        if (has_one(real)) {  // the only probability is 1 whatever q and k are
            result.zero_result(name);
        } else {
            result.result(name);
        }
    }
    return result.finish();
}

VerifyCase mha_tt_case(VectorFile& file, const Config& machine) {
    OperationCase result(file, machine, kMhaBound);
    const bool dense = !has_cores(file, "q.");
    if (dense && !file.has("q.weight")) {
        file.fail("has neither q.core.0 nor q.weight; expected the cores of TT linears, or the weights of dense ones");
    }
    const Flow flow = dense ? Flow::Mm : machine.network.flow;
    const TtShape shape = linear_shape(file, "q.weight", "q.core.0");
    if (shape.rows() != shape.cols()) {
        file.fail(
            fmt::format("the linears have {} outputs and {} inputs; expected as many", shape.rows(), shape.cols()));
    }
    const std::int64_t positions = file.integer("S", 1, kMaxPositions);
    const std::int64_t heads = read_heads(file, shape.rows());
    const std::vector<std::int32_t> real = read_real(file, positions);
    (void)file.floats("x", {positions, shape.cols()});
    result.set_step(build_mha_tt_step(shape, positions, heads, flow));
    result.sample().real = real;
    result.input("x");
    result.input("dy");
    for (const char* name : {"y", "dx", "q", "k", "v", "context", "dcontext", "dv"}) {
        result.result(name);
    }
    if (Expectation* prob = result.result("prob")) {
        prob->zeros = padding_columns(prob->stored.size(), real);
    }
    for (const std::string linear : {"q", "k", "v", "o"}) {
        const bool zero = has_one(real) && (linear == "q" || linear == "k");
        const auto expect = [&](const std::string& name) {
            zero ? result.zero_result(name) : static_cast<void>(result.result(name));
        };
        if (linear == "q" || linear == "k") {
            expect("d" + linear);
        }
        result.input(linear + ".bias");
        if (flow == Flow::Mm) {
            file.has(linear + ".weight")
                ? result.input(linear + ".weight")
                : result.input(linear + ".weight", multiplied_out(shape, read_cores(file, linear + ".", shape)));
            expect("d" + linear + ".weight");
        } else {
            for (std::size_t k = 0; k < shape.num_cores(); ++k) {
                result.input(linear + ".core." + std::to_string(k));
                expect("d" + linear + ".core." + std::to_string(k));
            }
        }
        expect("d" + linear + ".bias");
    }
    VerifyCase finished = result.finish();
    for (Expectation& expectation : finished.steps[0].expectations) {
        if (expectation.name == "dk.bias" && expectation.rule != Rule::Zero) {
            expectation.rule = Rule::KeyBias;
            expectation.bound = kKeyBiasBound;
            expectation.keys = finished.step.find("dk");
        }
    }
    finished.config.network.flow = flow;
    return finished;
}

VerifyCase cross_entropy_case(VectorFile& file, const Config& machine) {
    OperationCase result(file, machine, kSoftmaxBound);
    require_elements(file, "logits");
    const Shape shape = file.shape("logits");
    const std::int64_t rows = rows_of(shape);
    const std::int64_t first = file.integer("first_row", 0, rows - 1);
    const std::int64_t count = file.integer("row_count", 1, rows - first);
    const std::vector<std::int32_t> labels = file.ints("labels", {rows}, 0, static_cast<std::int32_t>(last(shape) - 1));
    result.set_step(build_cross_entropy_step(rows, last(shape), first, count));
    result.sample().slot_labels = labels;
    result.input("logits");
    result.result("loss", {});
    if (Expectation* gradient = result.result("dlogits")) {
        std::vector<std::int32_t> counts(static_cast<std::size_t>(rows), 0);
        std::fill_n(counts.begin() + first, count, 1);
        gradient->zeros = padding_rows(gradient->stored.size(), static_cast<std::size_t>(last(shape)), counts);
    }
    return result.finish();
}

using Load = VerifyCase (*)(VectorFile&, const Config&);
const std::map<std::string, Load>& loaders() {
    static const std::map<std::string, Load> table{
        {"attention", attention_case},
        {"cross_entropy", cross_entropy_case},
        {"gelu", gelu_case},
        {"layernorm", layernorm_case},
        {"mha_tt", mha_tt_case},
        {"softmax_masked", softmax_masked_case},
        {"tanh", tanh_case},
        {"tt_linear", tt_linear_case},
        {"ttm_embedding", ttm_embedding_case},
    };
    return table;
}

}  // namespace

VerifyCase load_operation(const std::string& path, const Config& machine) {
    VectorFile file(path);
    std::vector<std::string> kinds;
    for (const auto& entry : loaders()) {
        kinds.push_back(entry.first);
    }
    const std::string expected = fmt::format("one of {}", fmt::join(kinds, ", "));
    const std::string kind = file.text("kind", expected);
    if (kind == "model") {
        file.fail(
            "is one file of a model; expected the model's directory, with init.safetensors and "
            "trace.safetensors");
    }
    const auto loader = loaders().find(kind);
    if (loader == loaders().end()) {
        file.fail(fmt::format("metadata kind = \"{}\"; expected {}", kind, expected));
    }
    VerifyCase result = loader->second(file, machine);
    result.path = path;
    result.kind = kind;
    result.unchecked = file.unused();
    return result;
}

}  // namespace contraflow::verify
