#include "common/block.h"

#include <algorithm>

namespace contraflow {

namespace {

constexpr std::uint64_t kPsPerSecond = 1'000'000'000'000ULL;
__extension__ using Wide = unsigned __int128;

}  // namespace

std::uint64_t ClockDomain::latest_ps_ = 0;

ClockDomain::ClockDomain(const sc_core::sc_module_name& name, std::int64_t hz, RunMode run_mode)
    : sc_core::sc_module(name), hz_(hz), clocked_(run_mode == RunMode::Clocked) {
    const auto rate = static_cast<std::uint64_t>(hz);
    if (kPsPerSecond % rate == 0) {
        period_ps_ = kPsPerSecond / rate;
    }
    SC_HAS_PROCESS(ClockDomain);
    if (clocked_) {
        SC_METHOD(generate);
    }
    SC_METHOD(take_due_edges);
    sensitive << agenda_;
}

std::uint64_t ClockDomain::edge_ps(Cycle edge) const {
    if (period_ps_ != 0) {
        return edge * period_ps_;
    }
    return static_cast<std::uint64_t>(Wide{edge} * kPsPerSecond / static_cast<std::uint64_t>(hz_));
}

Cycle ClockDomain::first_edge_after(std::uint64_t ps) const {
    if (started_ && ps == cycle_ps_) {
        return cycle_ + 1;  // the usual case: posted at an edge of this clock
    }
    if (period_ps_ != 0) {
        return ps / period_ps_ + 1;
    }
    // The smallest k with floor(k * 10^12 / hz) >= ps + 1.
    const Wide target = Wide{ps + 1} * static_cast<std::uint64_t>(hz_);
    return static_cast<Cycle>((target + kPsPerSecond - 1) / kPsPerSecond);
}

void ClockDomain::generate() {
    if (!runs_) {
        return;
    }
    if (started_) {
        ++cycle_;
    }
    started_ = true;
    cycle_ps_ = edge_ps(cycle_);
    latest_ps_ = cycle_ps_;
    tick_.notify();
    next_trigger(sc_core::sc_time::from_value(edge_ps(cycle_ + 1) - cycle_ps_));
}

std::size_t ClockDomain::enlist(Block& block) {
    sleepers_.push_back(&block);
    due_.push_back(0);
    posted_.push_back(kNever);
    return sleepers_.size() - 1;
}

void ClockDomain::schedule(std::size_t place, Cycle edge) {
    Cycle& due = due_[place];
    if (edge > due) {
        posted_[place] = std::min(posted_[place], edge);
        return;
    }
    due = edge;
    if (taking_) {
        next_ = std::min(next_, edge);
    } else if (edge < armed_) {
        armed_ = edge;
        if (!landing_) {
            arm(edge_ps(edge));
        }
    }
}

void ClockDomain::arm(std::uint64_t ps) {
    agenda_.notify(sc_core::sc_time::from_value(ps - sc_core::sc_time_stamp().value()));
}

void ClockDomain::take_due_edges() {
    if (landing_) {
        landing_ = false;
        arm(edge_ps(armed_));
        return;
    }
    while (armed_ != kNever && !sleepers_.empty()) {
        const Cycle edge = armed_;
        const std::uint64_t ps = edge_ps(edge);
        if (!clocked_ || !runs_) {
            cycle_ = edge;
            cycle_ps_ = ps;
            started_ = true;
        }
        latest_ps_ = ps;
        taking_ = true;
        next_ = kNever;
        for (std::size_t i = 0; i < sleepers_.size(); ++i) {
            if (due_[i] == edge) {
                const Cycle wanted = sleepers_[i]->take(edge, ps);
                // A word posted at this very edge, before this block took it, is for the next one.
                due_[i] = std::min(wanted, posted_[i]);
                posted_[i] = kNever;
            }
            next_ = std::min(next_, due_[i]);
        }
        taking_ = false;
        armed_ = next_;
        if (window_ != Window::Closed && lands_on(edge)) {
            return;
        }
        if (armed_ != kNever && !may_run_ahead_to(edge_ps(armed_))) {
            arm(edge_ps(armed_));
            return;
        }
    }
}

// In a window every block stands at the edge that has been taken. Where it was taken ahead of SystemC's time, that
// comes first, before anything else: then true.
bool ClockDomain::lands_on(Cycle edge) {
    for (Block* sleeper : sleepers_) {
        sleeper->catch_up(edge);
    }
    if (edge_ps(edge) == sc_core::sc_time_stamp().value()) {
        return false;
    }
    landing_ = true;
    arm(edge_ps(edge));
    return true;
}

void ClockDomain::open_window() {
    if (window_ != Window::Closed) {
        return;
    }
    window_ = Window::Opening;
    const Cycle next = first_edge_after(now_ps());
    for (std::size_t i = 0; i < sleepers_.size(); ++i) {
        schedule(i, next);
    }
}

void ClockDomain::enter_window() {
    if (window_ == Window::Opening) {
        window_ = Window::Entered;
        for (Block* block : blocks_) {
            block->begin_window();
        }
    }
}

bool ClockDomain::may_run_ahead_to(std::uint64_t ps) const {
    if (ps > horizon_ps_ || window_ != Window::Closed) {
        return false;
    }
    for (const ClockDomain* other : others_) {
        if (other->armed_ != kNever && other->edge_ps(other->armed_) <= ps) {
            return false;
        }
    }
    return !others_.empty();
}

std::uint64_t ClockDomain::now_ps() {
    return std::max<std::uint64_t>(latest_ps_, sc_core::sc_time_stamp().value());
}

Block::Block(const sc_core::sc_module_name& name, ClockDomain& clock, Clocking clocking)
    : sc_core::sc_module(name),
      clock_(clock),
      stepped_(clock.clocked() && clocking == Clocking::EveryEdge),
      clocked_(clock.clocked()) {
    SC_HAS_PROCESS(Block);
    clock_.blocks_.push_back(this);
    if (stepped_) {
        SC_METHOD(on_tick);
        sensitive << clock_.tick();
        dont_initialize();
    } else {
        place_ = clock_.enlist(*this);
    }
}

void Block::on_tick() {
    cycle_ = clock_.cycle();
    now_ps_ = sc_core::sc_time_stamp().value();
    edge();
}

Cycle Block::take(Cycle now, std::uint64_t ps) {
    now_ps_ = ps;
    if (now > next_unseen_) {
        advance(now - next_unseen_);
    }
    cycle_ = now;
    next_unseen_ = now + 1;
    edge();
    const Cycle wait = (clocked_ || clock_.in_window()) && has_work() ? 1 : next_event();
    return wait == kNever ? kNever : now + wait;
}

void Block::catch_up(Cycle last) {
    if (!stepped_ && last >= next_unseen_) {
        advance(last - next_unseen_ + 1);
        next_unseen_ = last + 1;
        cycle_ = last;
    }
}

void Block::wake_after(std::uint64_t ps) {
    if (!stepped_) {
        clock_.schedule(place_, clock_.first_edge_after(ps));
    }
}

}  // namespace contraflow
