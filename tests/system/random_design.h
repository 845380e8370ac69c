// Random small machines and networks, for properties that must hold in all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "support/machine_harness.h"

namespace contraflow::test {

// Keys of a valid configuration that replace those of configs/tiny.ini. The same seed gives the same design.
[[nodiscard]] Overrides random_design(std::uint64_t seed);

// A run of a design: two random samples; space is shared between tensors in every other one, by train.seed.
[[nodiscard]] MachineCase case_of(const Overrides& design);

// What is wrong with a design; empty if nothing is.
using Property = std::function<std::string(const Overrides&)>;

// Runs the design clocked and leap in two children and compares everything that can be counted; every fourth design (by
// train.seed) also without values, and every fourth in reversed order of instantiation.
[[nodiscard]] std::string difference_of_modes(const Overrides& design);

// Leaves out keys, a few at a time and then one by one, as long as the property still fails.
[[nodiscard]] Overrides shrink(Overrides design, const Property& property);

// The design as an INI file.
[[nodiscard]] std::string ini_of(const Overrides& design);

}  // namespace contraflow::test
