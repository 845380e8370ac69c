#include "step/step_builder.h"

#include <utility>

namespace contraflow {
namespace {

const char* phase_tag(Phase phase) {
    switch (phase) {
        case Phase::Forward:
            return "fwd";
        case Phase::Backward:
            return "bwd";
        case Phase::Update:
            return "upd";
    }
    return "?";
}

IndexMap index_map(std::int64_t extent, std::int64_t stride) {
    return {{extent, stride}};
}

// An operand depends on the batch index only if it moves with it.
IndexMap batch_map(const View& view, std::int64_t batch) {
    return view.batch_stride == 0 ? IndexMap{} : index_map(batch, view.batch_stride);
}

}  // namespace

View View::transposed() const {
    View result = *this;
    std::swap(result.row_stride, result.col_stride);
    return result;
}

View matrix(TensorId tensor, std::int64_t cols, std::int64_t offset) {
    View view;
    view.tensor = tensor;
    view.offset = offset;
    view.row_stride = cols;
    return view;
}

Contraction product(const Extents& extents, const View& out, const View& a, const View& b, const View& residual) {
    Contraction c;
    c.batch = extents.batch;
    c.rows = extents.rows;
    c.cols = extents.cols;
    c.depth = extents.depth;
    c.a = {a.tensor,
           a.offset,
           batch_map(a, c.batch),
           index_map(c.rows, a.row_stride),
           {},
           index_map(c.depth, a.col_stride),
           a.token};
    c.b = {b.tensor,
           b.offset,
           batch_map(b, c.batch),
           {},
           index_map(c.cols, b.col_stride),
           index_map(c.depth, b.row_stride),
           b.token};
    const auto result_access = [&](const View& view) {
        return Access{view.tensor,
                      view.offset,
                      batch_map(view, c.batch),
                      index_map(c.rows, view.row_stride),
                      index_map(c.cols, view.col_stride),
                      {},
                      view.token};
    };
    c.out = result_access(out);
    if (residual.tensor != kNoTensor) {
        c.residual = result_access(residual);
    }
    return c;
}

std::int64_t product_of_modes(const std::vector<std::int64_t>& modes, std::size_t first, std::size_t last) {
    std::int64_t product = 1;
    for (std::size_t i = first; i < last; ++i) {
        product *= modes[i];
    }
    return product;
}

std::string join(const std::string& prefix, const std::string& name) {
    return prefix.empty() ? name : name.empty() ? prefix : prefix + "." + name;
}

VectorSegment vector_segment(VectorOp op, std::int64_t rows, std::int64_t cols, std::vector<VectorOperand> in,
                             std::vector<VectorOperand> out, float scalar) {
    VectorSegment segment;
    segment.op = op;
    segment.rows = rows;
    segment.cols = cols;
    segment.in = std::move(in);
    segment.out = std::move(out);
    segment.scalar = scalar;
    return segment;
}

VectorOperand matrix_operand(TensorId tensor, std::int64_t cols, std::int64_t offset) {
    return {tensor, offset, cols, {}};
}

VectorOperand row_operand(TensorId tensor, std::int64_t offset) {
    return {tensor, offset, 0, {}};
}

VectorOperand column_operand(TensorId tensor, std::int64_t offset) {
    return {tensor, offset, 1, {}};
}

VectorOperand no_operand() {
    return {};
}

std::int64_t row_words(const Tensor& tensor) {
    constexpr std::int64_t kMaxRowWords = 4096;
    std::int64_t words = 1;
    for (auto extent = tensor.shape.rbegin(); extent != tensor.shape.rend() && words * *extent <= kMaxRowWords;
         ++extent) {
        words *= *extent;
    }
    return words;
}

StepBuilder::StepBuilder(std::int64_t seq_len) {
    step_.seq_len = seq_len;
    step_.sample = add_tensor("sample", {step_.sample_words()}, TensorClass::Buffer);
    step_.tensors[index_of(step_.sample)].element = ElementType::I32;
}

TensorId StepBuilder::add_tensor(const std::string& name, std::vector<std::int64_t> shape, TensorClass tensor_class) {
    const TensorId id{static_cast<std::uint32_t>(step_.tensors.size())};
    step_.tensors.push_back({name, std::move(shape), tensor_class, ElementType::F32});
    return id;
}

Variable StepBuilder::add_activation(const std::string& name, std::vector<std::int64_t> shape) {
    const TensorId value = add_tensor(name, shape, TensorClass::Activation);
    return {value, add_tensor("d." + name, std::move(shape), TensorClass::Scratch)};
}

Variable StepBuilder::add_parameter(const std::string& module, const std::string& name,
                                    std::vector<std::int64_t> shape) {
    const std::string full_name = join(module, name);
    const TensorId value = add_tensor(full_name, shape, TensorClass::Parameter);
    const Variable parameter{value, add_tensor("d." + full_name, std::move(shape), TensorClass::Gradient)};
    if (groups_.empty() || groups_.back().module != module) {
        groups_.push_back({module, {}});
    }
    groups_.back().parameters.push_back(parameter);
    return parameter;
}

void StepBuilder::add_alias(const std::string& name, TensorId tensor) {
    step_.aliases.push_back({name, tensor});
}

template <typename Work>
void StepBuilder::push_kernel(const std::string& module, Phase phase, const std::string& op, KernelClass kernel_class,
                              Work work) {
    step_.kernels.push_back({join(join(module, phase_tag(phase)), op), phase, kernel_class, std::move(work)});
}

void StepBuilder::add_kernel(const std::string& module, Phase phase, const std::string& op, KernelClass kernel_class,
                             Contraction work) {
    push_kernel(module, phase, op, kernel_class, std::move(work));
}

void StepBuilder::add_kernel(const std::string& module, Phase phase, const std::string& op, KernelClass kernel_class,
                             VectorSegment work) {
    push_kernel(module, phase, op, kernel_class, VectorKernel{{std::move(work)}});
}

void StepBuilder::add_kernel(const std::string& module, Phase phase, const std::string& op, KernelClass kernel_class,
                             VectorKernel work) {
    push_kernel(module, phase, op, kernel_class, std::move(work));
}

void StepBuilder::add_kernel(const std::string& module, Phase phase, const std::string& op, KernelClass kernel_class,
                             DmaTransfer work) {
    push_kernel(module, phase, op, kernel_class, work);
}

Step StepBuilder::finish() {
    return std::move(step_);
}

Step StepBuilder::finish_operation() {
    const std::string prefix = "d.";
    for (std::size_t i = 0; i < step_.tensors.size(); ++i) {
        const std::string& name = step_.tensors[i].name;
        if (name.compare(0, prefix.size(), prefix) == 0) {
            add_alias("d" + name.substr(prefix.size()), TensorId{static_cast<std::uint32_t>(i)});
        }
    }
    return finish();
}

}  // namespace contraflow
