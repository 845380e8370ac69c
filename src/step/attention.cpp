#include "step/attention.h"

#include <cmath>
#include <utility>

namespace contraflow {

void add_softmax_forward(StepBuilder& builder, const std::string& name, const std::string& op, std::int64_t rows,
                         std::int64_t cols, float scale, const Variable& x, const Variable& y) {
    builder.add_kernel(name, Phase::Forward, op, KernelClass::Vector,
                       vector_segment(VectorOp::SoftmaxForward, rows, cols,
                                      {matrix_operand(x.value, cols),
                                       row_operand(builder.step().sample, builder.step().real_offset())},
                                      {matrix_operand(y.value, cols)}, scale));
}

void add_softmax_backward(StepBuilder& builder, const std::string& name, const std::string& op, std::int64_t rows,
                          std::int64_t cols, float scale, const Variable& x, const Variable& y) {
    builder.add_kernel(name, Phase::Backward, op, KernelClass::Vector,
                       vector_segment(VectorOp::SoftmaxBackward, rows, cols,
                                      {matrix_operand(y.gradient, cols), matrix_operand(y.value, cols)},
                                      {matrix_operand(x.gradient, cols)}, scale));
}

AttentionCore::AttentionCore(StepBuilder& builder, std::string name, std::int64_t positions, std::int64_t d_model,
                             std::int64_t heads)
    : builder_(builder),
      name_(std::move(name)),
      positions_(positions),
      d_model_(d_model),
      heads_(heads),
      head_size_(d_model / heads),
      scale_(static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_size_)))) {
    q_ = builder_.add_activation(join(name_, "q"), {positions, d_model});
    k_ = builder_.add_activation(join(name_, "k"), {positions, d_model});
    v_ = builder_.add_activation(join(name_, "v"), {positions, d_model});
    scores_ = {
        builder_.add_tensor(join(name_, "scores"), {heads, positions, positions}, TensorClass::Scratch),
        builder_.add_tensor(join("d", join(name_, "scores")), {heads, positions, positions}, TensorClass::Scratch)};
    probabilities_ = builder_.add_activation(join(name_, "prob"), {heads, positions, positions});
    context_ = builder_.add_activation(join(name_, "context"), {positions, d_model});
}

void AttentionCore::forward() {
    add(Phase::Forward, "scores", positions_, head_size_, head_matrix(scores_.value), head_columns(q_.value),
        head_columns(k_.value).transposed());
    add_softmax_forward(builder_, name_, "softmax", heads_ * positions_, positions_, scale_, scores_, probabilities_);
    add(Phase::Forward, "context", head_size_, positions_, head_columns(context_.value),
        head_matrix(probabilities_.value), head_columns(v_.value));
}

void AttentionCore::backward() {
    add(Phase::Backward, "dprob", positions_, head_size_, head_matrix(probabilities_.gradient),
        head_columns(context_.gradient), head_columns(v_.value).transposed());
    add_softmax_backward(builder_, name_, "dscores", heads_ * positions_, positions_, scale_, scores_, probabilities_);
    add(Phase::Backward, "dv", head_size_, positions_, head_columns(v_.gradient),
        head_matrix(probabilities_.value).transposed(), head_columns(context_.gradient));
    add(Phase::Backward, "dq", head_size_, positions_, head_columns(q_.gradient), head_matrix(scores_.gradient),
        head_columns(k_.value));
    add(Phase::Backward, "dk", head_size_, positions_, head_columns(k_.gradient),
        head_matrix(scores_.gradient).transposed(), head_columns(q_.value));
}

View AttentionCore::head_columns(TensorId tensor) const {
    View view = matrix(tensor, d_model_);
    view.batch_stride = head_size_;
    return view;
}

View AttentionCore::head_matrix(TensorId tensor) const {
    View view = matrix(tensor, positions_);
    view.batch_stride = positions_ * positions_;
    return view;
}

void AttentionCore::add(Phase phase, const std::string& op, std::int64_t cols, std::int64_t depth, const View& out,
                        const View& a, const View& b) {
    builder_.add_kernel(name_, phase, op, KernelClass::Attention,
                        product({heads_, positions_, cols, depth}, out, a, b));
}

MultiHeadAttention::MultiHeadAttention(StepBuilder& builder, const std::string& name, const std::string& output_name,
                                       const TtShape& shape, std::int64_t positions, std::int64_t heads, Flow flow)
    : d_model_(shape.rows()),
      core_(builder, name, positions, shape.rows(), heads),
      q_(make_linear(builder, join(name, "q"), shape, positions, flow)),
      k_(make_linear(builder, join(name, "k"), shape, positions, flow)),
      v_(make_linear(builder, join(name, "v"), shape, positions, flow)),
      o_(make_linear(builder, join(name, "o"), shape, positions, flow)),
      output_(builder.add_activation(output_name, {positions, shape.rows()})) {}

void MultiHeadAttention::forward(TensorId x) {
    q_->forward(matrix(x, d_model_), matrix(core_.q().value, d_model_));
    k_->forward(matrix(x, d_model_), matrix(core_.k().value, d_model_));
    v_->forward(matrix(x, d_model_), matrix(core_.v().value, d_model_));
    core_.forward();
    o_->forward(matrix(core_.context().value, d_model_), matrix(output_.value, d_model_));
}

void MultiHeadAttention::backward(TensorId dx, TensorId residual) {
    o_->backward(matrix(output_.gradient, d_model_), matrix(core_.context().gradient, d_model_));
    core_.backward();
    // The three paths meet in x: the first writes its gradient, the others add to it.
    const View sum = matrix(dx, d_model_);
    q_->backward(matrix(core_.q().gradient, d_model_), sum, matrix(residual, d_model_));
    k_->backward(matrix(core_.k().gradient, d_model_), sum, sum);
    v_->backward(matrix(core_.v().gradient, d_model_), sum, sum);
}

}  // namespace contraflow
