// A row is closed when it has not been used for a while.
#include "dram/page_policy.h"

namespace contraflow {

namespace {

class TimeoutPagePolicy : public RowPolicy {
public:
    explicit TimeoutPagePolicy(Cycle idle_cycles) : idle_cycles_(idle_cycles) {}

    [[nodiscard]] bool closes_at_once() const override { return false; }
    [[nodiscard]] Cycle closes_after() const override { return idle_cycles_; }

private:
    Cycle idle_cycles_;
};

}  // namespace

std::unique_ptr<RowPolicy> make_timeout_policy(Cycle idle_cycles) {
    return std::make_unique<TimeoutPagePolicy>(idle_cycles);
}

}  // namespace contraflow
