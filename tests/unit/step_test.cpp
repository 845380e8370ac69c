// The shape of the lowered step: MACs, names, tensors and dependences. Values are checked in reference_test.cpp.
#include "contraflow/step.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "contraflow/op_steps.h"
#include "contraflow/weights.h"
#include "reference/golden_vectors.h"

using namespace contraflow;

namespace {

// The defaults are the paper's model with two encoder blocks.
Config paper_config(Flow flow, int encoders = 2) {
    Config config;
    config.network.flow = flow;
    config.network.encoders = encoders;
    return config;
}

Config small_config(Flow flow) {
    Config config = golden::model_config(golden::load("model_tiny/trace.safetensors"));
    config.network.flow = flow;
    return config;
}

const std::vector<Flow> kFlows{Flow::Btt, Flow::Tt, Flow::Mm};

std::string name_of(Flow flow) {
    return flow == Flow::Btt ? "btt" : flow == Flow::Tt ? "tt" : "mm";
}

std::int64_t macs_of(const Step& step, Phase phase) {
    std::int64_t macs = 0;
    for (const Kernel& kernel : step.kernels) {
        macs += kernel.phase == phase ? kernel.macs() : 0;
    }
    return macs;
}

std::int64_t macs_of(const Step& step) {
    return macs_of(step, Phase::Forward) + macs_of(step, Phase::Backward) + macs_of(step, Phase::Update);
}

// Words of the results of a phase that are neither in `results` nor the gradient of a parameter.
std::int64_t intermediate_words(const Step& step, Phase phase, const std::set<std::string>& results) {
    std::set<TensorId> written;
    for (const Kernel& kernel : step.kernels) {
        if (kernel.phase == phase) {
            const TensorUses uses = tensor_uses(step, kernel);
            written.insert(uses.writes.begin(), uses.writes.end());
        }
    }
    std::int64_t words = 0;
    for (const TensorId id : written) {
        const Tensor& tensor = step.tensor(id);
        const bool counts = tensor.tensor_class != TensorClass::Gradient && results.count(tensor.name) == 0;
        words += counts ? tensor.words() : 0;
    }
    return words;
}

const Kernel& kernel_named(const Step& step, const std::string& name) {
    const auto kernel =
        std::find_if(step.kernels.begin(), step.kernels.end(), [&](const Kernel& each) { return each.name == name; });
    if (kernel == step.kernels.end()) {
        throw std::out_of_range("no kernel is called " + name);
    }
    return *kernel;
}

std::uint32_t index_of_kernel(const Step& step, const std::string& name) {
    return static_cast<std::uint32_t>(&kernel_named(step, name) - step.kernels.data());
}

// For each kernel the set of all kernels before it, following the dependences.
std::vector<std::set<std::uint32_t>> predecessors(const Step& step) {
    const auto dependences = kernel_dependences(step);
    std::vector<std::set<std::uint32_t>> before(step.kernels.size());
    for (std::size_t kernel = 0; kernel < before.size(); ++kernel) {
        for (const std::uint32_t dependence : dependences[kernel]) {
            before[kernel].insert(dependence);
            before[kernel].insert(before[dependence].begin(), before[dependence].end());
        }
    }
    return before;
}

}  // namespace

TEST_CASE("a step of the paper's two-block model has the stated number of MACs in each flow") {
    CHECK(macs_of(build_training_step(paper_config(Flow::Btt))) == 63'023'616);
    CHECK(macs_of(build_training_step(paper_config(Flow::Tt))) == 78'513'408);
    CHECK(macs_of(build_training_step(paper_config(Flow::Mm))) == 756'877'824);
}

TEST_CASE("a whole step's backward pass has twice the MACs of its forward pass and the update none") {
    for (const Flow flow : kFlows) {
        const Step step = build_training_step(paper_config(flow));
        CHECK(macs_of(step, Phase::Backward) == 2 * macs_of(step, Phase::Forward));
        CHECK(macs_of(step, Phase::Update) == 0);
    }
}

TEST_CASE("every TT linear vector has the MACs and intermediate words of its metadata in each flow") {
    for (const std::string& path : golden::files_of("tt_linear")) {
        const TensorFile file = golden::load(path);
        for (const Flow flow : kFlows) {
            INFO(path << ", " << name_of(flow));
            const Step step = build_tt_linear_step(golden::tt_shape(file), golden::integer(file, "S"), flow);
            const std::string key = name_of(flow);
            CHECK(macs_of(step, Phase::Forward) == golden::integer(file, key + "_macs_fp"));
            CHECK(macs_of(step, Phase::Backward) == golden::integer(file, key + "_macs_bp"));
            CHECK(intermediate_words(step, Phase::Forward, {"y"}) == golden::integer(file, key + "_inter_fp"));
            CHECK(intermediate_words(step, Phase::Backward, {"d.x"}) == golden::integer(file, key + "_inter_bp"));
        }
    }
}

