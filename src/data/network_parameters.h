// The list that parameter names, shapes, sizes and initial values all come from.
#pragma once

#include <vector>

#include "contraflow/config.h"
#include "contraflow/weights.h"

namespace contraflow {

struct NetworkParameter {
    ParameterSpec spec;
    double mean = 0;
    double standard_deviation = 0;  // 0: every value is the mean
};

// In the order of the network, input first.
[[nodiscard]] std::vector<NetworkParameter> network_parameters(const Config& config, bool dense);

}  // namespace contraflow
