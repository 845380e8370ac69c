// When a DRAM channel closes a row that no waiting request needs, behind an interface: one policy per file.
#pragma once

#include <memory>

#include "common/cycle.h"
#include "contraflow/config.h"

namespace contraflow {

class RowPolicy {
public:
    virtual ~RowPolicy() = default;

    // Whether a column command closes its row (automatic precharge) when no other waiting request hits it.
    [[nodiscard]] virtual bool closes_at_once() const = 0;
    // Cycles after a row's last command at which it is closed if no waiting request hits it; kNever: stays open.
    [[nodiscard]] virtual Cycle closes_after() const = 0;
};

[[nodiscard]] std::unique_ptr<RowPolicy> make_open_policy();
[[nodiscard]] std::unique_ptr<RowPolicy> make_closed_policy();
[[nodiscard]] std::unique_ptr<RowPolicy> make_timeout_policy(Cycle idle_cycles);
[[nodiscard]] std::unique_ptr<RowPolicy> make_row_policy(const DramConfig& config);

}  // namespace contraflow
