// What a burst does at the ports it holds, edge by edge: for observers. The blocks list their bursts by the rules that
// their costs follow from (access_cost.h); a test holds the lists to the costs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/access_cost.h"
#include "common/command.h"
#include "common/messages.h"

namespace contraflow {

// A burst that a block has begun: at the edges begin .. end - 1 it has the ports of the grant on `channel`.
struct BurstView {
    std::uint8_t channel = kOperandBurst;
    std::uint64_t begin = 0, end = 0;

    [[nodiscard]] bool covers(std::uint64_t edge) const { return begin <= edge && edge < end; }
};

// One access of one row of a bank.
struct RowAccess {
    std::uint32_t at = 0;   // edge of the burst, from 0
    std::uint8_t port = 0;  // of the ports that the burst holds of the memory
    bool write = false;
    std::uint16_t bank = 0;
    RamId ram{};
    std::uint32_t row = 0;
};

class BurstAccesses {
public:
    void clear() {
        accesses_.clear();
        next_ = 0;
    }
    // The rows of the last set that `counter` counted, from edge `at` of the burst on.
    void add(AccessCounter& counter, const RamGeometry& ram, RamId id, std::int64_t at, std::size_t port, bool write) {
        counter.for_each_row(ram, [&](std::int32_t bank, std::int64_t row, std::int32_t cycle) {
            accesses_.push_back({static_cast<std::uint32_t>(at + cycle), static_cast<std::uint8_t>(port), write,
                                 static_cast<std::uint16_t>(bank), id, static_cast<std::uint32_t>(row)});
        });
    }
    // In order of edges, after everything has been added.
    void sort() {
        std::stable_sort(accesses_.begin(), accesses_.end(),
                         [](const RowAccess& a, const RowAccess& b) { return a.at < b.at; });
        next_ = 0;
    }
    // Those of edge `at`; edges in ascending order.
    template <typename Visit>
    void take(std::uint64_t at, const Visit& visit) {
        while (next_ < accesses_.size() && accesses_[next_].at < at) {
            ++next_;
        }
        for (; next_ < accesses_.size() && accesses_[next_].at == at; ++next_) {
            visit(accesses_[next_]);
        }
    }
    [[nodiscard]] const std::vector<RowAccess>& all() const { return accesses_; }

private:
    std::vector<RowAccess> accesses_;
    std::size_t next_ = 0;
};

// A kernel that follows token ids reads those of the positions first .. first + count - 1, one word per edge.
inline void list_token_reads(const Program& program, std::int64_t first, std::int64_t count, AccessCounter& counter,
                             BurstAccesses& accesses) {
    const RamGeometry& ram = program.rams[index_of(program.sample.ram)];
    for (std::int64_t i = 0; i < count; ++i) {
        const auto word = static_cast<std::int32_t>(AccessTable::at(program.sample.col, first + i));
        (void)counter.cost(ram, program.sample.base, &word, 1);
        accesses.add(counter, ram, program.sample.ram, i, 0, false);
    }
}

}  // namespace contraflow
