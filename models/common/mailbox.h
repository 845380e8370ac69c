// The register between two blocks. A value posted at one edge can be taken from the reader's next edge on, never at the
// same one, so nothing crosses two blocks within an edge and the order in which processes run does not matter.
//
// The stamp is a time, not an edge number: between clock domains, a value posted at time t is seen by the first edge of
// the reader's clock later than t, so that at coincident edges both domains read what was there before.
// The depth covers what the protocol of the link allows in flight; more is a broken invariant, not back-pressure.
#pragma once

#include <array>
#include <cstdint>
#include <systemc>

#include "common/block.h"
#include "common/sim_check.h"

namespace contraflow {

// Writing side, bound to a writer's sc_port.
template <typename T>
class MailboxIf : public virtual sc_core::sc_interface {
public:
    virtual void post(const T& value) = 0;
};

template <typename T, std::size_t kDepth = 4>
class Mailbox : public MailboxIf<T> {
public:
    explicit Mailbox(Block& reader) : reader_(reader) {}

    void post(const T& value) override {
        if (!listens_) {
            return;
        }
        SIM_CHECK(posted_ - taken_ < kDepth, "mailbox of " << reader_.name() << " overflows");
        const std::uint64_t now = ClockDomain::now_ps();
        Entry& entry = entries_[posted_ % kDepth];
        entry.ps = now;
        entry.value = value;
        ++posted_;
        reader_.wake_after(now);
    }

    // True when a value posted before the present edge waits.
    [[nodiscard]] bool ready() const { return posted_ != taken_ && entries_[taken_ % kDepth].ps < reader_.now_ps(); }

    // REQUIRES: ready().
    [[nodiscard]] T take() { return entries_[taken_++ % kDepth].value; }

    // Words that come while the reader does not listen are dropped: another block gets the same and acts for both.
    void stop_listening() { listens_ = false; }
    // From now on this reader takes the words itself, those that wait for the other one included.
    void listen_again(const Mailbox& other) {
        entries_ = other.entries_;
        posted_ = other.posted_;
        taken_ = other.taken_;
        listens_ = true;
        if (posted_ != taken_) {
            reader_.wake_after(ClockDomain::now_ps());
        }
    }

private:
    struct Entry {
        std::uint64_t ps = 0;
        T value{};
    };

    Block& reader_;
    std::array<Entry, kDepth> entries_{};
    std::uint64_t posted_ = 0;
    std::uint64_t taken_ = 0;
    bool listens_ = true;
};

}  // namespace contraflow
