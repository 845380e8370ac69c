#include "sweep/pareto.h"

#include <algorithm>
#include <numeric>

namespace contraflow::sweep {

namespace {

bool dominates(const std::vector<double>& a, const std::vector<double>& b) {
    bool smaller = false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i] > b[i]) {
            return false;
        }
        smaller = smaller || a[i] < b[i];
    }
    return smaller;
}

}  // namespace

std::vector<std::size_t> pareto_front(const std::vector<std::vector<double>>& costs) {
    std::vector<std::size_t> order(costs.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    // Who dominates a row comes before it, so that looking at the front so far is enough.
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return costs[a] < costs[b]; });
    std::vector<std::size_t> front;
    for (const std::size_t row : order) {
        const bool beaten = std::any_of(front.begin(), front.end(),
                                        [&](std::size_t other) { return dominates(costs[other], costs[row]); });
        if (!beaten) {
            front.push_back(row);
        }
    }
    std::sort(front.begin(), front.end());
    return front;
}

}  // namespace contraflow::sweep
