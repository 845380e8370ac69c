// The tools the parts of the training step are written with: names, views of tensors, and a builder that collects
// tensors and kernels in program order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "contraflow/step.h"

namespace contraflow {

// A tensor and the gradient of the loss with respect to it.
struct Variable {
    TensorId value = kNoTensor;
    TensorId gradient = kNoTensor;
};

// A matrix inside a tensor, or with a batch stride or a token a stack of them: strides in words.
struct View {
    TensorId tensor = kNoTensor;
    std::int64_t offset = 0;
    std::int64_t row_stride = 0;
    std::int64_t col_stride = 1;
    std::int64_t batch_stride = 0;
    TokenDigit token;

    [[nodiscard]] View transposed() const;
};

// The matrix with `cols` contiguous columns that starts `offset` words into a tensor.
[[nodiscard]] View matrix(TensorId tensor, std::int64_t cols, std::int64_t offset = 0);

struct Extents {
    std::int64_t batch = 1, rows = 1, cols = 1, depth = 1;
};

// out (rows x cols) = a (rows x depth) times b (depth x cols), for every batch; residual (rows x cols) is added unless
// its tensor is kNoTensor.
[[nodiscard]] Contraction product(const Extents& extents, const View& out, const View& a, const View& b,
                                  const View& residual = {});

// Product of the modes first .. last - 1.
[[nodiscard]] std::int64_t product_of_modes(const std::vector<std::int64_t>& modes, std::size_t first,
                                            std::size_t last);

// "prefix.name", or the one that is not empty.
[[nodiscard]] std::string join(const std::string& prefix, const std::string& name);

// `in` -> `out` over rows x cols; `scalar` is eps, scale or the learning rate.
[[nodiscard]] VectorSegment vector_segment(VectorOp op, std::int64_t rows, std::int64_t cols,
                                           std::vector<VectorOperand> in, std::vector<VectorOperand> out,
                                           float scalar = 0);
// Operands of a vector kernel: rows of `cols` words, one row for all, one word per row, nothing.
[[nodiscard]] VectorOperand matrix_operand(TensorId tensor, std::int64_t cols, std::int64_t offset = 0);
[[nodiscard]] VectorOperand row_operand(TensorId tensor, std::int64_t offset = 0);
[[nodiscard]] VectorOperand column_operand(TensorId tensor, std::int64_t offset = 0);
[[nodiscard]] VectorOperand no_operand();

// Words per row when a whole tensor is worked on element by element: as many trailing dimensions as fit in 4096 words,
// so that rows fill the vector lanes and stay short enough for a burst.
[[nodiscard]] std::int64_t row_words(const Tensor& tensor);

// The parameters of one module: they are updated by one kernel.
struct ParameterGroup {
    std::string module;
    std::vector<Variable> parameters;
};

// Collects the tensors and kernels of a step. Kernel names are module.<fwd|bwd|upd>.op.
class StepBuilder {
public:
    // Adds the sample buffer.
    explicit StepBuilder(std::int64_t seq_len);

    TensorId add_tensor(const std::string& name, std::vector<std::int64_t> shape, TensorClass tensor_class);
    // An activation or input and its gradient "d." + name, a scratch tensor.
    Variable add_activation(const std::string& name, std::vector<std::int64_t> shape);
    // The parameter "module.name" (or "module", if name is empty) and its gradient "d." + that.
    Variable add_parameter(const std::string& module, const std::string& name, std::vector<std::int64_t> shape);
    void add_alias(const std::string& name, TensorId tensor);
    void set_loss(TensorId loss) { step_.loss = loss; }

    void add_kernel(const std::string& module, Phase phase, const std::string& op, KernelClass kernel_class,
                    Contraction work);
    void add_kernel(const std::string& module, Phase phase, const std::string& op, KernelClass kernel_class,
                    VectorSegment work);
    void add_kernel(const std::string& module, Phase phase, const std::string& op, KernelClass kernel_class,
                    VectorKernel work);
    void add_kernel(const std::string& module, Phase phase, const std::string& op, KernelClass kernel_class,
                    DmaTransfer work);

    // What has been built so far.
    [[nodiscard]] const Step& step() const { return step_; }
    [[nodiscard]] const std::vector<ParameterGroup>& parameter_groups() const { return groups_; }

    [[nodiscard]] Step finish();
    // The same for a single operation, whose vectors call the gradient of x "dx": every "d.x" gets that alias.
    [[nodiscard]] Step finish_operation();

private:
    template <typename Work>
    void push_kernel(const std::string& module, Phase phase, const std::string& op, KernelClass kernel_class,
                     Work work);

    Step step_;
    std::vector<ParameterGroup> groups_;
};

}  // namespace contraflow
