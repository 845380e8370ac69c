// Shapes of tensor-train matrices and tensor-train-matrix tables: modes, ranks, and what follows from them.
#pragma once

#include <cstdint>
#include <vector>

namespace contraflow {

// A linear layer's weight W (rows x cols) as a tensor train: core k has shape (ranks[k], mode_k, ranks[k + 1]); the
// output modes come first, then the input modes. U = product of the output cores (rows x middle rank), Vt = product of
// the input cores (middle rank x cols), W = U Vt; the first mode of each side is the slowest index.
struct TtShape {
    std::vector<std::int64_t> out_modes;  // one per output core
    std::vector<std::int64_t> in_modes;   // one per input core
    std::vector<std::int64_t> ranks;      // out_modes.size() + in_modes.size() + 1 values, 1 at both ends

    [[nodiscard]] std::int64_t rows() const;         // M, product of the output modes
    [[nodiscard]] std::int64_t cols() const;         // N, product of the input modes
    [[nodiscard]] std::int64_t middle_rank() const;  // bond between U and Vt
    [[nodiscard]] std::size_t num_cores() const { return out_modes.size() + in_modes.size(); }
    [[nodiscard]] std::int64_t tensor_mode(std::size_t core) const;  // output modes first
    [[nodiscard]] std::int64_t core_words(std::size_t core) const;
    [[nodiscard]] std::int64_t parameter_words() const;  // all cores, without bias
};

// An embedding table (vocab x hidden) in TTM format: core k has shape (ranks[k], vocab_modes[k], hidden_modes[k],
// ranks[k + 1]); digit 1 of a token is the most significant.
struct TtmShape {
    std::vector<std::int64_t> vocab_modes;
    std::vector<std::int64_t> hidden_modes;
    std::vector<std::int64_t> ranks;  // vocab_modes.size() + 1 values, 1 at both ends

    [[nodiscard]] std::int64_t vocab() const;
    [[nodiscard]] std::int64_t hidden() const;
    [[nodiscard]] std::size_t num_cores() const { return vocab_modes.size(); }
    [[nodiscard]] std::int64_t core_words(std::size_t core) const;
    [[nodiscard]] std::int64_t parameter_words() const;
};

}  // namespace contraflow
