#include "common/block.h"

namespace contraflow {

namespace {

constexpr std::uint64_t kPsPerSecond = 1'000'000'000'000ULL;
__extension__ using Wide = unsigned __int128;

}  // namespace

ClockDomain::ClockDomain(const sc_core::sc_module_name& name, std::int64_t hz, RunMode run_mode)
    : sc_core::sc_module(name), hz_(hz), clocked_(run_mode == RunMode::Clocked) {
    const auto rate = static_cast<std::uint64_t>(hz);
    if (kPsPerSecond % rate == 0) {
        period_ps_ = kPsPerSecond / rate;
    }
    if (clocked_) {
        SC_HAS_PROCESS(ClockDomain);
        SC_METHOD(generate);
    }
}

std::uint64_t ClockDomain::edge_ps(Cycle edge) const {
    if (period_ps_ != 0) {
        return edge * period_ps_;
    }
    return static_cast<std::uint64_t>(Wide{edge} * kPsPerSecond / static_cast<std::uint64_t>(hz_));
}

Cycle ClockDomain::first_edge_after(std::uint64_t ps) const {
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
    tick_.notify();
    next_trigger(sc_core::sc_time::from_value(edge_ps(cycle_ + 1) - edge_ps(cycle_)));
}

Block::Block(const sc_core::sc_module_name& name, ClockDomain& clock, Clocking clocking)
    : sc_core::sc_module(name),
      clock_(clock),
      stepped_(clock.clocked() && clocking == Clocking::EveryEdge),
      clocked_(clock.clocked()) {
    SC_HAS_PROCESS(Block);
    if (stepped_) {
        SC_METHOD(on_tick);
        sensitive << clock_.tick();
        dont_initialize();
    } else {
        SC_METHOD(on_wake);
        sensitive << wake_;
        dont_initialize();
        schedule(0);
    }
}

void Block::on_tick() {
    cycle_ = clock_.cycle();
    now_ps_ = sc_core::sc_time_stamp().value();
    edge();
}

void Block::on_wake() {
    const Cycle now = scheduled_;
    scheduled_ = kNever;
    now_ps_ = sc_core::sc_time_stamp().value();
    if (now > next_unseen_) {
        advance(now - next_unseen_);
    }
    cycle_ = now;
    next_unseen_ = now + 1;
    edge();
    const Cycle wait = clocked_ && has_work() ? 1 : next_event();
    if (wait != kNever) {
        schedule(now + wait);
    }
    // A word posted at this very edge, before this block took it, is for the next one.
    if (posted_ != kNever) {
        const Cycle edge_of_word = posted_;
        posted_ = kNever;
        if (edge_of_word > now) {
            schedule(edge_of_word);
        }
    }
}

void Block::schedule(Cycle edge) {
    if (edge >= scheduled_) {
        if (edge > scheduled_ && edge < posted_) {
            posted_ = edge;
        }
        return;
    }
    scheduled_ = edge;
    wake_.notify(sc_core::sc_time::from_value(clock_.edge_ps(edge) - sc_core::sc_time_stamp().value()));
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
        schedule(clock_.first_edge_after(ps));
    }
}

}  // namespace contraflow
