// Transfers of several rows: which bursts they are, and what rows that tokens choose cost beside them.
#include <catch2/catch.hpp>

#include "common/messages.h"
#include "module/one_kernel.h"

using namespace contraflow;
using namespace contraflow::test;

namespace {

constexpr std::int64_t kBurstWords = 128;  // 16 beats of 32 bytes

bool same(const KernelResult& a, const KernelResult& b) {
    return a.cycles == b.cycles && a.busy == b.busy && a.dram == b.dram && a.port == b.port && a.pipeline == b.pipeline;
}

}  // namespace

TEST_CASE("rows of whole bursts that follow each other are the transfer of one row") {
    const Config config = small_machine();
    for (const bool to_chip : {true, false}) {
        const KernelResult one = run_alone(config, transfer_step(4 * kBurstWords, 0, to_chip));
        const KernelResult rows = run_alone(config, rows_transfer_step(4, kBurstWords, kBurstWords, 0, to_chip));
        CHECK(same(one, rows));
    }
}

TEST_CASE("short rows are a burst each: as many beats to move, at least one per row") {
    const Config config = small_machine();
    const std::int64_t beat_words = config.dma.beat_bytes / 4;
    for (const std::int64_t row_words : {std::int64_t{1}, beat_words - 1, beat_words, beat_words + 1}) {
        const KernelResult result = run_alone(config, rows_transfer_step(6, row_words, 256, 0, true));
        CAPTURE(row_words);
        CHECK(result.busy == static_cast<std::uint64_t>(6 * ((row_words + beat_words - 1) / beat_words)));
    }
}

TEST_CASE("rows that tokens choose wait for their ids, a port and one word per cycle") {
    const Config config = small_machine();
    for (const std::int64_t rows : {1, 3, 8}) {
        // All tokens are 0, so that the rows are all the first of the table.
        const KernelResult fixed = run_alone(config, rows_transfer_step(rows, kBurstWords, 0, 0, true));
        const KernelResult chosen =
            run_alone(config, rows_transfer_step(rows, kBurstWords, 0, 0, true, {1, 50, kBurstWords}));
        CAPTURE(rows);
        const std::uint64_t ids = kGrantEdges + static_cast<std::uint64_t>(rows) - 1 +
                                  static_cast<std::uint64_t>(config.memory.lutram_read_latency_cycles);
        CHECK(chosen.busy == fixed.busy + static_cast<std::uint64_t>(rows));
        // The memory's clock meets the request at another phase: a cycle more or less at either crossing.
        CHECK(chosen.cycles + 2 >= fixed.cycles + ids);
        CHECK(chosen.cycles <= fixed.cycles + ids + 2);
    }
}

TEST_CASE("rows count the same under leap") {
    const Config config = small_machine();
    for (const bool to_chip : {true, false}) {
        for (const TokenDigit token : {TokenDigit{}, TokenDigit{1, 50, 100}}) {
            const Step step = rows_transfer_step(5, 100, 200, 64, to_chip, token);
            CHECK(same(run_alone(config, step, RunMode::Clocked), run_alone(config, step, RunMode::Leap)));
        }
    }
}
