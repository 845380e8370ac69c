// The lowering of the training step, executed by the plain interpreter, against vectors of an independent float64
// implementation of the model. Bounds are those of tests/golden/README.md.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "contraflow/op_steps.h"
#include "contraflow/step.h"
#include "contraflow/weights.h"
#include "reference/golden_vectors.h"
#include "reference/reference_machine.h"

using namespace contraflow;

namespace {

constexpr double kTtLinearBound = 1e-5;
constexpr double kTtmEmbeddingBound = 3e-6;
constexpr double kElementwiseBound = 2e-6;
constexpr double kSoftmaxBound = 3e-5;
constexpr double kAttentionBound = 3e-6;
constexpr double kMhaBound = 3e-5;
constexpr double kLossBound = 5e-6;
constexpr double kLogitsBound = 1e-5;
constexpr double kActivationBound = 4e-5;
constexpr double kGradientBound = 3e-5;
constexpr double kParameterBound = 3e-6;
constexpr double kKeyBiasBound = 1e-5;

// One vector file, the step of its operation and the machine that runs it.
struct OpRun {
    OpRun(const TensorFile& vectors, const Step& op_step) : file(vectors), step(op_step), machine(step) {}

    void set(const std::vector<std::string>& names) {
        for (const std::string& name : names) {
            machine.tensor(name) = file.tensors.at(name).as_floats();
        }
    }
    void set_in_sample(const std::string& name, std::int64_t offset) {
        const std::vector<std::int32_t> values = file.tensors.at(name).as_ints();
        std::copy(values.begin(), values.end(), machine.integers(step.sample).begin() + offset);
    }
    void run(const std::string& path, const std::vector<std::string>& results, double bound) {
        machine.run_step();
        for (const std::string& name : results) {
            INFO(path << ": " << name);
            CHECK(golden::error(machine.tensor(name), file.tensors.at(name)) <= bound);
        }
    }

    const TensorFile& file;
    const Step& step;
    ReferenceMachine machine;
};

std::vector<std::string> numbered(const std::string& prefix, std::size_t count) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i) {
        names.push_back(prefix + std::to_string(i));
    }
    return names;
}

std::vector<std::string> operator+(std::vector<std::string> left, const std::vector<std::string>& right) {
    left.insert(left.end(), right.begin(), right.end());
    return left;
}

// W = U Vt of a file, multiplied out in double and rounded once.
std::vector<float> dense_weight(const TensorFile& file, const TtShape& shape) {
    const std::vector<double> u = file.tensors.at("btt.U").as_doubles();
    const std::vector<double> vt = file.tensors.at("btt.Vt").as_doubles();
    const auto rows = static_cast<std::size_t>(shape.rows());
    const auto cols = static_cast<std::size_t>(shape.cols());
    const auto rank = static_cast<std::size_t>(shape.middle_rank());
    std::vector<double> weight(rows * cols, 0.0);
    for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t k = 0; k < rank; ++k) {
            for (std::size_t j = 0; j < cols; ++j) {
                weight[i * cols + j] += u[i * rank + k] * vt[k * cols + j];
            }
        }
    }
    return {weight.begin(), weight.end()};
}

bool starts_with(const std::string& name, const std::string& prefix) {
    return name.compare(0, prefix.size(), prefix) == 0;
}

bool is_key_bias(const std::string& name) {
    return name.find(".attn.k.bias") != std::string::npos;
}

// A model of the golden vectors, trained step by step.
class ModelRun {
public:
    ModelRun(const std::string& folder, Flow flow, int partial_sums = 1)
        : folder_(folder), trace_(golden::load(folder + "/trace.safetensors")), config_(configured(trace_, flow)) {
        step_ = build_training_step(config_);
        machine_ = std::make_unique<ReferenceMachine>(step_, partial_sums);
        for (const auto& [name, values] : load_weights(init_path(folder), config_)) {
            machine_->tensor(name) = values;
        }
        samples_ = golden::trace_samples(trace_);
    }

    void train_one_step() {
        machine_->load_sample(samples_.at(steps_done_));
        machine_->run_step();
        ++steps_done_;
    }

    void check_loss(const std::string& losses) {
        const double expected = trace_.tensors.at(losses).as_doubles().at(steps_done_ - 1);
        INFO(folder_ << ": loss of step " << steps_done_ - 1);
        CHECK(std::abs(static_cast<double>(machine_->stored_loss().at(2)) - expected) <= kLossBound * expected);
    }

