// Layer normalisation over the columns, and in the same pass the residual sum before it.
#pragma once

#include <cstdint>
#include <string>

#include "step/step_builder.h"

namespace contraflow {

class LayerNorm {
public:
    // Registers gamma and beta. x, residual, y: rows x cols.
    LayerNorm(StepBuilder& builder, std::string name, std::int64_t rows, std::int64_t cols, float eps);

    // y = LN(x + residual); residual may be kNoTensor. Keeps the normalised rows and their 1 / deviation.
    void forward(TensorId x, TensorId residual, TensorId y);

    // dz: gradient of the sum x + residual.
    void backward(TensorId dy, TensorId dz);

private:
    StepBuilder& builder_;
    std::string name_;
    std::int64_t rows_;
    std::int64_t cols_;
    float eps_;
    Variable gamma_, beta_;
    TensorId xhat_ = kNoTensor, rstd_ = kNoTensor;
};

}  // namespace contraflow
