// Edges of a clock, counted from reset.
#pragma once

#include <cstdint>

namespace contraflow {

using Cycle = std::uint64_t;
inline constexpr Cycle kNever = ~Cycle{0};

}  // namespace contraflow