TEST_CASE("a linear layer of the paper's model has the stated MACs and intermediates") {
    const Config config;
    const Step btt = build_tt_linear_step(config.tt_model(), 32, Flow::Btt);
    const Step tt = build_tt_linear_step(config.tt_model(), 32, Flow::Tt);
    const Step mm = build_tt_linear_step(config.tt_model(), 32, Flow::Mm);
    CHECK(macs_of(btt, Phase::Forward) == 838'656);
    CHECK(macs_of(tt, Phase::Forward) == 1'253'376);
    CHECK(macs_of(mm, Phase::Forward) == 18'874'368);
    CHECK(intermediate_words(btt, Phase::Forward, {"y"}) == 21'120);
    CHECK(intermediate_words(tt, Phase::Forward, {"y"}) == 55'680);
}

TEST_CASE("the parameters of the step are those of the checkpoints, in name and shape") {
    for (const Flow flow : kFlows) {
        const Config config = paper_config(flow);
        const Step step = build_training_step(config);
        std::map<std::string, std::vector<std::int64_t>> expected;
        for (const ParameterSpec& spec : parameter_specs(config)) {
            expected[spec.name] = spec.shape;
        }
        std::map<std::string, std::vector<std::int64_t>> built;
        for (const Tensor& tensor : step.tensors) {
            if (tensor.tensor_class == TensorClass::Parameter) {
                built[tensor.name] = tensor.shape;
            }
        }
        CHECK(built == expected);
    }
}

TEST_CASE("every parameter has a gradient of its shape and one update by it") {
    for (const Flow flow : kFlows) {
        const Step step = build_training_step(small_config(flow));
        std::map<TensorId, TensorId> updated;
        for (const Kernel& kernel : step.kernels) {
            if (kernel.phase == Phase::Update) {
                for (const VectorSegment& segment : std::get<VectorKernel>(kernel.work).segments) {
                    CHECK(segment.op == VectorOp::SgdUpdate);
                    CHECK(segment.rows * segment.cols == step.tensor(segment.in.at(0).tensor).words());
                    CHECK(updated.emplace(segment.in.at(0).tensor, segment.in.at(1).tensor).second);
                }
            }
        }
        std::size_t parameters = 0;
        for (const Tensor& tensor : step.tensors) {
            if (tensor.tensor_class == TensorClass::Parameter) {
                ++parameters;
                const TensorId gradient = step.find("d." + tensor.name);
                INFO(tensor.name);
                REQUIRE(gradient != kNoTensor);
                CHECK(step.tensor(gradient).shape == tensor.shape);
                CHECK(updated.at(step.find(tensor.name)) == gradient);
            }
        }
        CHECK(updated.size() == parameters);
    }
}

TEST_CASE("no tensor is read before it is written, parameters apart, and none is left unused") {
    for (const Flow flow : kFlows) {
        const Step step = build_training_step(small_config(flow));
        std::set<TensorId> written;
        std::set<TensorId> touched;
        for (std::size_t i = 0; i < step.tensors.size(); ++i) {
            if (step.tensors[i].tensor_class == TensorClass::Parameter) {
                written.insert(TensorId{static_cast<std::uint32_t>(i)});
            }
        }
        for (const Kernel& kernel : step.kernels) {
            const TensorUses uses = tensor_uses(step, kernel);
            for (const auto* list : {&uses.reads, &uses.read_modify_writes}) {
                for (const TensorId id : *list) {
                    INFO(kernel.name << " reads " << step.tensor(id).name);
                    CHECK(written.count(id) == 1);
                    touched.insert(id);
                }
            }
            written.insert(uses.writes.begin(), uses.writes.end());
        }
        touched.insert(written.begin(), written.end());
        CHECK(touched.size() == step.tensors.size());
    }
}

TEST_CASE("names of tensors and kernels are unique") {
    for (const Flow flow : kFlows) {
        const Step step = build_training_step(paper_config(flow));
        std::set<std::string> tensors;
        for (const Tensor& tensor : step.tensors) {
            CHECK(tensors.insert(tensor.name).second);
        }
        for (const TensorAlias& alias : step.aliases) {
            CHECK(tensors.insert(alias.name).second);
        }
        std::set<std::string> kernels;
        for (const Kernel& kernel : step.kernels) {
            CHECK(kernels.insert(kernel.name).second);
        }
    }
}

TEST_CASE("the gradients of token rows and of positions are one tensor") {
    const Step step = build_training_step(small_config(Flow::Btt));
    CHECK(step.find("d.embed.token") == step.find("d.embed.pos"));
    CHECK(step.find("d.embed.pos") != kNoTensor);
    CHECK(step.find("d.embed.nothing") == kNoTensor);
}

TEST_CASE("a linear with one core per side needs no merges: its halves are its cores") {
    const Step step = build_tt_linear_step({{20}, {28}, {1, 4, 1}}, 6, Flow::Btt);
    CHECK(step.find("btt.U") == step.find("core.0"));
    CHECK(step.find("btt.dVt") == step.find("dcore.1"));
    for (const Kernel& kernel : step.kernels) {
        CHECK(kernel.kernel_class != KernelClass::Merge);
    }
}

TEST_CASE("the kernels of a linear have the documented names and classes") {
    const Step step = build_training_step(paper_config(Flow::Btt));
    const std::string q = "encoder.0.attn.q.";
    const std::map<std::string, KernelClass> expected{
        {"sample.fwd.load", KernelClass::Dma},
        {"embed.token.fwd.Y", KernelClass::Embedding},
        {"embed.ln.fwd", KernelClass::Vector},
        {q + "fwd.U12", KernelClass::Merge},
        {q + "fwd.U", KernelClass::Merge},
        {q + "fwd.V56", KernelClass::Merge},
        {q + "fwd.Vt", KernelClass::Merge},
        {q + "fwd.T", KernelClass::Apply},
        {q + "fwd.Y", KernelClass::Apply},
        {q + "bwd.dT", KernelClass::Apply},
        {q + "bwd.dX", KernelClass::Apply},
        {q + "bwd.dU", KernelClass::CoreGrad},
        {q + "bwd.dVt", KernelClass::CoreGrad},
        {q + "bwd.dU12", KernelClass::CoreGrad},
        {q + "bwd.dV56", KernelClass::CoreGrad},
        {q + "bwd.dcore.0", KernelClass::CoreGrad},
        {q + "bwd.dcore.5", KernelClass::CoreGrad},
        {q + "bwd.dbias", KernelClass::Vector},
        {q + "upd", KernelClass::Update},
        {"encoder.0.attn.fwd.scores", KernelClass::Attention},
        {"encoder.0.attn.fwd.softmax", KernelClass::Vector},
        {"encoder.0.attn.fwd.context", KernelClass::Attention},
        {"encoder.0.ln1.fwd", KernelClass::Vector},
        {"encoder.1.ffn.gelu.fwd", KernelClass::Vector},
        {"intent.tanh.fwd", KernelClass::Vector},
        {"intent.out.fwd.Y", KernelClass::Dense},
        {"intent.bwd.loss", KernelClass::Loss},
        {"slot.bwd.loss", KernelClass::Loss},
        {"loss.bwd.store", KernelClass::Dma},
        {"embed.token.bwd.dcore.1", KernelClass::Embedding},
        {"embed.token.upd", KernelClass::Update},
    };
    for (const auto& [name, kernel_class] : expected) {
        INFO(name);
        CHECK(kernel_named(step, name).kernel_class == kernel_class);
    }
}

TEST_CASE("bytes count each operand and result word once") {
    const Step step = build_tt_linear_step({{2, 3}, {3, 2}, {1, 2, 4, 2, 1}}, 5, Flow::Btt);
    // y (5 x 6) = T (5 x 4) U^T (6 x 4) + bias (6)
    CHECK(kernel_named(step, "fwd.Y").bytes() == 4 * (30 + 20 + 24 + 6));
    CHECK(kernel_named(step, "bwd.dbias").bytes() == 4 * (30 + 6));
    const Step training = build_training_step(small_config(Flow::Btt));
    CHECK(kernel_named(training, "sample.fwd.load").bytes() == 4 * (3 * 6 + 2));
}

TEST_CASE("the uses of a kernel tell reads, writes and accumulation apart, and tokens read the sample") {
    const Step step = build_training_step(small_config(Flow::Btt));
    const auto ids = [&](std::vector<std::string> names) {
        std::vector<TensorId> result;
        for (const std::string& name : names) {
            result.push_back(step.find(name));
        }
        std::sort(result.begin(), result.end());
        return result;
    };
    const TensorUses q = tensor_uses(step, kernel_named(step, "encoder.0.attn.q.bwd.dX"));
    CHECK(q.reads == ids({"encoder.0.attn.q.dT", "encoder.0.attn.q.Vt", "d.encoder.0.attn.o"}));
    CHECK(q.writes == ids({"d.embed.ln"}));
    CHECK(q.read_modify_writes.empty());
    const TensorUses k = tensor_uses(step, kernel_named(step, "encoder.0.attn.k.bwd.dX"));
    CHECK(k.read_modify_writes == ids({"d.embed.ln"}));
    CHECK(k.writes.empty());
    const TensorUses rows = tensor_uses(step, kernel_named(step, "embed.token.fwd.P2"));
    CHECK(rows.reads == ids({"sample", "embed.token.core.0", "embed.token.core.1"}));
    const TensorUses loss = tensor_uses(step, kernel_named(step, "slot.bwd.loss"));
    CHECK(loss.read_modify_writes == ids({"loss"}));
}

TEST_CASE("dependences order every two kernels that touch a tensor unless both only read it") {
    for (const Flow flow : kFlows) {
        const Step step = build_training_step(small_config(flow));
        const auto before = predecessors(step);
        std::vector<std::set<TensorId>> reads(step.kernels.size());
        std::vector<std::set<TensorId>> writes(step.kernels.size());
        for (std::size_t i = 0; i < step.kernels.size(); ++i) {
            const TensorUses uses = tensor_uses(step, step.kernels[i]);
            reads[i].insert(uses.reads.begin(), uses.reads.end());
            for (const auto* list : {&uses.writes, &uses.read_modify_writes}) {
                reads[i].insert(list->begin(), list->end());
                writes[i].insert(list->begin(), list->end());
            }
        }
        const auto share = [](const std::set<TensorId>& left, const std::set<TensorId>& right) {
            return std::any_of(left.begin(), left.end(), [&](TensorId id) { return right.count(id) != 0; });
        };
        std::size_t unordered = 0;
        for (std::size_t later = 0; later < step.kernels.size(); ++later) {
            for (std::uint32_t earlier = 0; earlier < later; ++earlier) {
                const bool conflict = share(writes[earlier], reads[later]) || share(reads[earlier], writes[later]);
                unordered += conflict && before[later].count(earlier) == 0 ? 1 : 0;
            }
        }
        CHECK(unordered == 0);
    }
}

TEST_CASE("dependences are transitively reduced") {
    const Step step = build_training_step(small_config(Flow::Btt));
    const auto dependences = kernel_dependences(step);
    const auto before = predecessors(step);
    std::size_t redundant = 0;
    for (const auto& list : dependences) {
        CHECK(std::is_sorted(list.begin(), list.end()));
        for (const std::uint32_t later : list) {
            for (const std::uint32_t earlier : list) {
                redundant += before[later].count(earlier);
            }
        }
    }
    CHECK(redundant == 0);
}

TEST_CASE("the merges of both halves wait for nothing, and no gradient of a core delays the way to the input") {
    const Step step = build_training_step(small_config(Flow::Btt));
    const auto before = predecessors(step);
    CHECK(before[index_of_kernel(step, "encoder.0.ffn.fc1.fwd.U12")].empty());
    CHECK(before[index_of_kernel(step, "encoder.0.ffn.fc1.fwd.V56")].empty());
    for (const std::uint32_t kernel : before[index_of_kernel(step, "embed.ln.bwd.dX")]) {
        CHECK(step.kernels[kernel].kernel_class != KernelClass::CoreGrad);
    }
}

TEST_CASE("an update waits for every kernel that reads the old parameter") {
    const Step step = build_training_step(small_config(Flow::Btt));
    const auto before = predecessors(step);
    const auto& waits = before[index_of_kernel(step, "encoder.0.attn.q.upd")];
    for (const char* reader : {"fwd.U", "fwd.Vt", "fwd.Y", "bwd.dU12", "bwd.dcore.0", "bwd.dcore.5", "bwd.dbias"}) {
        INFO(reader);
        CHECK(waits.count(index_of_kernel(step, std::string("encoder.0.attn.q.") + reader)) == 1);
    }
}

TEST_CASE("more blocks, a wider feed-forward layer and other numbers of cores lower to steps of matching size") {
    Config config = paper_config(Flow::Btt, 4);
    config.network.d_ff = 3072;
    config.tt.ffn_modes = {12, 16, 16};
    const Step step = build_training_step(config);
    CHECK(step.tensor(step.find("encoder.3.ffn.gelu")).shape == std::vector<std::int64_t>{32, 3072});
    CHECK(step.tensor(step.find("encoder.3.ffn.fc2")).shape == std::vector<std::int64_t>{32, 768});
    CHECK(macs_of(step, Phase::Backward) == 2 * macs_of(step, Phase::Forward));
    config.tt.out_modes = {32, 24};
    config.tt.in_modes = {24, 32};
    config.tt.ffn_modes = {64, 48};
    CHECK(macs_of(build_training_step(config), Phase::Backward) ==
          2 * macs_of(build_training_step(config), Phase::Forward));
}
