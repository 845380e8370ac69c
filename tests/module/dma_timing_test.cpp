// Transfers run alone take exactly the cycles of docs/timing.md, "DMA and DRAM", computed from both clocks.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include "dram/dram_channel.h"
#include "module/one_kernel.h"

using namespace contraflow;
using namespace contraflow::test;

namespace {

// Edges of a clock whose period is a whole number of picoseconds.
struct Edges {
    std::int64_t period_ps;
    [[nodiscard]] std::int64_t after(std::int64_t ps) const { return ps / period_ps + 1; }
    [[nodiscard]] std::int64_t time(std::int64_t edge) const { return edge * period_ps; }
};

struct Burst {
    std::int64_t address, bytes;
};

std::vector<Burst> axi_bursts(const Config& config, std::int64_t address, std::int64_t bytes) {
    std::vector<Burst> bursts;
    while (bytes > 0) {
        const std::int64_t most = std::min<std::int64_t>(std::int64_t{config.dma.burst_beats} * config.dma.beat_bytes,
                                                         config.dram.port_burst_bytes);
        const std::int64_t count = std::min({bytes, most, 4096 - address % 4096});
        bursts.push_back({address, count});
        address += count;
        bytes -= count;
    }
    return bursts;
}

std::int64_t ps_of(double ns) {
    return std::llround(ns * 1000);
}

// For AXI bursts that reach the memory's side of the fabric at `sent` (ps): times at which their responses are back
// there. The channel, whose own cycles other tests pin down, is taken cycle by cycle.
std::vector<std::int64_t> served(const Config& config, const std::vector<Burst>& bursts,
                                 const std::vector<std::int64_t>& sent, bool write) {
    const Edges memory{1'000'000'000'000 / config.dram.clock_hz};
    const std::int64_t request = ps_of(config.dram.controller_ns) / 2 + ps_of(config.dma.interconnect_ns) / 2;
    const std::int64_t response = ps_of(config.dram.controller_ns) + ps_of(config.dma.interconnect_ns) - request;
    struct Piece {
        std::int64_t from;
        std::size_t burst;
        std::int64_t address;
    };
    std::deque<Piece> waiting;
    const std::int64_t granule = config.dram.burst_bytes();
    for (std::size_t i = 0; i < bursts.size(); ++i) {
        const std::int64_t end = bursts[i].address + bursts[i].bytes;
        for (std::int64_t at = bursts[i].address / granule * granule; at < end; at += granule) {
            waiting.push_back({memory.after(sent[i] + request), i, at});
        }
    }
    DramChannel channel(config.dram);
    std::vector<std::int64_t> done(bursts.size(), 0);
    const auto collect = [&] {
        for (const DramChannel::Completion& completion : channel.completions()) {
            done[completion.id] = std::max(done[completion.id], static_cast<std::int64_t>(completion.done));
        }
        channel.clear_completions();
    };
    for (Cycle now = 0; !waiting.empty() || !channel.idle(); ++now) {
        channel.tick(now);
        collect();
        if (!waiting.empty() && waiting.front().from <= static_cast<std::int64_t>(now) && channel.has_room(write)) {
            const Piece piece = waiting.front();
            waiting.pop_front();
            channel.accept(piece.burst, static_cast<std::uint64_t>(piece.address), 1, write, now);
        }
    }
    for (std::int64_t& at : done) {
        at = memory.time(at) + response;
    }
    return done;
}

// Edge at which the sequencer sees a transfer to the chip done, `start` being the edge that posted its command.
// REQUIRES: no more bursts than may be outstanding, and responses in order.
std::int64_t load_end(const Config& config, std::int64_t start, std::int64_t address, std::int64_t words) {
    const Edges fabric{1'000'000'000'000 / config.fabric_hz};
    const std::vector<Burst> bursts = axi_bursts(config, address, words * 4);
    REQUIRE(bursts.size() <= static_cast<std::size_t>(config.dma.outstanding));
    std::vector<std::int64_t> sent;
    for (std::size_t i = 0; i < bursts.size(); ++i) {
        sent.push_back(fabric.time(start + 1 + config.dma.request_latency_cycles + static_cast<std::int64_t>(i)));
    }
    std::int64_t moved = 0;  // edge after the last word of the burst before
    const std::vector<std::int64_t> back = served(config, bursts, sent, false);
    for (std::size_t i = 0; i < bursts.size(); ++i) {
        const std::int64_t usable = fabric.after(back[i]) + config.dma.response_latency_cycles;
        const std::int64_t beats = (bursts[i].bytes + config.dma.beat_bytes - 1) / config.dma.beat_bytes;
        moved = std::max(usable, moved) + beats;
    }
    return moved + 1;  // completion posted one edge after the last beat, seen at the next
}

Config dma_machine() {
    Config config = small_machine();
    config.dram.clock_hz = 1'000'000'000;
    return config;
}

}  // namespace

TEST_CASE("a load takes the closed form for any length and alignment") {
    for (const std::int64_t words : {1, 8, 98, 128, 129, 700}) {
        for (const std::int64_t offset : {0, 4000}) {
            const Config config = dma_machine();
            const KernelResult result = run_alone(config, transfer_step(words, offset, true));
            CAPTURE(words, offset);
            CHECK(static_cast<std::int64_t>(result.start + result.cycles) ==
                  load_end(config, static_cast<std::int64_t>(result.start), offset, words));
        }
    }
}

