// First ready, first come, first served: of the commands that can issue now, the one of the oldest request among the
// `lookahead` oldest. A bank is precharged for another row only when none of them hits the open one, so row hits go
// first.
#include "dram/scheduler.h"

namespace contraflow {

namespace {

class FrFcfsScheduler : public Scheduler {
public:
    explicit FrFcfsScheduler(std::size_t lookahead) : lookahead_(lookahead) {}

    [[nodiscard]] Choice next(const Candidates& candidates, CommandBus bus, Cycle now) const override {
        const std::vector<DramRequest>& requests = *candidates.requests;
        const DramDevice& device = *candidates.device;
        std::uint64_t hit_banks = 0;
        if (bus != CommandBus::Column) {
            std::size_t left = lookahead_;
            for (std::size_t i = 0; i < requests.size() && left > 0; ++i) {
                if (candidates.eligible(requests[i])) {
                    const bool hit = device.open_row(requests[i].bank) == requests[i].row;
                    hit_banks |= std::uint64_t{hit} << requests[i].bank;
                    --left;
                }
            }
        }
        Choice best;
        std::uint64_t seen = 0;  // banks whose oldest activate or precharge has been looked at
        std::size_t left = lookahead_;
        for (std::size_t i = 0; i < requests.size() && left > 0; ++i) {
            const DramRequest& request = requests[i];
            if (!candidates.eligible(request)) {
                continue;
            }
            --left;
            const DramCommand command = candidates.next_command(request);
            if (!goes_over(command, bus)) {
                continue;
            }
            if (is_column_command(command)) {
                if (request.ordered && waits_for_older(requests, i)) {
                    continue;
                }
            } else {
                const std::uint64_t bit = std::uint64_t{1} << request.bank;
                if ((seen & bit) != 0 || (command == DramCommand::Pre && (hit_banks & bit) != 0)) {
                    continue;
                }
                seen |= bit;
            }
            const Cycle at = device.earliest(command, request.bank);
            if (at < best.at) {
                best = {at, command, i};
                if (at <= now) {
                    break;
                }
            }
        }
        return best;
    }
    [[nodiscard]] bool reorders() const override { return true; }

private:
    std::size_t lookahead_;
};

}  // namespace

std::unique_ptr<Scheduler> make_frfcfs_scheduler(std::size_t lookahead) {
    return std::make_unique<FrFcfsScheduler>(lookahead);
}

}  // namespace contraflow
