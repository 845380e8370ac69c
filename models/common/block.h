// The clock and the base of every hardware block: one behaviour, two drivers.
//
// A block is a state machine in three functions. edge() acts on one clock edge; next_event() says at how many edges
// from the last one its outputs or its state may next change if its inputs hold (1 is always right, kNever: only an
// input can wake it); advance(n), n < next_event(), equals n edges with held inputs. `clocked` calls edge() at every
// edge; `leap` lets a block sleep until its own next event or until a word arrives in one of its mailboxes, then calls
// advance() for the edges slept through and edge() for the present one. Nothing else differs between the two.
#pragma once

#include <cstdint>
#include <systemc>

#include "contraflow/config.h"

namespace contraflow {

using Cycle = std::uint64_t;
inline constexpr Cycle kNever = ~Cycle{0};

// A clock domain. Edge k is at floor(k * 10^12 / hz) ps, in exact integers.
class ClockDomain : public sc_core::sc_module {
public:
    ClockDomain(const sc_core::sc_module_name& name, std::int64_t hz, RunMode run_mode);

    [[nodiscard]] std::uint64_t edge_ps(Cycle edge) const;         // time of an edge
    [[nodiscard]] Cycle first_edge_after(std::uint64_t ps) const;  // first edge later than a time
    [[nodiscard]] Cycle cycle() const { return cycle_; }           // latest edge (clocked only)
    [[nodiscard]] bool clocked() const { return clocked_; }
    [[nodiscard]] std::int64_t hz() const { return hz_; }
    // The event of each edge (clocked only); a clock that nobody asks for it does not run.
    [[nodiscard]] const sc_core::sc_event& tick() {
        runs_ = true;
        return tick_;
    }

private:
    void generate();

    std::int64_t hz_;
    bool clocked_;
    std::uint64_t period_ps_ = 0;  // exact period where it is a whole number of ps, else 0
    Cycle cycle_ = 0;
    bool runs_ = false;
    bool started_ = false;
    sc_core::sc_event tick_;
};

// How a block is driven under `clocked`: at every edge of its domain, or (a clock-gated block) at every edge while it
// has work and not at all while it has none. Gating is what the hardware does with a memory controller's clock enable;
// it changes no count.
enum class Clocking { EveryEdge, Gated };

class Block : public sc_core::sc_module {
public:
    // Wakes the block at its first edge after `ps` (a word was posted to it then). No effect on a block that takes
    // every edge anyway.
    void wake_after(std::uint64_t ps);

    // Accounts for the edges up to and including `last` that the block slept through; at the end of a run.
    void catch_up(Cycle last);

    [[nodiscard]] Cycle cycle() const { return cycle_; }  // index of the present edge
    [[nodiscard]] std::uint64_t now_ps() const { return now_ps_; }
    [[nodiscard]] const ClockDomain& clock() const { return clock_; }

protected:
    Block(const sc_core::sc_module_name& name, ClockDomain& clock, Clocking clocking = Clocking::EveryEdge);

    virtual void edge() = 0;
    [[nodiscard]] virtual Cycle next_event() const = 0;
    virtual void advance(Cycle n) = 0;
    [[nodiscard]] virtual bool has_work() const { return true; }  // Clocking::Gated only

    // True where each edge is stepped: values are then computed edge by edge, otherwise in bulk.
    [[nodiscard]] bool stepped() const { return stepped_; }

private:
    void on_tick();
    void on_wake();
    void schedule(Cycle edge);

    ClockDomain& clock_;
    bool stepped_;
    bool clocked_;
    Cycle cycle_ = 0;
    Cycle next_unseen_ = 0;  // first edge not yet taken
    Cycle scheduled_ = kNever;
    Cycle posted_ = kNever;  // edge asked for by a word that came while an earlier edge was still to be taken
    std::uint64_t now_ps_ = 0;
    sc_core::sc_event wake_;
};

}  // namespace contraflow
