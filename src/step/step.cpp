#include "contraflow/step.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>

namespace contraflow {
namespace {

std::int64_t product_of_extents(const IndexMap& map, bool with_broadcast) {
    std::int64_t product = 1;
    for (const Digit& digit : map) {
        product *= (with_broadcast || digit.stride != 0) ? digit.extent : 1;
    }
    return product;
}

// Distinct words of a contraction operand. A slice chosen by a token counts once per batch.
std::int64_t distinct_words(const Access& access, std::int64_t batch) {
    if (access.tensor == kNoTensor) {
        return 0;
    }
    const std::int64_t per_batch = product_of_extents(access.row, false) * product_of_extents(access.col, false) *
                                   product_of_extents(access.depth, false);
    const bool differs_by_batch = access.token.modulus != 0 || product_of_extents(access.batch, false) != 1;
    return per_batch * (differs_by_batch ? batch : 1);
}

std::int64_t words_touched(const Contraction& c) {
    return distinct_words(c.a, c.batch) + distinct_words(c.b, c.batch) + distinct_words(c.out, c.batch) +
           distinct_words(c.bias, c.batch) + distinct_words(c.residual, c.batch);
}

std::int64_t words_touched(const VectorKernel& kernel) {
    std::int64_t words = 0;
    for (const VectorSegment& segment : kernel.segments) {
        for (std::size_t i = 0; i < segment.in.size(); ++i) {
            words += segment.in[i].tensor == kNoTensor ? 0 : words_of(segment, input_shape(segment.op, i));
        }
        for (std::size_t i = 0; i < segment.out.size(); ++i) {
            words += segment.out[i].tensor == kNoTensor ? 0 : words_of(segment, output_shape(segment.op, i));
        }
    }
    return words;
}

std::int64_t words_touched(const DmaTransfer& transfer) {
    return transfer.words;
}

}  // namespace

std::int64_t Tensor::words() const {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

OperandShape input_shape(VectorOp op, std::size_t index) {
    switch (op) {
        case VectorOp::LayerNormForward:  // x, residual, gamma, beta
            return index < 2 ? OperandShape::Matrix : OperandShape::Row;
        case VectorOp::LayerNormBackward:  // dy, xhat, rstd, gamma
            return index < 2 ? OperandShape::Matrix : index == 2 ? OperandShape::Column : OperandShape::Row;
        case VectorOp::SoftmaxForward:  // scores, real
            return index == 0 ? OperandShape::Matrix : OperandShape::Row;
        case VectorOp::CrossEntropy:  // logits, labels, words
            return index == 0 ? OperandShape::Matrix : index == 1 ? OperandShape::Column : OperandShape::Word;
        case VectorOp::LayerNormParameters:
        case VectorOp::SoftmaxBackward:
        case VectorOp::GeluForward:
        case VectorOp::GeluBackward:
        case VectorOp::TanhForward:
        case VectorOp::TanhBackward:
        case VectorOp::ColumnSum:
        case VectorOp::Fill:
        case VectorOp::Gather:
        case VectorOp::ScatterAdd:
        case VectorOp::SgdUpdate:
            return OperandShape::Matrix;
    }
    return OperandShape::Matrix;
}

OperandShape output_shape(VectorOp op, std::size_t index) {
    switch (op) {
        case VectorOp::LayerNormForward:  // z, xhat, rstd, y
            return index == 2 ? OperandShape::Column : OperandShape::Matrix;
        case VectorOp::LayerNormParameters:  // dgamma, dbeta
        case VectorOp::ColumnSum:
            return OperandShape::Row;
        case VectorOp::CrossEntropy:  // dlogits, loss
            return index == 0 ? OperandShape::Matrix : OperandShape::Loss;
        case VectorOp::LayerNormBackward:
        case VectorOp::SoftmaxForward:
        case VectorOp::SoftmaxBackward:
        case VectorOp::GeluForward:
        case VectorOp::GeluBackward:
        case VectorOp::TanhForward:
        case VectorOp::TanhBackward:
        case VectorOp::Fill:
        case VectorOp::Gather:
        case VectorOp::ScatterAdd:
        case VectorOp::SgdUpdate:
            return OperandShape::Matrix;
    }
    return OperandShape::Matrix;
}

std::int64_t words_of(const VectorSegment& segment, OperandShape shape) {
    switch (shape) {
        case OperandShape::Matrix:
            return segment.rows * segment.cols;
        case OperandShape::Row:
            return segment.cols;
        case OperandShape::Column:
            return segment.rows;
        case OperandShape::Word:
            return 1;
        case OperandShape::Loss:
            return 3;
    }
    return 0;
}

std::int64_t Kernel::macs() const {
    const auto* contraction = std::get_if<Contraction>(&work);
    if (contraction == nullptr) {
        return 0;
    }
    return contraction->batch * contraction->rows * contraction->cols * contraction->depth;
}

std::int64_t Kernel::bytes() const {
    return 4 * std::visit([](const auto& any) { return words_touched(any); }, work);
}

std::int64_t Step::macs() const {
    return std::accumulate(kernels.begin(), kernels.end(), std::int64_t{0},
                           [](std::int64_t sum, const Kernel& kernel) { return sum + kernel.macs(); });
}

TensorId Step::find(const std::string& name) const {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (tensors[i].name == name) {
            return TensorId{static_cast<std::uint32_t>(i)};
        }
    }
    const auto alias =
        std::find_if(aliases.begin(), aliases.end(), [&](const TensorAlias& entry) { return entry.name == name; });
    return alias == aliases.end() ? kNoTensor : alias->tensor;
}

const char* to_string(Phase phase) {
    switch (phase) {
        case Phase::Forward:
            return "forward";
        case Phase::Backward:
            return "backward";
        case Phase::Update:
            return "update";
    }
    return "?";
}

const char* to_string(KernelClass kernel_class) {
    switch (kernel_class) {
        case KernelClass::Merge:
            return "merge";
        case KernelClass::Apply:
            return "apply";
        case KernelClass::CoreGrad:
            return "core_grad";
        case KernelClass::Attention:
            return "attention";
        case KernelClass::Dense:
            return "dense";
        case KernelClass::Embedding:
            return "embedding";
        case KernelClass::Vector:
            return "vector";
        case KernelClass::Loss:
            return "loss";
        case KernelClass::Update:
            return "update";
        case KernelClass::Dma:
            return "dma";
    }
    return "?";
}

const char* to_string(TensorClass tensor_class) {
    switch (tensor_class) {
        case TensorClass::Parameter:
            return "parameter";
        case TensorClass::Gradient:
            return "gradient";
        case TensorClass::Activation:
            return "activation";
        case TensorClass::Scratch:
            return "scratch";
        case TensorClass::Buffer:
            return "buffer";
    }
    return "?";
}

const char* to_string(VectorOp op) {
    switch (op) {
        case VectorOp::LayerNormForward:
            return "layer_norm_forward";
        case VectorOp::LayerNormBackward:
            return "layer_norm_backward";
        case VectorOp::LayerNormParameters:
            return "layer_norm_parameters";
        case VectorOp::SoftmaxForward:
            return "softmax_forward";
        case VectorOp::SoftmaxBackward:
            return "softmax_backward";
        case VectorOp::GeluForward:
            return "gelu_forward";
        case VectorOp::GeluBackward:
            return "gelu_backward";
        case VectorOp::TanhForward:
            return "tanh_forward";
        case VectorOp::TanhBackward:
            return "tanh_backward";
        case VectorOp::CrossEntropy:
            return "cross_entropy";
        case VectorOp::ColumnSum:
            return "column_sum";
        case VectorOp::Fill:
            return "fill";
        case VectorOp::Gather:
            return "gather";
        case VectorOp::ScatterAdd:
            return "scatter_add";
        case VectorOp::SgdUpdate:
            return "sgd_update";
    }
    return "?";
}

}  // namespace contraflow
