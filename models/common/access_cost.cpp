#include "common/access_cost.h"

#include <algorithm>

namespace contraflow {

namespace {

// The row of an address, all banks' rows counted through. Rows of one or two words are the usual ones, and a division
// is dear.
template <typename Use>
auto with_line_of(const RamGeometry& ram, Use use) {
    switch (ram.lanes) {
        case 1:
            return use([](std::int64_t address) { return address; });
        case 2:
            return use([](std::int64_t address) { return address >> 1; });
        default:
            return use([lanes = ram.lanes](std::int64_t address) { return address / lanes; });
    }
}

}  // namespace

// Takes the words one by one, and finds on the way what most sets are: in order, and within one turn of the banks.
class AccessCounter::Lines {
public:
    Lines(std::vector<std::int64_t>& lines, std::size_t count) : lines_(lines) { lines_.resize(count); }

    void add(std::int64_t line) {
        sorted_ = sorted_ && line >= previous_;
        distinct_ += line != previous_ ? 1 : 0;
        previous_ = line;
        lines_[count_++] = line;
    }
    [[nodiscard]] bool sorted() const { return sorted_; }
    [[nodiscard]] std::int32_t distinct() const { return distinct_; }  // if sorted

private:
    std::vector<std::int64_t>& lines_;
    std::size_t count_ = 0;
    std::int64_t previous_ = -1;
    std::int32_t distinct_ = 0;
    bool sorted_ = true;
};

AccessCost AccessCounter::cost(const RamGeometry& ram, std::int64_t base, const std::int32_t* offsets,
                               std::int64_t count) {
    return with_line_of(ram, [&](auto line_of) {
        Lines lines(lines_, static_cast<std::size_t>(count));
        for (std::int64_t i = 0; i < count; ++i) {
            lines.add(line_of(base + offsets[i]));
        }
        return this->count(ram, lines);
    });
}

AccessCost AccessCounter::cost(const RamGeometry& ram, std::int64_t base, const std::vector<std::int32_t>& outer,
                               std::int64_t outer_begin, std::int64_t outer_end, const std::vector<std::int32_t>& inner,
                               std::int64_t inner_begin, std::int64_t inner_end) {
    const std::int64_t outer_count = outer.empty() ? 1 : outer_end - outer_begin;
    const std::int64_t inner_count = inner.empty() ? 1 : inner_end - inner_begin;
    return with_line_of(ram, [&](auto line_of) {
        Lines lines(lines_, static_cast<std::size_t>(outer_count * inner_count));
        for (std::int64_t i = 0; i < outer_count; ++i) {
            const std::int64_t row = base + AccessTable::at(outer, outer_begin + i);
            for (std::int64_t j = 0; j < inner_count; ++j) {
                lines.add(line_of(row + AccessTable::at(inner, inner_begin + j)));
            }
        }
        return count(ram, lines);
    });
}

AccessCost AccessCounter::count(const RamGeometry& ram, const Lines& lines) {
    AccessCost result;
    result.words = static_cast<std::int32_t>(lines_.size());
    // Lines that span no more than all banks once meet no conflict.
    if (lines.sorted() && lines_.back() - lines_.front() < ram.banks) {
        result.cycles = 1;
        result.rows = lines.distinct();
        return result;
    }
    if (!lines.sorted()) {
        std::sort(lines_.begin(), lines_.end());
    }
    const auto banks = static_cast<std::size_t>(ram.banks);
    per_bank_.assign(banks, 0);
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
