// One encoder block, post-LN: a = LN1(x + o(MHA(x))), y = LN2(a + fc2(gelu(fc1(a)))).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "contraflow/config.h"
#include "step/attention.h"
#include "step/layer_norm.h"
#include "step/linear.h"
#include "step/step_builder.h"

namespace contraflow {

class EncoderBlock {
public:
    // x: the block's input, positions x d_model.
    EncoderBlock(StepBuilder& builder, const Config& config, int index, const Variable& x);

    void forward();
    // REQUIRES: the gradient of output() is complete. Completes the gradient of x.
    void backward();

    [[nodiscard]] const Variable& output() const { return ln2_out_; }

private:
    StepBuilder& builder_;
    std::string name_;
    std::int64_t positions_, d_model_, d_ff_;
    Variable x_;
    MultiHeadAttention attention_;
    LayerNorm ln1_;
    std::unique_ptr<Linear> fc1_, fc2_;
    LayerNorm ln2_;
    Variable ln1_out_, fc1_out_, gelu_out_, fc2_out_, ln2_out_;
};

}  // namespace contraflow
