#include "dram/page_policy.h"

namespace contraflow {

std::unique_ptr<RowPolicy> make_row_policy(const DramConfig& config) {
    switch (config.page_policy) {
        case PagePolicy::Open:
            return make_open_policy();
        case PagePolicy::Closed:
            return make_closed_policy();
        case PagePolicy::Timeout:
            break;
    }
    return make_timeout_policy(static_cast<Cycle>(config.page_timeout_cycles));
}

}  // namespace contraflow
