#include "common/access_cost.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace contraflow {

namespace {

// All banks' rows, counted through. Rows of one or two words are the usual ones, and a division is dear.
std::int64_t line_of(const RamGeometry& ram, std::int64_t address) {
    return ram.lanes == 1 ? address : ram.lanes == 2 ? address >> 1 : address / ram.lanes;
}

}  // namespace

AccessCost AccessCounter::cost(const RamGeometry& ram, std::int64_t base, const std::int32_t* offsets,
                               std::int64_t count) {
    lines_.clear();
    for (std::int64_t i = 0; i < count; ++i) {
        lines_.push_back(line_of(ram, base + offsets[i]));
    }
    return this->count(ram);
}

AccessCost AccessCounter::cost(const RamGeometry& ram, std::int64_t base, const std::vector<std::int32_t>& outer,
                               std::int64_t outer_begin, std::int64_t outer_end, const std::vector<std::int32_t>& inner,
                               std::int64_t inner_begin, std::int64_t inner_end) {
    lines_.clear();
    const std::int64_t outer_count = outer.empty() ? 1 : outer_end - outer_begin;
    const std::int64_t inner_count = inner.empty() ? 1 : inner_end - inner_begin;
    for (std::int64_t i = 0; i < outer_count; ++i) {
        const std::int64_t line_base = base + AccessTable::at(outer, outer_begin + i);
        for (std::int64_t j = 0; j < inner_count; ++j) {
            lines_.push_back(line_of(ram, line_base + AccessTable::at(inner, inner_begin + j)));
        }
    }
    return count(ram);
}

AccessCost AccessCounter::count(const RamGeometry& ram) {
    AccessCost result;
    result.words = static_cast<std::int32_t>(lines_.size());
    if (lines_.size() == 1) {
        result.cycles = 1;
        result.rows = 1;
        return result;
    }
    if (!std::is_sorted(lines_.begin(), lines_.end())) {
        std::sort(lines_.begin(), lines_.end());
    }
    // Lines that span no more than all banks once meet no conflict.
    if (lines_.back() - lines_.front() < ram.banks) {
        result.cycles = 1;
        result.rows =
            static_cast<std::int32_t>(1 + std::inner_product(lines_.begin() + 1, lines_.end(), lines_.begin(),
                                                             std::int64_t{0}, std::plus<>(), std::not_equal_to<>()));
        return result;
    }
    const auto banks = static_cast<std::size_t>(ram.banks);
    if (per_bank_.size() < banks) {
        per_bank_.resize(banks);
    }
    std::fill_n(per_bank_.begin(), banks, 0);
    const bool power_of_two = (banks & (banks - 1)) == 0;
    std::int64_t previous = -1;
    for (const std::int64_t line : lines_) {
        if (line == previous) {
            continue;
        }
        previous = line;
        const std::size_t bank =
            power_of_two ? static_cast<std::size_t>(line) & (banks - 1) : static_cast<std::size_t>(line) % banks;
        result.cycles = std::max(result.cycles, ++per_bank_[bank]);
        ++result.rows;
    }
    return result;
}

PortCycles::Turn PortCycles::charge(RamId ram, int ports, std::int64_t cycles) {
    auto use = std::find_if(uses_.begin(), uses_.end(), [ram](const Use& own) { return own.ram == ram; });
    if (use == uses_.end()) {
        uses_.push_back({ram, 0, {}});
        use = std::prev(uses_.end());
    }
    const Turn turn{use->next, use->ports[use->next]};
    use->ports[use->next] += cycles;
    use->next = use->next + 1 < static_cast<std::size_t>(ports) ? use->next + 1 : 0;
    return turn;
}

std::int64_t PortCycles::cycles() const {
    std::int64_t longest = 0;
    for (const Use& use : uses_) {
        longest = std::max(longest, *std::max_element(use.ports.begin(), use.ports.end()));
    }
    return longest;
}

}  // namespace contraflow
