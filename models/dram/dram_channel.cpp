#include "dram/dram_channel.h"

#include <algorithm>

#include "common/integer_math.h"

namespace contraflow {

namespace {

Cycle overlap(Cycle from, Cycle until, Cycle other_from, Cycle other_until) {
    const Cycle begin = std::max(from, other_from);
    const Cycle end = std::min(until, other_until);
    return end > begin ? end - begin : 0;
}

}  // namespace

DramChannel::DramChannel(const DramConfig& config)
    : mapping_(config),
      device_(config),
      scheduler_(make_scheduler(config)),
      row_policy_(make_row_policy(config)),
      read_limit_(static_cast<std::size_t>(config.read_queue)),
      write_limit_(static_cast<std::size_t>(config.write_queue)),
      drain_high_(std::max<std::size_t>(1, write_limit_ * static_cast<std::size_t>(config.drain_high_percent) / 100)),
      drain_low_(write_limit_ * static_cast<std::size_t>(config.drain_low_percent) / 100),
      refresh_interval_(static_cast<Cycle>(config.nREFI)),
      refresh_cycles_(static_cast<Cycle>(config.ref_cycles - 1 + config.nRFC)),
      burst_cycles_(static_cast<Cycle>(config.burst_cycles())),
      row_bus_(config.row_bus),
      burst_shift_(log2_of(config.burst_bytes())),
      refresh_due_(device_.num_ranks(), refresh_interval_),
      uses_(device_.num_banks()),
      next_(refresh_interval_) {}

void DramChannel::accept(std::uint64_t id, std::uint64_t address, std::uint32_t bytes, bool write, Cycle now) {
    if (requests_.empty() && now >= data_end_) {
        occupied_from_ = now;
    }
    const DramAddress place = mapping_.decode(address);
    DramRequest request;
    request.id = id;
    request.burst = address >> burst_shift_;
    request.bank = device_.bank_of(place);
    request.row = place.row;
    request.column = place.column;
    request.bytes = bytes;
    request.write = write;
    request.accepted = now;
    for (DramRequest& older : requests_) {
        if (older.burst == request.burst && (write || older.write)) {
            request.ordered = true;
            older.urgent = older.urgent || write;
        }
    }
    requests_.push_back(request);
    ++(write ? num_writes_ : num_reads_);
    next_ = std::min(next_, now + 1);
}

void DramChannel::tick(Cycle now) {
    while (next_ < now) {
        skip_idle_refreshes(now);
        act_at(next_);
    }
    if (next_ == now) {
        act_at(now);
    }
}

// With no request and every row closed, refreshes follow each other at their due cycles. All but the last of them leave
// nothing that matters later.
void DramChannel::skip_idle_refreshes(Cycle until) {
    if (!requests_.empty() || observer_ || due_ranks_ != 0 || next_ != refresh_due_.front() || until <= next_) {
        return;
    }
    for (std::size_t rank = 0; rank < device_.num_ranks(); ++rank) {
        if (!device_.all_closed(rank)) {
            return;
        }
    }
    const Cycle rounds = (until - next_) / refresh_interval_;
    if (rounds < 2) {
        return;
    }
    for (Cycle& due : refresh_due_) {
        due += (rounds - 1) * refresh_interval_;
    }
    stats_.commands[static_cast<std::size_t>(DramCommand::Ref)] += (rounds - 1) * refresh_due_.size();
    next_ = refresh_due_.front();
}

void DramChannel::act_at(Cycle now) {
    wake_ = kNever;
    for (std::size_t rank = 0; rank < refresh_due_.size(); ++rank) {
        if (refresh_due_[rank] > now) {
            wake_ = std::min(wake_, refresh_due_[rank]);
        } else if ((due_ranks_ >> rank & 1) == 0) {
            if (due_ranks_ == 0) {
                refresh_from_ = now;
                refresh_until_ = kNever;
            }
            due_ranks_ |= std::uint64_t{1} << rank;
        }
    }
    draining_ = scheduler_->reorders() && (num_writes_ >= drain_high_ || (draining_ && num_writes_ > drain_low_));
    bool issued = false;
    if (row_bus_) {
        bool row_used = refresh(now);
        issued = serve(CommandBus::Column, now);
        row_used = row_used || serve(CommandBus::Row, now) || close_unused(now);
        issued = issued || row_used;
    } else {
        issued = refresh(now) || serve(CommandBus::Any, now) || close_unused(now);
    }
    next_ = issued ? now + 1 : std::max(wake_, now + 1);
}

bool DramChannel::refresh(Cycle now) {
    for (std::size_t rank = 0; due_ranks_ >> rank != 0; ++rank) {
        if ((due_ranks_ >> rank & 1) == 0) {
            continue;
        }
        const DramCommand command = device_.all_closed(rank) ? DramCommand::Ref : DramCommand::PreAll;
        const Cycle at = device_.earliest_of_rank(command, rank);
        if (at > now) {
            wake_ = std::min(wake_, at);
            continue;
        }
        device_.issue_to_rank(command, rank, now);
        tell(command, now, rank, 0, nullptr);
        if (command == DramCommand::Ref) {
            due_ranks_ &= ~(std::uint64_t{1} << rank);
            refresh_due_[rank] += refresh_interval_;
            refresh_until_ = now + refresh_cycles_;
        } else {
            const std::size_t banks = device_.num_banks() / device_.num_ranks();
            for (std::size_t bank = rank * banks; bank < (rank + 1) * banks; ++bank) {
                uses_[bank].conflict_closed = false;
            }
        }
        return true;
    }
    return false;
}

bool DramChannel::serve(CommandBus bus, Cycle now) {
    if (requests_.empty()) {
        return false;
    }
    Candidates candidates;
    candidates.requests = &requests_;
    candidates.device = &device_;
    candidates.blocked_ranks = due_ranks_;
    candidates.writes_only = draining_;
    const Choice choice = scheduler_->next(candidates, bus, now);
    if (choice.at > now) {
        wake_ = std::min(wake_, choice.at);
        return false;
    }
    issue(choice.command, choice.request, now);
    return true;
}

void DramChannel::issue(DramCommand command, std::size_t index, Cycle now) {
    DramRequest& request = requests_[index];
    request.first_command = std::min(request.first_command, now);
    BankUse& use = uses_[request.bank];
    use.last = now;
    if (command == DramCommand::Act) {
        use.fresh = true;
        use.after_conflict = use.conflict_closed;
        use.conflict_closed = false;
    } else if (command == DramCommand::Pre) {
        use.conflict_closed = true;
    } else if (row_policy_->closes_at_once() && num_hits(request.bank) == 1) {
        command = command == DramCommand::Rd ? DramCommand::RdA : DramCommand::WrA;
    }
    device_.issue(command, request.bank, request.row, now);
    tell(command, now, device_.rank_of(request.bank), request.bank, &request);
    if (is_column_command(command)) {
        finish(command, request, now);
        requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(index));
    }
}

