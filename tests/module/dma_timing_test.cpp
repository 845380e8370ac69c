// Transfers run alone take exactly the cycles of docs/timing.md, "DMA and DRAM", computed from both clocks.
#include <catch2/catch.hpp>

#include <algorithm>
#include <deque>
#include <vector>

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
        const std::int64_t most = std::int64_t{config.dma.burst_beats} * config.dma.beat_bytes;
        const std::int64_t count = std::min({bytes, most, 4096 - address % 4096});
        bursts.push_back({address, count});
        address += count;
        bytes -= count;
    }
    return bursts;
}

// Edge at which the sequencer sees a transfer to the chip done, `start` being the edge that posted its command. No
// refresh is near.
std::int64_t load_end(const Config& config, std::int64_t start, std::int64_t address, std::int64_t words) {
    const Edges fabric{1'000'000'000'000 / config.fabric_hz};
    const Edges memory{1'000'000'000'000 / config.dram.clock_hz};
    const std::vector<Burst> bursts = axi_bursts(config, address, words * 4);
    const std::int64_t granule = std::int64_t{config.dram.bus_bits} / 8 * config.dram.burst_length;
    std::int64_t bus_free = 0;
    std::int64_t moved = 0;  // edge after the last word of the burst before
    std::deque<std::int64_t> landed;
    for (std::size_t i = 0; i < bursts.size(); ++i) {
        // One request a cycle, at most `outstanding` between request and last word on the chip.
        std::int64_t sent = start + 1 + config.dma.request_latency_cycles + static_cast<std::int64_t>(i);
        if (i >= static_cast<std::size_t>(config.dma.outstanding)) {
            sent = std::max(sent, landed[i - static_cast<std::size_t>(config.dma.outstanding)]);
        }
        const std::int64_t taken = memory.after(fabric.time(sent));
        const std::int64_t granules =
            (bursts[i].address + bursts[i].bytes - 1) / granule - bursts[i].address / granule + 1;
        const std::int64_t data = std::max(taken + config.dram.nRCD + config.dram.nCL, bus_free);
        bus_free = data + granules * config.dram.burst_length / 2;
        const std::int64_t usable = fabric.after(memory.time(bus_free)) + config.dma.response_latency_cycles;
        const std::int64_t beats = (bursts[i].bytes + config.dma.beat_bytes - 1) / config.dma.beat_bytes;
        const std::int64_t begin = std::max(usable, moved);
        moved = begin + beats;
        landed.push_back(moved - 1);
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
    const Edges memory{1'000};
    const KernelResult result = run_alone(config, transfer_step(3, 0, false));
    // Command, ports, one beat; read and adapter; DRAM write; adapter; completion.
    const auto moved = static_cast<std::int64_t>(result.start) + 3;
    const std::int64_t sent = moved + config.memory.bram_read_latency_cycles + config.dma.request_latency_cycles;
    const std::int64_t done = memory.after(fabric.time(sent)) + config.dram.nRCD + config.dram.nCWL + 4;
    const std::int64_t end = fabric.after(memory.time(done)) + config.dma.response_latency_cycles + 1;
    CHECK(static_cast<std::int64_t>(result.start + result.cycles) == end);
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
