// Kernels of a step, placed, as commands of the machine.
#pragma once

#include <cstdint>
#include <vector>

#include "common/command.h"
#include "contraflow/config.h"
#include "contraflow/plan.h"
#include "contraflow/step.h"
#include "plan/known_contractions.h"

namespace contraflow {

[[nodiscard]] Program build_program(const Step& step, const Config& config, const Plan& plan,
                                    const std::vector<RamGeometry>& rams,
                                    const std::vector<std::vector<std::uint32_t>>& dependences,
                                    KnownContractions& known);

}  // namespace contraflow
