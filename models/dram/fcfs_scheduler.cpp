// First come, first served: reads and writes move their data in order of acceptance. Rows are still opened ahead of
// time, each bank for its oldest request.
#include "dram/scheduler.h"

namespace contraflow {

namespace {

class FcfsScheduler : public Scheduler {
public:
    [[nodiscard]] Choice next(const Candidates& candidates, CommandBus bus, Cycle now) const override {
        const std::vector<DramRequest>& requests = *candidates.requests;
        Choice best;
        bool first = true;
        std::uint64_t seen = 0;
        for (std::size_t i = 0; i < requests.size(); ++i) {
            const DramRequest& request = requests[i];
            const std::uint64_t bit = std::uint64_t{1} << request.bank;
            const bool oldest_of_all = first;
            const bool oldest_of_bank = (seen & bit) == 0;
            first = false;
            seen |= bit;
            if (!oldest_of_bank || !candidates.eligible(request)) {
                continue;
            }
            const DramCommand command = candidates.next_command(request);
            if (!goes_over(command, bus) || (is_column_command(command) && !oldest_of_all)) {
                continue;
            }
            const Cycle at = candidates.device->earliest(command, request.bank);
            if (at < best.at) {
                best = {at, command, i};
                if (at <= now) {
                    break;
                }
            }
        }
        return best;
    }
    [[nodiscard]] bool reorders() const override { return false; }
};

}  // namespace

std::unique_ptr<Scheduler> make_fcfs_scheduler() {
    return std::make_unique<FcfsScheduler>();
}

}  // namespace contraflow
