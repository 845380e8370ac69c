// GELU and tanh, element by element.
#pragma once

#include <cstdint>
#include <string>

#include "step/step_builder.h"

namespace contraflow {

// y = f(x) and dx = dy f'(x) over rows x cols; kernels name.fwd and name.bwd.
void add_gelu_forward(StepBuilder& builder, const std::string& name, std::int64_t rows, std::int64_t cols,
                      const Variable& x, const Variable& y);
void add_gelu_backward(StepBuilder& builder, const std::string& name, std::int64_t rows, std::int64_t cols,
                       const Variable& x, const Variable& y);
void add_tanh_forward(StepBuilder& builder, const std::string& name, std::int64_t rows, std::int64_t cols,
                      const Variable& x, const Variable& y);
void add_tanh_backward(StepBuilder& builder, const std::string& name, std::int64_t rows, std::int64_t cols,
                       const Variable& x, const Variable& y);

}  // namespace contraflow
