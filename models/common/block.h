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
#include <vector>

#include "common/cycle.h"
#include "contraflow/config.h"

namespace contraflow {

class Block;

// A clock domain. Edge k is at floor(k * 10^12 / hz) ps, in exact integers.
//
// Under `clocked` it makes an event at every edge, to which the blocks' processes are sensitive. Blocks that sleep
// between edges (all under `leap`, clock-gated ones always) are on the domain's agenda instead: one process wakes at
// the next edge that any of them asked for and lets those take it. One activation per edge that matters, not per block.
class ClockDomain : public sc_core::sc_module {
public:
    ClockDomain(const sc_core::sc_module_name& name, std::int64_t hz, RunMode run_mode);

    [[nodiscard]] std::uint64_t edge_ps(Cycle edge) const;         // time of an edge
    [[nodiscard]] Cycle first_edge_after(std::uint64_t ps) const;  // first edge later than a time
    [[nodiscard]] Cycle cycle() const { return cycle_; }           // latest edge taken
    [[nodiscard]] bool clocked() const { return clocked_; }

    // The other domains of a machine whose blocks sleep: this one runs ahead of SystemC's time up to their next edges.
    // REQUIRES: nothing outside the domains depends on SystemC's time while they run.
    void run_ahead(std::vector<const ClockDomain*> others) { others_ = std::move(others); }
    // Running ahead stops at this time, so that sc_start returns and its caller can look at the machine.
    void set_horizon(std::uint64_t ps) { horizon_ps_ = ps; }

    // A window for observers: from the present edge on, blocks that sleep between edges take every edge while they have
    // work, and SystemC's time is that of the edge, so that all of them stand at the same edge when it has been taken.
    // It changes no count (clocked equals leap). Call open_window while an edge is taken, in every domain of a machine;
    // enter_window when SystemC's time has come to it (at_edge) and it has been taken; close_window any time after.
    void open_window();
    void enter_window();
    void close_window() { window_ = Window::Closed; }
    [[nodiscard]] bool in_window() const { return window_ == Window::Entered; }
    [[nodiscard]] bool at_edge() const { return started_ && sc_core::sc_time_stamp().value() == cycle_ps_; }

    // Time of the edge that is being taken, in whichever domain; SystemC's time outside of edges.
    [[nodiscard]] static std::uint64_t now_ps();

private:
    friend class Block;

    // The event of each edge (clocked only); a clock that nobody asks for it does not run.
    [[nodiscard]] const sc_core::sc_event& tick() {
        runs_ = true;
        return tick_;
    }
    // Puts a sleeping block on the agenda; returns its place.
    [[nodiscard]] std::size_t enlist(Block& block);
    // The block takes this edge, or an earlier one that it asked for already.
    void schedule(std::size_t place, Cycle edge);

    void generate();
    void take_due_edges();
    void arm(std::uint64_t ps);
    [[nodiscard]] bool lands_on(Cycle edge);
    [[nodiscard]] bool may_run_ahead_to(std::uint64_t ps) const;

    std::int64_t hz_;
    bool clocked_;
    std::uint64_t period_ps_ = 0;  // exact period where it is a whole number of ps, else 0
    Cycle cycle_ = 0;
    std::uint64_t cycle_ps_ = 0;  // time of cycle_
    bool runs_ = false;
    bool started_ = false;
    sc_core::sc_event tick_;

    enum class Window { Closed, Opening, Entered };
    Window window_ = Window::Closed;
    bool landing_ = false;  // the edge at which a window opens is taken, SystemC's time is on its way to it
    std::vector<Block*> blocks_;

    std::vector<Block*> sleepers_;
    std::vector<Cycle> due_;     // by sleeper: next edge it takes
    std::vector<Cycle> posted_;  // by sleeper: a later edge that a word asked for meanwhile
    Cycle armed_ = 0;            // next edge of the agenda
    Cycle next_ = kNever;        // the one after, while armed_ is being taken
    bool taking_ = false;
    std::vector<const ClockDomain*> others_;
    std::uint64_t horizon_ps_ = 0;
    static std::uint64_t latest_ps_;  // time of the latest edge that any domain took
    sc_core::sc_event agenda_;
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
    // A window begins at the present edge, which has been taken: what only followed edges keep up to date is made up
    // for.
    virtual void begin_window() {}

    // True where each edge is stepped: values are then computed edge by edge, otherwise in bulk.
    [[nodiscard]] bool stepped() const { return stepped_; }

private:
    friend class ClockDomain;

    void on_tick();
    // Takes an edge after having slept; returns the edge it wants next.
    [[nodiscard]] Cycle take(Cycle edge, std::uint64_t ps);

    ClockDomain& clock_;
    bool stepped_;
    bool clocked_;
    Cycle cycle_ = 0;
    Cycle next_unseen_ = 0;  // first edge not yet taken
    std::uint64_t now_ps_ = 0;
    std::size_t place_ = 0;  // on the clock's agenda
};

}  // namespace contraflow