TEST_CASE("a load takes the closed form for other clocks, bursts and latencies") {
    for (const std::int64_t fabric_hz : {50'000'000, 200'000'000, 250'000'000}) {
        Config config = dma_machine();
        config.fabric_hz = fabric_hz;
        config.dram.bus_bits = 32;
        config.dram.rows = 16;
        config.dram.page_policy = PagePolicy::Closed;
        config.dma.burst_beats = 4;
        config.dma.beat_bytes = 64;
        config.dma.request_latency_cycles = 3;
        config.dma.response_latency_cycles = 9;
        const KernelResult result = run_alone(config, transfer_step(500, 64, true));
        CAPTURE(fabric_hz);
        CHECK(static_cast<std::int64_t>(result.start + result.cycles) ==
              load_end(config, static_cast<std::int64_t>(result.start), 64, 500));
    }
}

TEST_CASE("a store of one burst takes the closed form") {
    const Config config = dma_machine();
    const Edges fabric{10'000};
    const KernelResult result = run_alone(config, transfer_step(3, 0, false));
    // Command, ports, one beat; read and adapter; DRAM; adapter; completion.
    const auto moved = static_cast<std::int64_t>(result.start) + 3;
    const std::int64_t sent = moved + config.memory.bram_read_latency_cycles + config.dma.request_latency_cycles;
    const std::int64_t back = served(config, {{0, 12}}, {fabric.time(sent)}, true).front();
    const std::int64_t end = fabric.after(back) + config.dma.write_response_latency_cycles + 1;
    CHECK(static_cast<std::int64_t>(result.start + result.cycles) == end);
}

TEST_CASE("an idle read takes the round trip that was measured on a board") {
    // Vitis accelerator examples on a U200, DDR4-2400, kernel at 300 MHz: 240 ns. docs/dram.md, "From the fabric".
    const auto round_trip = [](std::int64_t fabric_hz, bool to_chip) {
        Config config = small_machine();
        config.fabric_hz = fabric_hz;
        const KernelResult result = run_alone(config, transfer_step(8, 0, to_chip));
        // Beside it: the command, one beat and the completion; a write also asks for a port and reads its word.
        const int moving = to_chip ? 3 : 4 + config.memory.bram_read_latency_cycles;
        return result.cycles - static_cast<std::uint64_t>(moving);
    };
    CHECK(round_trip(300'000'000, true) == 72);
    CHECK(round_trip(100'000'000, true) == 40);
    CHECK(round_trip(100'000'000, false) == 25);
}

TEST_CASE("short queues hold a transfer up, by the same cycles in both modes") {
    for (const bool to_chip : {true, false}) {
        Config config = dma_machine();
        config.fabric_hz = 300'000'000;
        config.dma.beat_bytes = 128;  // twice what the memory moves
        config.dram.bus_bits = 32;
        config.dram.rows = 16;
        const KernelResult deep = run_alone(config, transfer_step(8000, 100, to_chip));
        config.dram.read_queue = config.dram.write_queue = 2;
        config.dram.port_queue = 1;
        const KernelResult clocked = run_alone(config, transfer_step(8000, 100, to_chip), RunMode::Clocked);
        const KernelResult leap = run_alone(config, transfer_step(8000, 100, to_chip), RunMode::Leap);
        CHECK(clocked.cycles == leap.cycles);
        CHECK(clocked.dram == leap.dram);
        CHECK(clocked.pipeline == leap.pipeline);
        CHECK(leap.cycles > deep.cycles);
    }
}

TEST_CASE("a transfer never gets faster as the memory's bandwidth falls, and an unlimited one never waits for it") {
    for (const bool to_chip : {true, false}) {
        std::uint64_t before = 0;
        for (int bus_bits = 64; bus_bits >= 8; bus_bits /= 2) {
            Config config = dma_machine();
            config.dram.bus_bits = bus_bits;
            config.dram.rows = 8 * 64 / bus_bits;
            const std::uint64_t cycles = run_alone(config, transfer_step(8000, 0, to_chip)).cycles;
            CAPTURE(to_chip, bus_bits);
            CHECK(cycles >= before);
            before = cycles;
        }
    }
    // A memory whose round trip is shorter than a port burst: what remains is one beat per cycle.
    Config config = dma_machine();
    config.dram.clock_hz = 10'000'000'000;
    config.dram.controller_ns = 0;
    config.dma.interconnect_ns = 0;
    const KernelResult result = run_alone(config, transfer_step(8000, 0, true));
    const std::uint64_t first = static_cast<std::uint64_t>(config.dma.request_latency_cycles) +
                                static_cast<std::uint64_t>(config.dma.response_latency_cycles) + 2;
    CHECK(result.busy == 1000);
    CHECK(result.cycles <= 1000 + first + 3);
}

TEST_CASE("transfers count the same under leap") {
    const Config config = dma_machine();
    for (const bool to_chip : {true, false}) {
        const KernelResult clocked = run_alone(config, transfer_step(700, 100, to_chip), RunMode::Clocked);
        const KernelResult leap = run_alone(config, transfer_step(700, 100, to_chip), RunMode::Leap);
        CHECK(clocked.cycles == leap.cycles);
        CHECK(clocked.busy == leap.busy);
        CHECK(clocked.dram == leap.dram);
        CHECK(clocked.port == leap.port);
        CHECK(clocked.pipeline == leap.pipeline);
    }
}
