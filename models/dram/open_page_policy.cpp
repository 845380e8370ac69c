// A row stays open until another row of its bank, or a refresh, needs it closed: best for streams.
#include "dram/page_policy.h"

namespace contraflow {

namespace {

class OpenPagePolicy : public RowPolicy {
public:
    [[nodiscard]] bool closes_at_once() const override { return false; }
    [[nodiscard]] Cycle closes_after() const override { return kNever; }
};

}  // namespace

std::unique_ptr<RowPolicy> make_open_policy() {
    return std::make_unique<OpenPagePolicy>();
}

}  // namespace contraflow
