// From a step and a configuration to placements and commands.
#pragma once

#include "common/command.h"
#include "contraflow/config.h"
#include "contraflow/plan.h"
#include "contraflow/step.h"

namespace contraflow {

struct KnownContractions;

struct PlannedStep {
    Step step;  // the given one, or with the transfers that tensors in DRAM need; ids of the given tensors stay
    Plan plan;
    Program program;
};

struct PlanOptions {
    bool keep_all = false;               // never share space, so that every tensor can be inspected after a step
    bool on_chip = false;                // only what the configuration names goes to DRAM, whether the rest fits or not
    KnownContractions* known = nullptr;  // from designs planned before; saves time, changes nothing
};

// Places every tensor (plan/placer.h), maps every contraction onto the engines and derives the dependences.
// Deterministic. If the device is too small, tensors with disjoint lifetimes share space; if that is not enough, the
// largest parameters and gradients that the configuration leaves open go to DRAM (plan/streaming.h). Plan::overflows
// says what the device then still lacks; planning itself never fails for lack of space. Throws ConfigError for rules
// of memory.tensors that cannot be kept.
[[nodiscard]] PlannedStep plan_step(Step step, const Config& config, const PlanOptions& options = {});

}  // namespace contraflow
