#include "contraflow/tt_shape.h"

#include <functional>
#include <numeric>

namespace contraflow {
namespace {

std::int64_t product(const std::vector<std::int64_t>& factors) {
    return std::accumulate(factors.begin(), factors.end(), std::int64_t{1}, std::multiplies<>());
}

// Words of all cores of a shape; core_words is a member of both kinds.
template <typename Shape>
std::int64_t sum_of_cores(const Shape& shape) {
    std::int64_t words = 0;
    for (std::size_t core = 0; core < shape.num_cores(); ++core) {
        words += shape.core_words(core);
    }
    return words;
}

}  // namespace

std::int64_t TtShape::rows() const {
    return product(out_modes);
}

std::int64_t TtShape::cols() const {
    return product(in_modes);
}

std::int64_t TtShape::middle_rank() const {
    return ranks[out_modes.size()];
}

std::int64_t TtShape::tensor_mode(std::size_t core) const {
    return core < out_modes.size() ? out_modes[core] : in_modes[core - out_modes.size()];
}

std::int64_t TtShape::core_words(std::size_t core) const {
    return ranks[core] * tensor_mode(core) * ranks[core + 1];
}

std::int64_t TtShape::parameter_words() const {
    return sum_of_cores(*this);
}

std::int64_t TtmShape::vocab() const {
    return product(vocab_modes);
}

std::int64_t TtmShape::hidden() const {
    return product(hidden_modes);
}

std::int64_t TtmShape::core_words(std::size_t core) const {
    return ranks[core] * vocab_modes[core] * hidden_modes[core] * ranks[core + 1];
}

std::int64_t TtmShape::parameter_words() const {
    return sum_of_cores(*this);
}

}  // namespace contraflow
