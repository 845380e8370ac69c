#include "dram/scheduler.h"

namespace contraflow {

std::unique_ptr<Scheduler> make_scheduler(const DramConfig& config) {
    return config.scheduler == DramScheduler::Fcfs ? make_fcfs_scheduler()
                                                   : make_frfcfs_scheduler(static_cast<std::size_t>(config.lookahead));
}

bool waits_for_older(const std::vector<DramRequest>& requests, std::size_t index) {
    for (std::size_t i = 0; i < index; ++i) {
        if (requests[i].burst == requests[index].burst && (requests[i].write || requests[index].write)) {
            return true;
        }
    }
    return false;
}

}  // namespace contraflow