void DramChannel::finish(DramCommand command, const DramRequest& request, Cycle now) {
    BankUse& use = uses_[request.bank];
    ++(use.fresh ? stats_.row_misses : stats_.row_hits);
    stats_.row_conflicts += use.fresh && use.after_conflict ? 1 : 0;
    use.fresh = false;

    // The data bus was idle from the last beat before to the first of this one.
    const Cycle done = device_.data_end(command, now);
    const Cycle idle_from = std::max(data_end_, occupied_from_);
    const Cycle first_beat = done - burst_cycles_;
    if (first_beat > idle_from) {
        const Cycle refreshing = overlap(idle_from, first_beat, refresh_from_, refresh_until_);
        stats_.stall_refresh_cycles += refreshing;
        stats_.stall_timing_cycles += first_beat - idle_from - refreshing;
    }
    stats_.busy_cycles += burst_cycles_;
    data_end_ = done;

    completions_.push_back({request.id, done});
    if (request.write) {
        --num_writes_;
        ++stats_.writes;
        stats_.written_bytes += request.bytes;
    } else {
        --num_reads_;
        ++stats_.reads;
        stats_.read_bytes += request.bytes;
        stats_.latency.add(done - request.accepted);
        stats_.queueing_cycles += request.first_command - request.accepted;
        stats_.service_cycles += done - request.first_command;
    }
}

bool DramChannel::close_unused(Cycle now) {
    const Cycle patience = row_policy_->closes_after();
    if (patience == kNever) {
        return false;
    }
    for (std::size_t bank = 0; bank < uses_.size(); ++bank) {
        const bool blocked = (due_ranks_ >> device_.rank_of(bank) & 1) != 0;
        if (device_.open_row(bank) == DramDevice::kClosed || blocked || num_hits(bank) != 0) {
            continue;
        }
        const Cycle at = std::max(uses_[bank].last + patience, device_.earliest(DramCommand::Pre, bank));
        if (at <= now) {
            device_.issue(DramCommand::Pre, bank, 0, now);
            tell(DramCommand::Pre, now, device_.rank_of(bank), bank, nullptr);
            uses_[bank].conflict_closed = false;
            return true;
        }
        wake_ = std::min(wake_, at);
    }
    return false;
}

std::size_t DramChannel::num_hits(std::size_t bank) const {
    const std::uint32_t row = device_.open_row(bank);
    return static_cast<std::size_t>(std::count_if(requests_.begin(), requests_.end(), [=](const DramRequest& request) {
        return request.bank == bank && request.row == row;
    }));
}

void DramChannel::tell(DramCommand command, Cycle now, std::size_t rank, std::size_t bank, const DramRequest* request) {
    ++stats_.commands[static_cast<std::size_t>(command)];
    if (observer_) {
        observer_({now, command, rank, request, bank});
    }
}

}  // namespace contraflow
