// What the vector unit computes: the operations of step.h, row by row, each rounding on its own. No timing in here.
#pragma once

#include <cstdint>
#include <vector>

#include "common/command.h"
#include "common/memory_ports.h"

namespace contraflow {

// Registers that carry a segment from pass to pass.
struct VectorRegisters {
    std::vector<float> row_a, row_b, row_c;  // by row of the segment: mean, reciprocal, loss, ...
    std::vector<float> col_a, col_b;         // column sums
    std::vector<std::int32_t> tokens;        // by row
};

class VectorFunction {
public:
    explicit VectorFunction(const MemoryPorts& memory) : memory_(memory) {}

    // Prepares the registers for a segment.
    void begin(const VectorSegmentCommand& segment);
    // Token ids that the segment's rows select by.
    void set_tokens(const std::vector<std::int32_t>& tokens) { registers_.tokens = tokens; }
    // Rows row_begin .. row_end - 1 of a pass (vector_passes.h), reading and writing memory.
    void run(const VectorSegmentCommand& segment, std::size_t pass, std::int64_t row_begin, std::int64_t row_end);

private:
    [[nodiscard]] float* row_of(const AccessTable& access, std::int64_t row) const;
    [[nodiscard]] const float* load(const AccessTable& access, std::int64_t row, std::vector<float>& buffer) const;
    void store(const AccessTable& access, std::int64_t row, const float* values) const;
    void store_scalar(const AccessTable& access, std::int64_t row, float value) const;
    [[nodiscard]] std::int32_t load_int(const AccessTable& access, std::int64_t row) const;

    void layer_norm_forward(const VectorSegmentCommand& s, std::size_t pass, std::int64_t row);
    void layer_norm_backward(const VectorSegmentCommand& s, std::size_t pass, std::int64_t row);
    void softmax_forward(const VectorSegmentCommand& s, std::size_t pass, std::int64_t row);
    void softmax_backward(const VectorSegmentCommand& s, std::size_t pass, std::int64_t row);
    void cross_entropy(const VectorSegmentCommand& s, std::size_t pass, std::int64_t row);
    void element_wise(const VectorSegmentCommand& s, std::int64_t row);
    void column_sums(const VectorSegmentCommand& s, std::size_t pass, std::int64_t row);

    const MemoryPorts& memory_;
    VectorRegisters registers_;
    std::size_t cols_ = 0;
    mutable std::vector<float> x_, y_, z_, w_, t_, u_;
};

// Sum of values[0 .. n) in the unit's order (step.h, row_sum).
[[nodiscard]] float row_sum(const float* values, std::size_t n);

}  // namespace contraflow
