// One DRAM channel with its controller: request queues, scheduler, page policy, refresh, command and data bus.
//
// A plain state machine without SystemC; DramController wraps it, and `contraflow dram` replays traces on it. At most
// one request enters per cycle; a request that enters at cycle c can cause its first command at c + 1 (front-end
// latency 1). Reads and writes wait in one list in order of acceptance, with a limit for each. Both compete under the
// scheduler's rules, which group them by themselves, because a change of direction takes the bus longer; when
// drain_high writes wait, only writes are served until drain_low are left. Requests to one burst keep their order if
// one of them writes.
// Refresh: all banks of a rank, due every nREFI, the first at nREFI after reset, never postponed: from the due cycle on
// the rank gets no activate and no column command; open rows are closed by one precharge-all, then REF.
// Not modelled: power-down, self-refresh, ECC, temperature-dependent refresh. Source: JESD79-3, JESD79-4, JESD235,
// JESD209-4 as cited in configs/memories.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/cycle.h"
#include "contraflow/config.h"
#include "dram/address_mapping.h"
#include "dram/dram_device.h"
#include "dram/dram_stats.h"
#include "dram/page_policy.h"
#include "dram/scheduler.h"

namespace contraflow {

class DramChannel {
public:
    struct IssuedCommand {
        Cycle cycle = 0;  // first one on the command bus
        DramCommand command = DramCommand::Act;
        std::size_t rank = 0;
        const DramRequest* request = nullptr;  // column commands and ACT: for which; null for PREA and REF
        std::size_t bank = 0;                  // DramDevice::bank_of, unless for all
    };
    struct Completion {
        std::uint64_t id = 0;
        Cycle done = 0;  // cycle after the last beat
    };

    explicit DramChannel(const DramConfig& config);

    // Called with each command; slows down idle stretches.
    void observe(std::function<void(const IssuedCommand&)> observer) { observer_ = std::move(observer); }

    [[nodiscard]] bool has_room(bool write) const {
        return write ? num_writes_ < write_limit_ : num_reads_ < read_limit_;
    }
    // A request of one burst, `address` within the channel, enters after what the channel does at cycle `now`.
    // REQUIRES: has_room(write), now is the cycle of the latest tick, and no other entered at it.
    void accept(std::uint64_t id, std::uint64_t address, std::uint32_t bytes, bool write, Cycle now);

    // Does what is due at `now`, and before it what was due since the last tick. REQUIRES: no request entered since.
    void tick(Cycle now);
    // The next cycle at which tick may do anything for a request that waits; kNever if none does. What the channel does
    // by itself (refreshes, rows closed) the next tick makes up for.
    [[nodiscard]] Cycle next_event() const { return requests_.empty() ? kNever : next_; }

    // Requests whose data has been scheduled since the last clear, in order of their column commands.
    [[nodiscard]] const std::vector<Completion>& completions() const { return completions_; }
    void clear_completions() { completions_.clear(); }

    [[nodiscard]] bool idle() const { return requests_.empty(); }
    [[nodiscard]] std::size_t num_waiting() const { return requests_.size(); }
    [[nodiscard]] const DramStats& stats() const { return stats_; }
    // A request waited so many cycles for room.
    void count_full(Cycle cycles) { stats_.stall_full_cycles += cycles; }
    [[nodiscard]] const DramDevice& device() const { return device_; }
    [[nodiscard]] const AddressMapping& mapping() const { return mapping_; }

private:
    struct BankUse {
        Cycle last = 0;                // latest command to its row
        bool fresh = false;            // no column command since the row was opened
        bool after_conflict = false;   // opened after a precharge for another row
        bool conflict_closed = false;  // precharged for another row
    };

    void act_at(Cycle now);
    void skip_idle_refreshes(Cycle until);
    // Each returns whether it issued a command, and if not lowers wake_ to the time at which it might.
    bool refresh(Cycle now);
    bool serve(CommandBus bus, Cycle now);
    bool close_unused(Cycle now);
    void issue(DramCommand command, std::size_t index, Cycle now);
    void finish(DramCommand command, const DramRequest& request, Cycle now);
    void tell(DramCommand command, Cycle now, std::size_t rank, std::size_t bank, const DramRequest* request);
    // Waiting requests for the open row of a bank.
    [[nodiscard]] std::size_t num_hits(std::size_t bank) const;

    AddressMapping mapping_;
    DramDevice device_;
    std::unique_ptr<Scheduler> scheduler_;
    std::unique_ptr<RowPolicy> row_policy_;
    std::size_t read_limit_, write_limit_, drain_high_, drain_low_;
    Cycle refresh_interval_, refresh_cycles_, burst_cycles_;
    bool row_bus_;
    int burst_shift_;

    std::vector<DramRequest> requests_;  // in order of acceptance
    std::size_t num_reads_ = 0, num_writes_ = 0;
    bool draining_ = false;
    std::vector<Cycle> refresh_due_;              // by rank
    std::uint64_t due_ranks_ = 0;                 // mask: refresh_due_ has come
    Cycle refresh_from_ = 0, refresh_until_ = 0;  // the latest refresh, from due to done
    std::vector<BankUse> uses_;
    Cycle next_ = 0;           // next cycle at which there may be something to do
    Cycle wake_ = kNever;      // the same while it is being found
    Cycle data_end_ = 0;       // cycle after the last beat of any request
    Cycle occupied_from_ = 0;  // since then requests have been in the channel without a gap
    std::vector<Completion> completions_;
    std::function<void(const IssuedCommand&)> observer_;
    DramStats stats_;
};

}  // namespace contraflow
