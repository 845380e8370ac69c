// Processing element: an FP32 multiplier and an FP32 adder in a row, and a register file of accumulators.
//
// Throughput: one multiply-accumulate per cycle; one to the same accumulator per add_latency cycles, because the adder
// takes the accumulator as an operand when the product reaches it. Latency from issue to accumulator: multiply_latency
// plus add_latency cycles. Product and sum round separately to nearest even; subnormals flush (the thread's mode).
// The contraction engine holds arrays instead of objects of this class; unit tests hold its step counter
// (engine/tile_timing.h) and its sums to what this class does cycle by cycle.
#pragma once

#include <cstdint>
#include <vector>

#include "contraflow/config.h"

namespace contraflow {

class Pe {
public:
    // `accumulators`: registers, zero after reset.
    Pe(const EngineConfig& config, std::size_t accumulators);

    // True if a multiply-accumulate into `accumulator` may issue in the present cycle.
    [[nodiscard]] bool can_issue(std::size_t accumulator) const;
    // REQUIRES: can_issue(accumulator), at most one issue per cycle.
    void issue(std::size_t accumulator, float a, float b);
    // Ends the cycle: pipelines move on by one stage.
    void tick();

    [[nodiscard]] float value(std::size_t accumulator) const { return accumulators_[accumulator]; }
    [[nodiscard]] bool busy() const;  // something is in the pipelines
    [[nodiscard]] std::uint64_t cycle() const { return cycle_; }

private:
    struct Stage {
        bool valid = false;
        std::size_t accumulator = 0;
        float value = 0;
    };

    std::vector<Stage> multiplier_, adder_;  // stage 0 is the newest
    std::vector<float> accumulators_;
    std::vector<std::uint64_t> next_issue_;  // first cycle at which a new product may be issued, by accumulator
    bool issued_ = false;
    std::uint64_t cycle_ = 0;
    std::uint64_t add_latency_;
};

}  // namespace contraflow
