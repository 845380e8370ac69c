// The value of memory.tensors: rules that place tensors and lay them out by name.
//
// Rules are separated by commas, the parts of a rule by colons: a pattern of tensor names, then any of
//   bram, uram, lutram, dram, auto   the kind of memory
//   cyclic.D=B, block.D=B            dimension D (0 is the slowest) spread over B banks; once per dimension
//   reshape=Q                        Q words side by side in a row of a bank
//   group=NAME                       all tensors with this name share one memory
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "contraflow/config.h"

namespace contraflow::config {

// A value and the word for it.
template <class E>
using Words = std::vector<std::pair<std::string, E>>;

extern const Words<RamPlace> kPlaces;

inline constexpr const char* kTensorRuleForm =
    "PATTERN:PART[:PART ...], comma-separated; a part is bram, uram, lutram, dram, auto, cyclic.D=B, block.D=B, "
    "reshape=Q or group=NAME";

// Throws BadValue. Empty text: no rules.
[[nodiscard]] std::vector<TensorRule> parse_tensor_rules(const std::string& text);
[[nodiscard]] std::string tensor_rules_text(const std::vector<TensorRule>& rules);

}  // namespace contraflow::config