    void check_first_step() {
        check("trace.safetensors", "step0.", "", kLogitsBound);
        check("acts0.safetensors", "", "", kActivationBound);
        check("dacts0.safetensors", "", "d.", kActivationBound);
        check("grads0.safetensors", "", "d.", kGradientBound);
    }

    void check_parameters(const std::string& file) { check(file, "", "", kParameterBound); }

    [[nodiscard]] ReferenceMachine& machine() { return *machine_; }
    [[nodiscard]] std::size_t steps() const { return samples_.size(); }

private:
    static Config configured(const TensorFile& file, Flow flow) {
        Config config = golden::model_config(file);
        config.network.flow = flow;
        return config;
    }
    static std::string init_path(const std::string& folder) {
        return std::string(CONTRAFLOW_SOURCE_DIR) + "/tests/golden/" + folder + "/init.safetensors";
    }

    // Every tensor of a file whose name starts with `strip` is compared with the machine's, with `prefix` instead.
    void check(const std::string& file_name, const std::string& strip, const std::string& prefix, double bound) {
        const TensorFile file = golden::load(folder_ + "/" + file_name);
        for (const auto& [name, stored] : file.tensors) {
            if (!starts_with(name, strip)) {
                continue;
            }
            INFO(folder_ << "/" << file_name << ": " << name);
            const std::vector<float>& got = machine_->tensor(prefix + name.substr(strip.size()));
            if (prefix == "d." && is_key_bias(name)) {  // zero but for rounding
                const std::string keys = "d." + name.substr(0, name.size() - std::string(".bias").size());
                CHECK(golden::largest_magnitude(got) <=
                      kKeyBiasBound * config_.network.seq_len * golden::largest_magnitude(machine_->tensor(keys)));
            } else {
                CHECK(golden::error(got, stored) <= bound);
            }
        }
    }

    std::string folder_;
    TensorFile trace_;
    Config config_;
    Step step_;
    std::unique_ptr<ReferenceMachine> machine_;
    std::vector<Sample> samples_;
    std::size_t steps_done_ = 0;
};

}  // namespace

TEST_CASE("the bidirectional flow reproduces every TT linear and its merged halves") {
    for (const std::string& path : golden::files_of("tt_linear")) {
        const TensorFile file = golden::load(path);
        const TtShape shape = golden::tt_shape(file);
        const Step step = build_tt_linear_step(shape, golden::integer(file, "S"), Flow::Btt);
        OpRun run(file, step);
        run.set(numbered("core.", shape.num_cores()) + std::vector<std::string>{"x", "dy", "bias"});
        run.run(
            path,
            numbered("dcore.", shape.num_cores()) +
                std::vector<std::string>{"y", "dx", "dbias", "btt.U", "btt.Vt", "btt.T", "btt.dT", "btt.dU", "btt.dVt"},
            kTtLinearBound);
    }
}

TEST_CASE("the right-to-left flow reproduces every TT linear") {
    for (const std::string& path : golden::files_of("tt_linear")) {
        const TensorFile file = golden::load(path);
        const TtShape shape = golden::tt_shape(file);
        const Step step = build_tt_linear_step(shape, golden::integer(file, "S"), Flow::Tt);
        OpRun run(file, step);
        run.set(numbered("core.", shape.num_cores()) + std::vector<std::string>{"x", "dy", "bias"});
        run.run(path, numbered("dcore.", shape.num_cores()) + std::vector<std::string>{"y", "dx", "dbias"},
                kTtLinearBound);
    }
}

TEST_CASE("the dense flow reproduces every TT linear from its multiplied-out weight") {
    for (const std::string& path : golden::files_of("tt_linear")) {
        const TensorFile file = golden::load(path);
        const TtShape shape = golden::tt_shape(file);
        const Step step = build_tt_linear_step(shape, golden::integer(file, "S"), Flow::Mm);
        OpRun run(file, step);
        run.set({"x", "dy", "bias"});
        run.machine.tensor("mm.W") = dense_weight(file, shape);
        std::vector<std::string> results{"y", "dx", "dbias"};
        if (file.tensors.count("mm.dW") != 0) {
            results.emplace_back("mm.dW");
        }
        run.run(path, results, kTtLinearBound);
    }
}

