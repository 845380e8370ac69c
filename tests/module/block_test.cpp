// Clocks, mailboxes and the two drivers of a block.
#include <catch2/catch.hpp>

#include <vector>

#include "common/block.h"
#include "common/mailbox.h"
#include "support/expected_reports.h"

using namespace contraflow;

namespace {

// Counts down from a posted number, then posts the edge back. Idles between.
class Countdown : public Block {
public:
    Mailbox<int> in{*this};
    sc_core::sc_port<MailboxIf<Cycle>> out{"out"};
    std::uint64_t busy = 0, idle = 0, edges = 0;

    Countdown(const sc_core::sc_module_name& name, ClockDomain& clock, Clocking clocking = Clocking::EveryEdge)
        : Block(name, clock, clocking) {}

private:
    int left_ = 0;

    void edge() override {
        ++edges;
        if (left_ == 0 && in.ready()) {
            left_ = in.take();
        }
        if (left_ == 0) {
            ++idle;
            return;
        }
        ++busy;
        if (--left_ == 0) {
            out->post(cycle());
        }
    }
    Cycle next_event() const override { return left_ == 0 ? (in.ready() ? 1 : kNever) : static_cast<Cycle>(left_); }
    void advance(Cycle n) override {
        if (left_ == 0) {
            idle += n;
        } else {
            busy += n;
            left_ -= static_cast<int>(n);
        }
    }
    bool has_work() const override { return left_ > 0; }
};

// Posts a number every so many edges and notes when answers come.
class Source : public Block {
public:
    Mailbox<Cycle, 64> answers{*this};
    sc_core::sc_port<MailboxIf<int>> out{"out"};
    std::vector<Cycle> seen, values;

    Source(const sc_core::sc_module_name& name, ClockDomain& clock, std::vector<int> work)
        : Block(name, clock), work_(std::move(work)) {}

private:
    std::vector<int> work_;
    std::size_t next_ = 0;
    bool waiting_ = false;

    void edge() override {
        while (answers.ready()) {
            values.push_back(answers.take());
            seen.push_back(cycle());
            waiting_ = false;
        }
        if (!waiting_ && next_ < work_.size()) {
            out->post(work_[next_++]);
            waiting_ = true;
        }
    }
    Cycle next_event() const override { return kNever; }
    void advance(Cycle) override {}
};

struct Bench {
    ClockDomain clk, clk_other;
    Source source;
    Countdown countdown;

    Bench(RunMode run_mode, std::int64_t hz, std::int64_t other_hz, const std::vector<int>& work)
        : clk("clk", hz, run_mode),
          clk_other("clk_other", other_hz, run_mode),
          source("source", clk, work),
          countdown("countdown", clk_other) {
        source.out.bind(countdown.in);
        countdown.out.bind(source.answers);
    }
};

}  // namespace

TEST_CASE("edge k of a clock is at floor(k 10^12 / f) picoseconds") {
    ClockDomain whole("whole", 100'000'000, RunMode::Leap);
    CHECK(whole.edge_ps(7) == 70'000);
    ClockDomain odd("odd", 133'333'333, RunMode::Leap);
    CHECK(odd.edge_ps(1) == 7500);
    CHECK(odd.edge_ps(3) == 22500);
    CHECK(odd.edge_ps(400'000'000) == 3'000'000'007'500ULL);
    for (const std::uint64_t ps : {0ULL, 7499ULL, 7500ULL, 7501ULL, 22500ULL, 3'000'000'007'500ULL}) {
        const Cycle edge = odd.first_edge_after(ps);
        CHECK(odd.edge_ps(edge) > ps);
        CHECK(odd.edge_ps(edge - 1) <= ps);
    }
}

TEST_CASE("a word posted at one edge is seen at the next") {
    Bench bench(RunMode::Clocked, 100'000'000, 100'000'000, {1, 1, 5});
    sc_core::sc_start(sc_core::sc_time(200, sc_core::SC_NS));
    // Posted at 0, seen at 1 and answered there, seen at 2, and so on.
    CHECK(bench.source.seen == std::vector<Cycle>{2, 4, 10});
    CHECK(bench.countdown.busy == 7);
}

TEST_CASE("leap takes the same edges with fewer activations") {
    Bench bench(RunMode::Leap, 100'000'000, 100'000'000, {1, 1, 5});
    sc_core::sc_start(sc_core::sc_time(200, sc_core::SC_NS));
    CHECK(bench.source.seen == std::vector<Cycle>{2, 4, 10});
    bench.countdown.catch_up(20);
    CHECK(bench.countdown.busy == 7);
    CHECK(bench.countdown.busy + bench.countdown.idle == 21);
    CHECK(bench.countdown.edges < 7);
}

TEST_CASE("at coincident edges of two clocks both see what was there before, clocked") {
    Bench bench(RunMode::Clocked, 100'000'000, 300'000'000, {1, 1});
    sc_core::sc_start(sc_core::sc_time(200, sc_core::SC_NS));
    // Posted at 0 ns; the fast clock's next edge is at 3.333 ns; the answer is seen at 10 ns.
    CHECK(bench.source.values == std::vector<Cycle>{1, 4});
    CHECK(bench.source.seen == std::vector<Cycle>{1, 2});
}

TEST_CASE("at coincident edges of two clocks both see what was there before, leap") {
    Bench bench(RunMode::Leap, 100'000'000, 300'000'000, {1, 1});
    sc_core::sc_start(sc_core::sc_time(200, sc_core::SC_NS));
    CHECK(bench.source.values == std::vector<Cycle>{1, 4});
    CHECK(bench.source.seen == std::vector<Cycle>{1, 2});
}

TEST_CASE("a mailbox that overflows is a broken invariant") {
    ClockDomain clk("clk", 100'000'000, RunMode::Leap);
    Countdown reader("reader", clk);
    Source source("source", clk, {});
    reader.out.bind(source.answers);
    source.out.bind(reader.in);
    for (int i = 0; i < 4; ++i) {
        reader.in.post(i);
    }
    test::expect_reports(sc_core::SC_ERROR);
    CHECK_THROWS_WITH(reader.in.post(4), Catch::Contains("overflows"));
}
