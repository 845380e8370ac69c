// Steps of a single operation, forward and backward, for checking the machine against vectors of that operation alone.
//
// They hold no DMA, loss store or update. Inputs are set before the step runs; all names below are found by Step::find.
// Tokens, labels and the real/padding flags stand in the sample buffer (Step::sample) at the offsets Step documents;
// its seq_len is stated at each function.
#pragma once

#include <cstdint>

#include "contraflow/step.h"
#include "contraflow/tt_shape.h"

namespace contraflow {

// y = x W^T + b with x rows x N. In: x, dy, core.k (Flow::Mm: weight, also mm.W), bias. Out: y, dx, dcore.k (Flow::Mm:
// dweight, also mm.dW), dbias; with Flow::Btt also btt.U, btt.Vt, btt.T, btt.dT, btt.dU, btt.dVt. seq_len = rows.
[[nodiscard]] Step build_tt_linear_step(const TtShape& shape, std::int64_t rows, Flow flow);

// Rows of a table in TTM format. In: core.k, dy, tokens. Out: y (positions x hidden), dcore.k. seq_len = positions.
[[nodiscard]] Step build_ttm_embedding_step(const TtmShape& shape, std::int64_t positions);

// In: x, gamma, beta, dy. Out: y, dx, dgamma, dbeta. seq_len = rows.
[[nodiscard]] Step build_layernorm_step(std::int64_t rows, std::int64_t cols, float eps);

// Softmax over the columns whose flag is 1. In: x, dy, real (cols). Out: y, dx. seq_len = cols.
[[nodiscard]] Step build_softmax_masked_step(std::int64_t rows, std::int64_t cols);

// In: x, dy. Out: y, dx. seq_len = rows.
[[nodiscard]] Step build_gelu_step(std::int64_t rows, std::int64_t cols);
[[nodiscard]] Step build_tanh_step(std::int64_t rows, std::int64_t cols);

// Heads over q, k, v (positions x d_model), scores scaled by 1 / sqrt(d_model / heads). In: q, k, v, dcontext, real.
// Out: prob (heads x positions x positions), context, dq, dk, dv (and dprob). seq_len = positions.
[[nodiscard]] Step build_attention_step(std::int64_t positions, std::int64_t d_model, std::int64_t heads);

// The attention layer with its four linears. In: x, dy, {q,k,v,o}.core.k (Flow::Mm: .weight), {q,k,v,o}.bias, real.
// Out: q, k, v, prob, context, y, dx and the gradient of each, "d" + name. seq_len = positions.
[[nodiscard]] Step build_mha_tt_step(const TtShape& shape, std::int64_t positions, std::int64_t heads, Flow flow);

// Mean cross entropy of rows first_row .. first_row + row_count - 1. In: logits, slot labels of the sample. Out: loss
// (words 0 and 2), dlogits. seq_len = rows.
[[nodiscard]] Step build_cross_entropy_step(std::int64_t rows, std::int64_t classes, std::int64_t first_row,
                                            std::int64_t row_count);

}  // namespace contraflow
