// What it costs to move a set of words through one port of a banked memory: the rule of RamGeometry, applied.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "common/command.h"

namespace contraflow {

struct AccessCost {
    std::int32_t cycles = 0;  // distinct rows in the fullest bank
    std::int32_t rows = 0;    // distinct rows in all banks: accesses of the banks
    std::int32_t words = 0;

    // Cycles above the one that a conflict-free set takes.
    [[nodiscard]] std::int32_t conflict_cycles() const { return cycles > 1 ? cycles - 1 : 0; }
};

// Counts distinct (bank, row) pairs; reusable, so that no call allocates.
class AccessCounter {
public:
    // `keeps_rows`: for_each_row may follow.
    explicit AccessCounter(bool keeps_rows = false) : keeps_rows_(keeps_rows) {}

    // Cost of the words base + offsets[0 .. count). Equal addresses count once: a row read once serves all its readers.
    [[nodiscard]] AccessCost cost(const RamGeometry& ram, std::int64_t base, const std::int32_t* offsets,
                                  std::int64_t count);
    // The same for words base + table[begin .. end); an empty table, of an operand that does not move, is one word.
    [[nodiscard]] AccessCost cost(const RamGeometry& ram, std::int64_t base, const std::vector<std::int32_t>& table,
                                  std::int64_t begin, std::int64_t end);
    // The same for words base + i[..] + j[..], all pairs.
    [[nodiscard]] AccessCost cost(const RamGeometry& ram, std::int64_t base, const std::vector<std::int32_t>& outer,
                                  std::int64_t outer_begin, std::int64_t outer_end,
                                  const std::vector<std::int32_t>& inner, std::int64_t inner_begin,
                                  std::int64_t inner_end);

    // The bank rows that the last cost counted, by row: visit(bank, row, cycle of the set, from 0). REQUIRES: rows are
    // kept, the same memory, and that cost was given the true base.
    template <typename Visit>
    void for_each_row(const RamGeometry& ram, const Visit& visit) {
        per_bank_.assign(static_cast<std::size_t>(ram.banks), 0);
        std::int64_t previous = -1;
        for (const std::int64_t line : lines_) {
            if (line != previous) {
                previous = line;
                const auto bank = static_cast<std::size_t>(line % ram.banks);
                visit(static_cast<std::int32_t>(bank), line / ram.banks, per_bank_[bank]++);
            }
        }
    }

private:
    // Words base + outside[..] + inside[..].
    struct Words {
        std::int64_t base = 0;
        const std::int32_t* outside = nullptr;
        std::int64_t outside_count = 1;
        const std::int32_t* inside = nullptr;
        std::int64_t inside_count = 1;

        [[nodiscard]] std::int32_t step() const;  // between inside offsets; -1: uneven, or backwards
        [[nodiscard]] bool in_order(bool even) const;
    };
    [[nodiscard]] AccessCost cost(const RamGeometry& ram, const Words& words);
    [[nodiscard]] static AccessCost count_even(const RamGeometry& ram, std::int64_t words, std::int64_t lines,
                                               std::int32_t lines_apart);
    template <typename LineOf>
    [[nodiscard]] AccessCost count_runs(const RamGeometry& ram, const Words& words, LineOf line_of);
    template <typename LineOf>
    [[nodiscard]] AccessCost count_in_order(const RamGeometry& ram, const Words& words, LineOf line_of);
    template <typename LineOf>
    [[nodiscard]] AccessCost count(const RamGeometry& ram, const Words& words, LineOf line_of);

    bool keeps_rows_;
    std::vector<std::int64_t> lines_;     // address / lanes of each word
    std::vector<std::int32_t> per_bank_;  // distinct rows of each bank
};

// Cycles of an operation whose operands go through the ports of several memories at once. Operands of one memory take
// its ports in turn; the operation lasts as long as its busiest port.
class PortCycles {
public:
    // Which of the ports that are held of a memory an operand takes, and from which cycle of the operation on.
    struct Turn {
        std::size_t port = 0;
        std::int64_t from = 0;
    };

    void clear() { uses_.clear(); }
    Turn charge(RamId ram, int ports, std::int64_t cycles);
    [[nodiscard]] std::int64_t cycles() const;

private:
    static constexpr std::size_t kMaxPorts = 2;  // of a memory: RamGeometry::ports
    struct Use {
        RamId ram{};
        std::size_t next = 0;
        std::array<std::int64_t, kMaxPorts> ports{};
    };
    std::vector<Use> uses_;
};

}  // namespace contraflow
