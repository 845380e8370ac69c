// From a step and a configuration to placements and commands.
#pragma once

#include "common/command.h"
#include "contraflow/config.h"
#include "contraflow/plan.h"
#include "contraflow/step.h"

namespace contraflow {

struct PlannedStep {
    Plan plan;
    Program program;
};

// Places every tensor, maps every contraction onto the engines and derives the dependences. Deterministic.
// memory.layout = naive: every tensor is a memory of its own, laid out row-major. auto: tensors share memories, never
// two that one kernel streams at the same time while another memory has room; layouts are padded against bank
// conflicts; tensors with disjoint lifetimes share space if the device is too small otherwise. Plan::overflows says
// what the device lacks; planning itself never fails for lack of space.
struct PlanOptions {
    bool keep_all = false;  // never share space, so that every tensor can be inspected after a step
};
[[nodiscard]] PlannedStep plan_step(const Step& step, const Config& config, const PlanOptions& options = {});

}  // namespace contraflow
