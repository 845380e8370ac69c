#include "step/encoder.h"

#include "step/nonlinearity.h"

namespace contraflow {

EncoderBlock::EncoderBlock(StepBuilder& builder, const Config& config, int index, const Variable& x)
    : builder_(builder),
      name_("encoder." + std::to_string(index)),
      positions_(config.network.seq_len),
      d_model_(config.network.d_model),
      d_ff_(config.network.d_ff),
      x_(x),
      attention_(builder, name_ + ".attn", name_ + ".attn.o", config.tt_model(), positions_, config.network.heads,
                 config.network.flow),
      ln1_(builder, name_ + ".ln1", positions_, d_model_, static_cast<float>(config.network.ln_eps)),
      fc1_(make_linear(builder, name_ + ".ffn.fc1", config.tt_fc1(), positions_, config.network.flow)),
      fc2_(make_linear(builder, name_ + ".ffn.fc2", config.tt_fc2(), positions_, config.network.flow)),
      ln2_(builder, name_ + ".ln2", positions_, d_model_, static_cast<float>(config.network.ln_eps)),
      ln1_out_(builder.add_activation(name_ + ".ln1", {positions_, d_model_})),
      fc1_out_(builder.add_activation(name_ + ".ffn.fc1", {positions_, d_ff_})),
      gelu_out_(builder.add_activation(name_ + ".ffn.gelu", {positions_, d_ff_})),
      fc2_out_(builder.add_activation(name_ + ".ffn.fc2", {positions_, d_model_})),
      ln2_out_(builder.add_activation(name_ + ".ln2", {positions_, d_model_})) {}

void EncoderBlock::forward() {
    attention_.forward(x_.value);
    ln1_.forward(attention_.output().value, x_.value, ln1_out_.value);
    fc1_->forward(matrix(ln1_out_.value, d_model_), matrix(fc1_out_.value, d_ff_));
    add_gelu_forward(builder_, name_ + ".ffn.gelu", positions_, d_ff_, fc1_out_, gelu_out_);
    fc2_->forward(matrix(gelu_out_.value, d_ff_), matrix(fc2_out_.value, d_model_));
    ln2_.forward(fc2_out_.value, ln1_out_.value, ln2_out_.value);
}

void EncoderBlock::backward() {
    // The gradient of a sum goes to both addends: fc2's is also LN1's residual part, attn.o's that of x.
    ln2_.backward(ln2_out_.gradient, fc2_out_.gradient);
    fc2_->backward(matrix(fc2_out_.gradient, d_model_), matrix(gelu_out_.gradient, d_ff_));
    add_gelu_backward(builder_, name_ + ".ffn.gelu", positions_, d_ff_, fc1_out_, gelu_out_);
    fc1_->backward(matrix(fc1_out_.gradient, d_ff_), matrix(ln1_out_.gradient, d_model_),
                   matrix(fc2_out_.gradient, d_model_));
    ln1_.backward(ln1_out_.gradient, attention_.output().gradient);
    attention_.backward(x_.gradient, attention_.output().gradient);
}

}  // namespace contraflow