TEST_CASE("the TTM embedding reproduces every vector and leaves slices without a token at zero") {
    for (const std::string& path : golden::files_of("ttm_embedding")) {
        const TensorFile file = golden::load(path);
        const TtmShape shape = golden::ttm_shape(file);
        const Step step = build_ttm_embedding_step(shape, file.tensors.at("tokens").elements());
        OpRun run(file, step);
        run.set(numbered("core.", shape.num_cores()) + std::vector<std::string>{"dy"});
        run.set_in_sample("tokens", step.tokens_offset());
        run.run(path, numbered("dcore.", shape.num_cores()) + std::vector<std::string>{"y"}, kTtmEmbeddingBound);
        for (const std::string& name : numbered("dcore.", shape.num_cores())) {
            const std::vector<float> stored = file.tensors.at(name).as_floats();
            const std::vector<float>& got = run.machine.tensor(name);
            INFO(path << ": " << name);
            CHECK(std::equal(got.begin(), got.end(), stored.begin(),
                             [](float mine, float theirs) { return theirs != 0 || mine == 0; }));
        }
    }
}

TEST_CASE("an embedding gradient starts from zero in every step") {
    const TensorFile file = golden::load("ttm_embedding/small_repeats.safetensors");
    const TtmShape shape = golden::ttm_shape(file);
    const Step step = build_ttm_embedding_step(shape, file.tensors.at("tokens").elements());
    OpRun run(file, step);
    run.set({"core.0", "core.1", "core.2", "dy"});
    run.set_in_sample("tokens", step.tokens_offset());
    run.machine.run_step();
    const std::vector<float> first = run.machine.tensor("dcore.1");
    run.machine.run_step();
    CHECK(run.machine.tensor("dcore.1") == first);
}

TEST_CASE("layer normalisation reproduces every vector") {
    for (const std::string name : {"d3", "odd", "paper", "spread"}) {
        const std::string path = "ops/layernorm_" + name + ".safetensors";
        const TensorFile file = golden::load(path);
        const std::vector<std::int64_t> shape = file.tensors.at("x").shape;
        const Step step = build_layernorm_step(shape.at(0), shape.at(1), std::stof(file.metadata.at("eps")));
        OpRun run(file, step);
        run.set({"x", "gamma", "beta", "dy"});
        run.run(path, {"y", "dx", "dgamma", "dbeta"}, kElementwiseBound);
    }
}

TEST_CASE("the masked softmax reproduces every vector") {
    for (const std::string name : {"large_logits", "no_padding", "one_real", "paper"}) {
        const std::string path = "ops/softmax_masked_" + name + ".safetensors";
        const TensorFile file = golden::load(path);
        const std::vector<std::int64_t> shape = file.tensors.at("x").shape;
        const Step step = build_softmax_masked_step(shape.at(0), shape.at(1));
        OpRun run(file, step);
        run.set({"x", "dy"});
        run.set_in_sample("real", step.real_offset());
        run.run(path, {"y"}, kSoftmaxBound);
        if (name == "one_real") {  // a constant: its gradient is zero
            CHECK(golden::largest_magnitude(run.machine.tensor("dx")) == 0);
        } else {
            INFO(path << ": dx");
            CHECK(golden::error(run.machine.tensor("dx"), file.tensors.at("dx")) <= kSoftmaxBound);
        }
        const std::vector<std::int32_t> real = file.tensors.at("real").as_ints();
        for (std::size_t i = 0; i < run.machine.tensor("y").size(); ++i) {
            if (real[i % real.size()] == 0) {
                REQUIRE(run.machine.tensor("y")[i] == 0);
            }
        }
    }
}

TEST_CASE("GELU and tanh reproduce their vectors") {
    for (const std::string name : {"gelu_erf", "tanh"}) {
        const std::string path = "ops/" + name + ".safetensors";
        const TensorFile file = golden::load(path);
        const std::int64_t count = file.tensors.at("x").elements();
        const Step step = name == "tanh" ? build_tanh_step(1, count) : build_gelu_step(1, count);
        OpRun run(file, step);
        run.set({"x", "dy"});
        run.run(path, {"y", "dx"}, kElementwiseBound);
    }
}

