#include <cstddef>

#include "verify/verify_case.h"

namespace contraflow::verify {

std::vector<float> multiplied_out(const TtShape& shape, const std::vector<std::vector<float>>& cores) {
    // left (rows x rank) takes in one core after another; W is the product of all, output modes before input modes.
    std::vector<double> left{1.0};
    std::size_t rows = 1;
    for (std::size_t k = 0; k < cores.size(); ++k) {
        const auto rank = static_cast<std::size_t>(shape.ranks[k]);
        const std::size_t width = cores[k].size() / rank;  // mode x next rank
        std::vector<double> next(rows * width, 0.0);
        for (std::size_t i = 0; i < rows; ++i) {
            for (std::size_t r = 0; r < rank; ++r) {
                for (std::size_t j = 0; j < width; ++j) {
                    next[i * width + j] += left[i * rank + r] * static_cast<double>(cores[k][r * width + j]);
                }
            }
        }
        left = std::move(next);
        rows *= static_cast<std::size_t>(shape.tensor_mode(k));
    }
    return {left.begin(), left.end()};
}

std::vector<bool> unselected_slices(const TtmShape& shape, std::size_t core, const std::vector<std::int32_t>& tokens) {
    const auto modes = static_cast<std::size_t>(shape.vocab_modes[core]);
    std::vector<bool> selected(modes, false);
    for (const std::int32_t token : tokens) {
        std::int64_t digit = token;
        for (std::size_t k = shape.num_cores() - 1; k > core; --k) {
            digit /= shape.vocab_modes[k];
        }
        selected[static_cast<std::size_t>(digit % shape.vocab_modes[core])] = true;
    }
    const auto width = static_cast<std::size_t>(shape.hidden_modes[core] * shape.ranks[core + 1]);
    std::vector<bool> zeros(static_cast<std::size_t>(shape.core_words(core)));
    for (std::size_t i = 0; i < zeros.size(); ++i) {
        zeros[i] = !selected[i / width % modes];
    }
    return zeros;
}

std::vector<bool> padding_columns(std::size_t elements, const std::vector<std::int32_t>& real) {
    std::vector<bool> zeros(elements);
    for (std::size_t i = 0; i < elements; ++i) {
        zeros[i] = real[i % real.size()] == 0;
    }
    return zeros;
}

std::vector<bool> padding_rows(std::size_t elements, std::size_t cols, const std::vector<std::int32_t>& real) {
    std::vector<bool> zeros(elements);
    for (std::size_t i = 0; i < elements; ++i) {
        zeros[i] = real[i / cols % real.size()] == 0;
    }
    return zeros;
}

}  // namespace contraflow::verify
