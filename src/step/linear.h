// A linear layer y = x W^T + b, x one row per position, in one of the three flows.
//
//   btt (btt_linear.cpp)  the output cores are merged to U, the input cores to Vt; T = x Vt^T, y = T U^T
//   tt  (tt_linear.cpp)   x is contracted with one core at a time, from the right
//   mm  (mm_linear.cpp)   the dense matrix, also the last layer of each head
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "contraflow/config.h"
#include "contraflow/tt_shape.h"
#include "step/step_builder.h"

namespace contraflow {

class Linear {
public:
    virtual ~Linear() = default;

    // Adds the kernels of y = x W^T + b. x and y: contiguous rows.
    void forward(const View& x, const View& y);

    // Adds the kernels of dx = dy W (+ residual, unless its tensor is kNoTensor; dx itself accumulates), then those of
    // the gradients of the cores (or of W) and of the bias. REQUIRES: forward was called.
    void backward(const View& dy, const View& dx, const View& residual = {});

protected:
    // rows: positions; outputs: M
    Linear(StepBuilder& builder, std::string name, std::int64_t rows, std::int64_t outputs)
        : builder_(builder), name_(std::move(name)), rows_(rows), outputs_(outputs) {}

    virtual void add_forward(const View& y) = 0;
    virtual void add_backward(const View& dy, const View& dx, const View& residual) = 0;

    // Adds a kernel of this layer.
    void add(Phase phase, const std::string& op, KernelClass kernel_class, const Contraction& work) {
        builder_.add_kernel(name_, phase, op, kernel_class, work);
    }
    // Adds the bias (outputs) to a contraction whose column index is the output.
    [[nodiscard]] Contraction with_bias(Contraction work) const;

    StepBuilder& builder_;
    std::string name_;
    std::int64_t rows_;
    std::int64_t outputs_;
    View x_;
    Variable bias_;  // registered by the derived class, after its weights
};

// Registers the layer's parameters: core.0, core.1, ..., bias; mm: weight, bias.
[[nodiscard]] std::unique_ptr<Linear> make_linear(StepBuilder& builder, const std::string& name, const TtShape& shape,
                                                  std::int64_t rows, Flow flow);
[[nodiscard]] std::unique_ptr<Linear> make_btt_linear(StepBuilder& builder, const std::string& name,
                                                      const TtShape& shape, std::int64_t rows);
[[nodiscard]] std::unique_ptr<Linear> make_tt_linear(StepBuilder& builder, const std::string& name,
                                                     const TtShape& shape, std::int64_t rows);
[[nodiscard]] std::unique_ptr<Linear> make_mm_linear(StepBuilder& builder, const std::string& name,
                                                     std::int64_t outputs, std::int64_t inputs, std::int64_t rows);

}  // namespace contraflow
