// A row is closed with the last access that waits for it (automatic precharge): best for random traffic.
#include "dram/page_policy.h"

namespace contraflow {

namespace {

class ClosedPagePolicy : public RowPolicy {
public:
    [[nodiscard]] bool closes_at_once() const override { return true; }
    [[nodiscard]] Cycle closes_after() const override { return kNever; }
};

}  // namespace

std::unique_ptr<RowPolicy> make_closed_policy() {
    return std::make_unique<ClosedPagePolicy>();
}

}  // namespace contraflow
