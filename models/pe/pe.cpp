#include "pe/pe.h"

namespace contraflow {

Pe::Pe(const EngineConfig& config, std::size_t accumulators)
    : multiplier_(static_cast<std::size_t>(config.multiply_latency_cycles)),
      adder_(static_cast<std::size_t>(config.add_latency_cycles)),
      accumulators_(accumulators, 0.0F),
      next_issue_(accumulators, 0),
      add_latency_(static_cast<std::uint64_t>(config.add_latency_cycles)) {}

bool Pe::can_issue(std::size_t accumulator) const {
    return !issued_ && cycle_ >= next_issue_[accumulator];
}

void Pe::issue(std::size_t accumulator, float a, float b) {
    multiplier_[0] = Stage{true, accumulator, a * b};
    next_issue_[accumulator] = cycle_ + add_latency_;
    issued_ = true;
}

void Pe::tick() {
    // The adder's last stage writes the accumulator; the product that enters the adder now reads it after that.
    const Stage done = adder_.back();
    for (std::size_t i = adder_.size() - 1; i > 0; --i) {
        adder_[i] = adder_[i - 1];
    }
    if (done.valid) {
        accumulators_[done.accumulator] = done.value;
    }
    const Stage product = multiplier_.back();
    for (std::size_t i = multiplier_.size() - 1; i > 0; --i) {
        multiplier_[i] = multiplier_[i - 1];
    }
    multiplier_[0] = Stage{};
    adder_[0] = product;
    if (product.valid) {
        adder_[0].value = accumulators_[product.accumulator] + product.value;
    }
    issued_ = false;
    ++cycle_;
}

bool Pe::busy() const {
    for (const auto* pipeline : {&multiplier_, &adder_}) {
        for (const Stage& stage : *pipeline) {
            if (stage.valid) {
                return true;
            }
        }
    }
    return false;
}

}  // namespace contraflow
