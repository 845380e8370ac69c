// One kernel alone on a machine: builds the step by hand, runs it once, returns what the sequencer recorded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "contraflow/config.h"
#include "contraflow/simulation.h"
#include "contraflow/step.h"

namespace contraflow::test {

// A machine of one small engine with conflict-free memories, for closed forms.
[[nodiscard]] Config small_machine();

// out (rows x cols) = a (rows x depth) b (depth x cols), optionally + bias (cols) and accumulating.
struct ProductShape {
    std::int64_t rows = 1, cols = 1, depth = 1;
    bool bias = false;
    bool accumulates = false;
    std::int64_t batch = 1;
    bool sums_batches = false;  // all batches add to one output; REQUIRES: accumulates
};
[[nodiscard]] Step product_step(const ProductShape& shape);

// A vector kernel over a rows x cols matrix in and out, both scratch tensors "x" and "y" (and "g" for two inputs).
[[nodiscard]] Step vector_step(VectorOp op, std::int64_t rows, std::int64_t cols, float scalar);

// A DMA transfer of `words` words between DRAM address `offset` and an on-chip tensor.
[[nodiscard]] Step transfer_step(std::int64_t words, std::int64_t offset, bool to_chip);

// The same for `rows` rows of row_words words that start row_pitch words apart, or where the tokens say.
[[nodiscard]] Step rows_transfer_step(std::int64_t rows, std::int64_t row_words, std::int64_t row_pitch,
                                      std::int64_t offset, bool to_chip, const TokenDigit& token = {});

// out[b] (rows x cols) = table slice of token b (rows x depth) b (depth x cols): addresses that depend on tokens.
[[nodiscard]] Step token_product_step(const ProductShape& shape, std::int64_t vocab);

struct KernelResult {
    std::uint64_t start = 0;  // edge that posts the command
    std::uint64_t cycles = 0;
    std::uint64_t busy = 0, dependency = 0, bank = 0, port = 0, write_back = 0, dram = 0, pipeline = 0;
    std::uint64_t macs = 0;
    std::uint64_t gang_size = 0;
};

// Runs the step's last kernel's record out of one training step, in a child process.
[[nodiscard]] KernelResult run_alone(const Config& config, const Step& step, RunMode run_mode = RunMode::Clocked);

}  // namespace contraflow::test