TEST_CASE("attention reproduces every vector") {
    for (const std::string name : {"no_padding", "one_real", "paper", "small"}) {
        const std::string path = "ops/attention_" + name + ".safetensors";
        const TensorFile file = golden::load(path);
        const Step step = build_attention_step(golden::integer(file, "S"), golden::integer(file, "d_model"),
                                               golden::integer(file, "heads"));
        OpRun run(file, step);
        run.set({"q", "k", "v", "dcontext"});
        run.set_in_sample("real", step.real_offset());
        run.run(path, {"prob", "context", "dv"}, kAttentionBound);
        for (const std::string gradient : {"dq", "dk"}) {
            INFO(path << ": " << gradient);
            if (name == "one_real") {  // the only probability is 1 whatever q and k are
                CHECK(golden::largest_magnitude(run.machine.tensor(gradient)) == 0);
            } else {
                CHECK(golden::error(run.machine.tensor(gradient), file.tensors.at(gradient)) <= kAttentionBound);
            }
        }
    }
}

TEST_CASE("the attention layer reproduces every vector in both tensor-train flows") {
    for (const Flow flow : {Flow::Btt, Flow::Tt}) {
        for (const std::string name : {"paper", "small"}) {
            const std::string path = "ops/mha_tt_" + name + ".safetensors";
            const TensorFile file = golden::load(path);
            const TtShape shape = golden::tt_shape(file);
            const Step step =
                build_mha_tt_step(shape, golden::integer(file, "S"), golden::integer(file, "heads"), flow);
            OpRun run(file, step);
            std::vector<std::string> inputs{"x", "dy"};
            std::vector<std::string> results{"q", "k", "v", "prob", "context", "y", "dx", "dq", "dk", "dv", "dcontext"};
            for (const std::string linear : {"q", "k", "v", "o"}) {
                inputs = inputs + numbered(linear + ".core.", shape.num_cores());
                inputs.push_back(linear + ".bias");
                results = results + numbered("d" + linear + ".core.", shape.num_cores());
                if (linear != "k") {
                    results.push_back("d" + linear + ".bias");
                }
            }
            run.set(inputs);
            run.set_in_sample("real", step.real_offset());
            run.run(path, results, kMhaBound);
            CHECK(golden::largest_magnitude(run.machine.tensor("dk.bias")) <=
                  kKeyBiasBound * static_cast<double>(step.seq_len) *
                      golden::largest_magnitude(run.machine.tensor("dk")));
        }
    }
}

TEST_CASE("the cross entropy reproduces every vector") {
    for (const std::string name : {"intent", "large_logits", "slots"}) {
        const std::string path = "ops/cross_entropy_" + name + ".safetensors";
        const TensorFile file = golden::load(path);
        const std::vector<std::int64_t> shape = file.tensors.at("logits").shape;
        const Step step = build_cross_entropy_step(shape.at(0), shape.at(1), golden::integer(file, "first_row"),
                                                   golden::integer(file, "row_count"));
        OpRun run(file, step);
        run.set({"logits"});
        run.set_in_sample("labels", step.slot_labels_offset());
        run.run(path, {"dlogits"}, kSoftmaxBound);
        const float expected = file.tensors.at("loss").as_floats().at(0);
        INFO(path);
        CHECK(std::abs(run.machine.tensor("loss").at(0) - expected) <= kSoftmaxBound * std::abs(expected));
        CHECK(run.machine.tensor("loss").at(2) == run.machine.tensor("loss").at(0));
    }
}

TEST_CASE("the tiny model trains as the vectors say in both tensor-train flows") {
    for (const Flow flow : {Flow::Btt, Flow::Tt}) {
        ModelRun run("model_tiny", flow);
        run.train_one_step();
        run.check_loss("loss.f64");
        run.check_first_step();
        run.check_parameters("after1.safetensors");
        for (std::size_t i = 1; i < run.steps(); ++i) {
            run.train_one_step();
            run.check_loss("loss.f64");
        }
        run.check_parameters("after5.safetensors");
    }
}

TEST_CASE("the tiny dense model trains as the vectors say") {
    ModelRun run("model_tiny_dense", Flow::Mm);
    run.train_one_step();
    run.check_loss("loss.f64");
    run.check_first_step();
    run.check_parameters("after1.safetensors");
    for (std::size_t i = 1; i < run.steps(); ++i) {
        run.train_one_step();
        run.check_loss("loss.f64");
    }
    run.check_parameters("after5.safetensors");
}

