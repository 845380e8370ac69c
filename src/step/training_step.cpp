// The whole training step: sample in, forward, loss out, backward, update.
#include <memory>
#include <vector>

#include "contraflow/step.h"
#include "step/embedding.h"
#include "step/encoder.h"
#include "step/heads.h"
#include "step/step_builder.h"

namespace contraflow {
namespace {

void add_sample_load(StepBuilder& builder) {
    const Step& step = builder.step();
    DmaTransfer load;
    load.tensor = step.sample;
    load.words = step.sample_words();
    load.dram_address = kSampleDramAddress;
    builder.add_kernel("sample", Phase::Forward, "load", KernelClass::Dma, load);
}

// p = p - lr * gradient: one kernel per module, one segment per parameter.
void add_updates(StepBuilder& builder, float learning_rate) {
    for (const ParameterGroup& group : builder.parameter_groups()) {
        VectorKernel update;
        for (const Variable& parameter : group.parameters) {
            const Tensor& tensor = builder.step().tensor(parameter.value);
            const std::int64_t cols = row_words(tensor);
            const VectorOperand value = matrix_operand(parameter.value, cols);
            update.segments.push_back(vector_segment(VectorOp::SgdUpdate, tensor.words() / cols, cols,
                                                     {value, matrix_operand(parameter.gradient, cols)}, {value},
                                                     learning_rate));
        }
        builder.add_kernel(group.module, Phase::Update, "", KernelClass::Update, std::move(update));
    }
}

}  // namespace

Step build_training_step(const Config& config) {
    StepBuilder builder(config.network.seq_len);

    Embedding embedding(builder, config);
    std::vector<std::unique_ptr<EncoderBlock>> blocks;
    Variable x = embedding.output();
    for (int index = 0; index < config.network.encoders; ++index) {
        blocks.push_back(std::make_unique<EncoderBlock>(builder, config, index, x));
        x = blocks.back()->output();
    }
    Heads heads(builder, config, x);

    add_sample_load(builder);
    embedding.forward();
    for (const auto& block : blocks) {
        block->forward();
    }
    heads.forward();

    heads.backward();
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
        (*block)->backward();
    }
    embedding.backward();

    add_updates(builder, static_cast<float>(config.train.lr));
    return builder.finish();
}

}  // namespace contraflow
