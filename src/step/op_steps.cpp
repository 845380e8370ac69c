#include "contraflow/op_steps.h"

#include <string>

#include "step/attention.h"
#include "step/embedding.h"
#include "step/heads.h"
#include "step/layer_norm.h"
#include "step/linear.h"
#include "step/nonlinearity.h"
#include "step/step_builder.h"

namespace contraflow {
namespace {

// The intermediate results of a linear without a name, under the names of the vectors: btt.U and so on.
void add_flow_aliases(StepBuilder& builder, Flow flow) {
    if (flow == Flow::Btt) {
        for (const char* name : {"U", "Vt", "T", "dT", "dU", "dVt"}) {
            builder.add_alias(std::string("btt.") + name, builder.step().find(name));
        }
    }
    if (flow == Flow::Mm) {
        builder.add_alias("mm.W", builder.step().find("weight"));
        builder.add_alias("mm.dW", builder.step().find("d.weight"));
    }
}

using AddElementwise = void (*)(StepBuilder&, const std::string&, std::int64_t, std::int64_t, const Variable&,
                                const Variable&);

Step build_elementwise_step(std::int64_t rows, std::int64_t cols, const std::string& name, AddElementwise add_forward,
                            AddElementwise add_backward) {
    StepBuilder builder(rows);
    const Variable x = builder.add_activation("x", {rows, cols});
    const Variable y = builder.add_activation("y", {rows, cols});
    add_forward(builder, name, rows, cols, x, y);
    add_backward(builder, name, rows, cols, x, y);
    return builder.finish_operation();
}

}  // namespace

Step build_tt_linear_step(const TtShape& shape, std::int64_t rows, Flow flow) {
    StepBuilder builder(rows);
    const auto linear = make_linear(builder, "", shape, rows, flow);
    const Variable x = builder.add_activation("x", {rows, shape.cols()});
    const Variable y = builder.add_activation("y", {rows, shape.rows()});
    linear->forward(matrix(x.value, shape.cols()), matrix(y.value, shape.rows()));
    linear->backward(matrix(y.gradient, shape.rows()), matrix(x.gradient, shape.cols()));
    add_flow_aliases(builder, flow);
    return builder.finish_operation();
}

Step build_ttm_embedding_step(const TtmShape& shape, std::int64_t positions) {
    StepBuilder builder(positions);
    const auto table = make_ttm_table(builder, "", shape, positions);
    const Variable y = builder.add_activation("y", {positions, shape.hidden()});
    table->forward(y.value);
    table->backward(y.gradient);
    return builder.finish_operation();
}

Step build_layernorm_step(std::int64_t rows, std::int64_t cols, float eps) {
    StepBuilder builder(rows);
    LayerNorm layer_norm(builder, "", rows, cols, eps);
    const Variable x = builder.add_activation("x", {rows, cols});
    const Variable y = builder.add_activation("y", {rows, cols});
    layer_norm.forward(x.value, kNoTensor, y.value);
    layer_norm.backward(y.gradient, x.gradient);
    return builder.finish_operation();
}

Step build_softmax_masked_step(std::int64_t rows, std::int64_t cols) {
    StepBuilder builder(cols);
    const Variable x = builder.add_activation("x", {rows, cols});
    const Variable y = builder.add_activation("y", {rows, cols});
    add_softmax_forward(builder, "", "softmax", rows, cols, 1.0F, x, y);
    add_softmax_backward(builder, "", "dscores", rows, cols, 1.0F, x, y);
    return builder.finish_operation();
}

Step build_gelu_step(std::int64_t rows, std::int64_t cols) {
    return build_elementwise_step(rows, cols, "gelu", add_gelu_forward, add_gelu_backward);
}

Step build_tanh_step(std::int64_t rows, std::int64_t cols) {
    return build_elementwise_step(rows, cols, "tanh", add_tanh_forward, add_tanh_backward);
}

Step build_attention_step(std::int64_t positions, std::int64_t d_model, std::int64_t heads) {
    StepBuilder builder(positions);
    AttentionCore attention(builder, "", positions, d_model, heads);
    attention.forward();
    attention.backward();
    return builder.finish_operation();
}

Step build_mha_tt_step(const TtShape& shape, std::int64_t positions, std::int64_t heads, Flow flow) {
    StepBuilder builder(positions);
    const Variable x = builder.add_activation("x", {positions, shape.cols()});
    MultiHeadAttention attention(builder, "", "y", shape, positions, heads, flow);
    attention.forward(x.value);
    attention.backward(x.gradient, kNoTensor);
    return builder.finish_operation();
}

Step build_cross_entropy_step(std::int64_t rows, std::int64_t classes, std::int64_t first_row, std::int64_t row_count) {
    StepBuilder builder(rows);
    const Variable logits = builder.add_activation("logits", {rows, classes});
    builder.set_loss(builder.add_tensor("loss", {3}, TensorClass::Buffer));
    add_cross_entropy(builder, "", logits,
                      {rows, classes, builder.step().slot_labels_offset(), first_row, row_count, 0});
    return builder.finish_operation();
}

}  // namespace contraflow
