// Multi-head attention: head h owns columns h * dh .. (h + 1) * dh - 1 of q, k, v and the context.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "contraflow/config.h"
#include "step/linear.h"
#include "step/step_builder.h"

namespace contraflow {

// y = softmax over the columns of scale * x whose position is real in the sample, and back. REQUIRES: cols = seq_len.
void add_softmax_forward(StepBuilder& builder, const std::string& name, const std::string& op, std::int64_t rows,
                         std::int64_t cols, float scale, const Variable& x, const Variable& y);
void add_softmax_backward(StepBuilder& builder, const std::string& name, const std::string& op, std::int64_t rows,
                          std::int64_t cols, float scale, const Variable& x, const Variable& y);

// context = softmax(q k^T / sqrt(dh), padding keys masked) v, all heads of one kernel as its batch.
class AttentionCore {
public:
    // Adds the tensors q, k, v, prob, context and scratch under `name`. positions x d_model, heads divides d_model.
    AttentionCore(StepBuilder& builder, std::string name, std::int64_t positions, std::int64_t d_model,
                  std::int64_t heads);

    void forward();
    // From the gradient of the context to those of q, k and v.
    void backward();

    [[nodiscard]] const Variable& q() const { return q_; }
    [[nodiscard]] const Variable& k() const { return k_; }
    [[nodiscard]] const Variable& v() const { return v_; }
    [[nodiscard]] const Variable& context() const { return context_; }

private:
    // One head per batch: a column block of a positions x d_model matrix, and a matrix of head x query x key.
    [[nodiscard]] View head_columns(TensorId tensor) const;
    [[nodiscard]] View head_matrix(TensorId tensor) const;
    void add(Phase phase, const std::string& op, std::int64_t cols, std::int64_t depth, const View& out, const View& a,
             const View& b);

    StepBuilder& builder_;
    std::string name_;
    std::int64_t positions_, d_model_, heads_, head_size_;
    float scale_;
    Variable q_, k_, v_, probabilities_, context_;
    Variable scores_;  // before scaling and masking; its gradient includes the scale
};

// The four linears around it: y = o(context).
class MultiHeadAttention {
public:
    // Names: name.{q,k,v,o}; y becomes name.o unless `output_name` says otherwise.
    MultiHeadAttention(StepBuilder& builder, const std::string& name, const std::string& output_name,
                       const TtShape& shape, std::int64_t positions, std::int64_t heads, Flow flow);

    // x: positions x d_model.
    void forward(TensorId x);
    // dx = the sum over q, k and v (+ residual, unless it is kNoTensor).
    void backward(TensorId dx, TensorId residual);

    [[nodiscard]] const Variable& output() const { return output_; }

private:
    std::int64_t d_model_;
    AttentionCore core_;
    std::unique_ptr<Linear> q_, k_, v_, o_;
    Variable output_;
};

}  // namespace contraflow
