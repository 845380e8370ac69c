#include "step/layer_norm.h"

#include <utility>

namespace contraflow {

LayerNorm::LayerNorm(StepBuilder& builder, std::string name, std::int64_t rows, std::int64_t cols, float eps)
    : builder_(builder), name_(std::move(name)), rows_(rows), cols_(cols), eps_(eps) {
    gamma_ = builder_.add_parameter(name_, "gamma", {cols});
    beta_ = builder_.add_parameter(name_, "beta", {cols});
    xhat_ = builder_.add_tensor(join(name_, "xhat"), {rows, cols}, TensorClass::Activation);
    rstd_ = builder_.add_tensor(join(name_, "rstd"), {rows}, TensorClass::Activation);
}

void LayerNorm::forward(TensorId x, TensorId residual, TensorId y) {
    // The sum is needed three times within the kernel (mean, variance, result), so it is written once.
    VectorOperand sum = no_operand();
    if (residual != kNoTensor) {
        sum = matrix_operand(builder_.add_tensor(join(name_, "z"), {rows_, cols_}, TensorClass::Scratch), cols_);
    }
    const VectorOperand addend = residual == kNoTensor ? no_operand() : matrix_operand(residual, cols_);
    builder_.add_kernel(
        name_, Phase::Forward, "", KernelClass::Vector,
        vector_segment(VectorOp::LayerNormForward, rows_, cols_,
                       {matrix_operand(x, cols_), addend, row_operand(gamma_.value), row_operand(beta_.value)},
                       {sum, matrix_operand(xhat_, cols_), column_operand(rstd_), matrix_operand(y, cols_)}, eps_));
}

void LayerNorm::backward(TensorId dy, TensorId dz) {
    builder_.add_kernel(name_, Phase::Backward, "dX", KernelClass::Vector,
                        vector_segment(VectorOp::LayerNormBackward, rows_, cols_,
                                       {matrix_operand(dy, cols_), matrix_operand(xhat_, cols_), column_operand(rstd_),
                                        row_operand(gamma_.value)},
                                       {matrix_operand(dz, cols_)}));
    builder_.add_kernel(name_, Phase::Backward, "dgamma_dbeta", KernelClass::Vector,
                        vector_segment(VectorOp::LayerNormParameters, rows_, cols_,
                                       {matrix_operand(dy, cols_), matrix_operand(xhat_, cols_)},
                                       {row_operand(gamma_.gradient), row_operand(beta_.gradient)}));
}

}  // namespace contraflow
