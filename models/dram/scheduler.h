// Which command a DRAM channel issues next, behind an interface: one policy per file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/cycle.h"
#include "contraflow/config.h"
#include "dram/dram_device.h"

namespace contraflow {

// One burst, as it waits in the channel. The list of requests is in order of acceptance.
struct DramRequest {
    std::uint64_t id = 0;
    std::uint64_t burst = 0;  // address / bytes of a burst
    std::size_t bank = 0;     // DramDevice::bank_of
    std::uint32_t row = 0;
    std::uint32_t column = 0;
    std::uint32_t bytes = 0;  // of the burst that the requester wants
    bool write = false;
    bool ordered = false;  // an older request has the same address, and one of the two writes
    bool urgent = false;   // a younger write has the same address
    Cycle accepted = 0;
    Cycle first_command = kNever;
};

enum class CommandBus { Any, Row, Column };

struct Choice {
    Cycle at = kNever;  // first cycle at which a command may issue; kNever: none before something else happens
    DramCommand command = DramCommand::Act;
    std::size_t request = 0;
};

// What a scheduler looks at.
struct Candidates {
    const std::vector<DramRequest>* requests = nullptr;
    const DramDevice* device = nullptr;
    std::uint64_t blocked_ranks = 0;  // mask of ranks in which a refresh is due
    bool writes_only = false;         // write drain

    [[nodiscard]] bool eligible(const DramRequest& request) const {
        return (!writes_only || request.write || request.urgent) &&
               (blocked_ranks == 0 || (blocked_ranks >> device->rank_of(request.bank) & 1) == 0);
    }
    // The command that brings the request on, from the state of its bank.
    [[nodiscard]] DramCommand next_command(const DramRequest& request) const {
        const std::uint32_t row = device->open_row(request.bank);
        if (row == request.row) {
            return request.write ? DramCommand::Wr : DramCommand::Rd;
        }
        return row == DramDevice::kClosed ? DramCommand::Act : DramCommand::Pre;
    }
};

class Scheduler {
public:
    virtual ~Scheduler() = default;

    // The command to issue at `now` on a bus, or, if none can be, the earliest time of one (choice.at > now).
    [[nodiscard]] virtual Choice next(const Candidates& candidates, CommandBus bus, Cycle now) const = 0;
    // Whether requests may overtake each other; if not, there is no write drain.
    [[nodiscard]] virtual bool reorders() const = 0;
};

[[nodiscard]] std::unique_ptr<Scheduler> make_fcfs_scheduler();
[[nodiscard]] std::unique_ptr<Scheduler> make_frfcfs_scheduler(std::size_t lookahead);
[[nodiscard]] std::unique_ptr<Scheduler> make_scheduler(const DramConfig& config);

// True where `command` goes over `bus`.
[[nodiscard]] constexpr bool goes_over(DramCommand command, CommandBus bus) {
    return bus == CommandBus::Any || (bus == CommandBus::Column) == is_column_command(command);
}

// An older request of the same address is still there. REQUIRES: requests[index].ordered.
[[nodiscard]] bool waits_for_older(const std::vector<DramRequest>& requests, std::size_t index);

}  // namespace contraflow
