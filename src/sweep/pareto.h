// Points that no other point beats.
#pragma once

#include <cstddef>
#include <vector>

namespace contraflow::sweep {

// Indices of the rows of `costs` (all of one length, smaller is better) that no other row dominates, in ascending
// order. A row dominates another if it is nowhere larger and somewhere smaller; so of rows with equal costs all stay or
// none.
[[nodiscard]] std::vector<std::size_t> pareto_front(const std::vector<std::vector<double>>& costs);

}  // namespace contraflow::sweep
