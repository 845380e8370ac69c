#include "step/nonlinearity.h"

namespace contraflow {
namespace {

void add_elementwise(StepBuilder& builder, const std::string& name, Phase phase, VectorOp op, std::int64_t rows,
                     std::int64_t cols, const std::vector<TensorId>& in, TensorId out) {
    std::vector<VectorOperand> operands;
    for (const TensorId id : in) {
        operands.push_back(matrix_operand(id, cols));
    }
    builder.add_kernel(name, phase, "", KernelClass::Vector,
                       vector_segment(op, rows, cols, std::move(operands), {matrix_operand(out, cols)}));
}

}  // namespace

void add_gelu_forward(StepBuilder& builder, const std::string& name, std::int64_t rows, std::int64_t cols,
                      const Variable& x, const Variable& y) {
    add_elementwise(builder, name, Phase::Forward, VectorOp::GeluForward, rows, cols, {x.value}, y.value);
}

void add_gelu_backward(StepBuilder& builder, const std::string& name, std::int64_t rows, std::int64_t cols,
                       const Variable& x, const Variable& y) {
    add_elementwise(builder, name, Phase::Backward, VectorOp::GeluBackward, rows, cols, {y.gradient, x.value},
                    x.gradient);
}

void add_tanh_forward(StepBuilder& builder, const std::string& name, std::int64_t rows, std::int64_t cols,
                      const Variable& x, const Variable& y) {
    add_elementwise(builder, name, Phase::Forward, VectorOp::TanhForward, rows, cols, {x.value}, y.value);
}

// tanh' is taken from the result, so x need not be kept.
void add_tanh_backward(StepBuilder& builder, const std::string& name, std::int64_t rows, std::int64_t cols,
                       const Variable& x, const Variable& y) {
    add_elementwise(builder, name, Phase::Backward, VectorOp::TanhBackward, rows, cols, {y.gradient, y.value},
                    x.gradient);
}

}  // namespace contraflow