TEST_CASE("the tiny model multiplied out trains as the vectors say") {
    ModelRun run("model_tiny", Flow::Mm);
    for (std::size_t i = 0; i < run.steps(); ++i) {
        run.train_one_step();
        run.check_loss("dense_from_cores.loss.f64");
    }
}

TEST_CASE("the paper's model trains ten steps as the vectors say in the bidirectional flow") {
    ModelRun run("model_paper", Flow::Btt);
    run.train_one_step();
    run.check_loss("loss.f64");
    run.check_first_step();
    run.check_parameters("after1.safetensors");
    for (std::size_t i = 1; i < run.steps(); ++i) {
        run.train_one_step();
        run.check_loss("loss.f64");
    }
    run.check_parameters("after10.safetensors");
}

TEST_CASE("the paper's model trains ten steps as the vectors say in the right-to-left flow") {
    ModelRun run("model_paper", Flow::Tt);
    run.train_one_step();
    run.check_loss("loss.f64");
    run.check_first_step();
    run.check_parameters("after1.safetensors");
    for (std::size_t i = 1; i < run.steps(); ++i) {
        run.train_one_step();
        run.check_loss("loss.f64");
    }
    run.check_parameters("after10.safetensors");
}

TEST_CASE("the paper's model multiplied out trains as the vectors say") {
    ModelRun run("model_paper", Flow::Mm);
    for (int i = 0; i < 2; ++i) {
        run.train_one_step();
        run.check_loss("dense_from_cores.loss.f64");
    }
}

TEST_CASE("several partial sums stay within the bounds and change the rounding") {
    ModelRun one("model_tiny", Flow::Btt, 1);
    ModelRun four("model_tiny", Flow::Btt, 4);
    one.train_one_step();
    four.train_one_step();
    four.check_loss("loss.f64");
    four.check_first_step();
    four.check_parameters("after1.safetensors");
    CHECK(one.machine().tensor("encoder.0.ffn.fc1") != four.machine().tensor("encoder.0.ffn.fc1"));
}

TEST_CASE("partial sums are taken by index modulo their number and added in order") {
    Step step = build_tt_linear_step({{1}, {5}, {1, 1, 1}}, 1, Flow::Mm);
    // Products 1e8, 1, -1e8, 1, 2 and P = 2: (1e8 - 1e8 + 2) + (1 + 1), while one accumulator loses the first 1.
    const std::vector<float> x{1e8F, 1, -1e8F, 1, 2};
    const auto y_with = [&](int partial_sums) {
        ReferenceMachine machine(step, partial_sums);
        machine.tensor("x") = x;
        machine.tensor("mm.W") = {1, 1, 1, 1, 1};
        machine.run_step();
        return machine.tensor("y").at(0);
    };
    CHECK(y_with(1) == 3);
    CHECK(y_with(2) == 4);
}

TEST_CASE("a subnormal product counts as zero") {
    const Step step = build_tt_linear_step({{1}, {1}, {1, 1, 1}}, 1, Flow::Mm);
    ReferenceMachine machine(step);
    machine.tensor("x") = {1e-30F};
    machine.tensor("mm.W") = {1e-10F};
    machine.run_step();
    CHECK(machine.tensor("y").at(0) == 0);
}

TEST_CASE("an access outside its tensor is an error that names the kernel") {
    Step step = build_tt_linear_step({{2, 3}, {3, 2}, {1, 2, 2, 2, 1}}, 4, Flow::Btt);
    auto& work = std::get<Contraction>(step.kernels.front().work);
    SECTION("behind") {
        work.a.offset = 1;
    }
    SECTION("before") {
        work.b.offset = -1;
    }
    ReferenceMachine machine(step);
    CHECK_THROWS_WITH(machine.run_step(), Catch::Contains(step.kernels.front().name) && Catch::Contains("address"));
}

TEST_CASE("results that share a word and digits that miss their extent are errors") {
    Step step = build_tt_linear_step({{2, 3}, {3, 2}, {1, 2, 2, 2, 1}}, 4, Flow::Btt);
    auto& work = std::get<Contraction>(step.kernels.front().work);
    SECTION("shared word") {
        work.out.row = {{work.rows, 1}};
    }
    SECTION("missing digit") {
        work.out.row = {{work.rows - 1, work.cols}};
    }
    ReferenceMachine machine(step);
    CHECK_THROWS_AS(machine.run_step(), std::logic_error);
}
