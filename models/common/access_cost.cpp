#include "common/access_cost.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace contraflow {

namespace {

constexpr std::int32_t kSingle = 0;  // offsets of an index that moves nothing

bool is_power_of_two(std::size_t n) {
    return (n & (n - 1)) == 0;
}

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

std::int32_t AccessCounter::Words::step() const {
    const std::int32_t step = inside_count > 1 ? inside[1] - inside[0] : 0;
    bool even = step >= 0;
    for (std::int64_t j = 2; j < inside_count; ++j) {
        even &= inside[j] - inside[j - 1] == step;
    }
    return even ? step : -1;
}

bool AccessCounter::Words::in_order(bool even) const {
    bool ordered = true;
    for (std::int64_t j = 1; j < inside_count && !even; ++j) {
        ordered &= inside[j - 1] <= inside[j];
    }
    const std::int32_t span = inside[inside_count - 1] - inside[0];
    for (std::int64_t i = 1; i < outside_count; ++i) {
        ordered &= outside[i - 1] + span <= outside[i];
    }
    return ordered;
}

AccessCost AccessCounter::cost(const RamGeometry& ram, std::int64_t base, const std::int32_t* offsets,
                               std::int64_t count) {
    return cost(ram, Words{base, &kSingle, 1, offsets, count});
}

AccessCost AccessCounter::cost(const RamGeometry& ram, std::int64_t base, const std::vector<std::int32_t>& table,
                               std::int64_t begin, std::int64_t end) {
    return table.empty() ? cost(ram, base, &kSingle, 1) : cost(ram, base, table.data() + begin, end - begin);
}

AccessCost AccessCounter::cost(const RamGeometry& ram, std::int64_t base, const std::vector<std::int32_t>& outer,
                               std::int64_t outer_begin, std::int64_t outer_end, const std::vector<std::int32_t>& inner,
                               std::int64_t inner_begin, std::int64_t inner_end) {
    Words words{base, &kSingle, 1, &kSingle, 1};
    if (!outer.empty()) {
        words.outside = outer.data() + outer_begin;
        words.outside_count = outer_end - outer_begin;
    }
    if (!inner.empty()) {
        words.inside = inner.data() + inner_begin;
        words.inside_count = inner_end - inner_begin;
    }
    // Words in order need no sorting: the wider steps go outside.
    if (words.outside_count > 1 && words.inside_count > 1 &&
        words.inside[1] - words.inside[0] > words.outside[words.outside_count - 1] - words.outside[0]) {
        std::swap(words.outside, words.inside);
        std::swap(words.outside_count, words.inside_count);
    }
    return cost(ram, words);
}

AccessCost AccessCounter::cost(const RamGeometry& ram, const Words& words) {
    return with_line_of(ram, [&](auto line_of) {
        const std::int32_t step = words.step();
        if (keeps_rows_ || !words.in_order(step >= 0)) {
            return count(ram, words, line_of);
        }
        if (words.outside_count == 1 && (step == 1 || (step >= 0 && step % ram.lanes == 0))) {
            const std::int64_t first = words.base + words.outside[0] + words.inside[0];
            const std::int64_t lines = step == 1  ? line_of(first + words.inside_count - 1) - line_of(first) + 1
                                       : step > 0 ? words.inside_count
                                                  : 1;
            return count_even(ram, words.inside_count, lines, std::max(1, step / ram.lanes));
        }
        return step == 1 ? count_runs(ram, words, line_of) : count_in_order(ram, words, line_of);
    });
}

// Lines that are evenly apart meet some of the banks in turn.
AccessCost AccessCounter::count_even(const RamGeometry& ram, std::int64_t words, std::int64_t lines,
                                     std::int32_t lines_apart) {
    AccessCost result;
    result.words = static_cast<std::int32_t>(words);
    result.rows = static_cast<std::int32_t>(lines);
    const std::int32_t banks = lines_apart == 1 ? ram.banks : ram.banks / std::gcd(lines_apart, ram.banks);
    result.cycles = (result.rows + banks - 1) / banks;
    return result;
}

// Runs of neighbouring words: every run adds one row to the banks from its first line's to its last one's.
template <typename LineOf>
AccessCost AccessCounter::count_runs(const RamGeometry& ram, const Words& words, LineOf line_of) {
    const std::int64_t banks = ram.banks;
    per_bank_.assign(static_cast<std::size_t>(banks) + 1, 0);  // more rows than in the bank before
    AccessCost result;
    result.words = static_cast<std::int32_t>(words.outside_count * words.inside_count);
    std::int64_t turns = 0;  // around all banks
    std::int64_t previous = -1;
    for (std::int64_t i = 0; i < words.outside_count; ++i) {
        const std::int64_t begin = words.base + words.outside[i] + words.inside[0];
        const std::int64_t last = line_of(begin + words.inside_count - 1);
        std::int64_t first = line_of(begin);
        first += first == previous ? 1 : 0;
        previous = last;
        std::int64_t count = last - first + 1;
        result.rows += static_cast<std::int32_t>(count);
        for (; count >= banks; count -= banks) {
            ++turns;
        }
        const auto from = static_cast<std::size_t>(first % banks);
        const auto to = static_cast<std::size_t>((first + count) % banks);
        ++per_bank_[from];
        --per_bank_[to];
        per_bank_[0] += to < from ? 1 : 0;
    }
    std::int32_t rows = 0;
    for (std::size_t bank = 0; bank < static_cast<std::size_t>(banks); ++bank) {
        rows += per_bank_[bank];
        result.cycles = std::max(result.cycles, rows);
    }
    result.cycles += static_cast<std::int32_t>(turns);
    return result;
}

// Equal lines follow one another.
template <typename LineOf>
AccessCost AccessCounter::count_in_order(const RamGeometry& ram, const Words& words, LineOf line_of) {
    const auto banks = static_cast<std::size_t>(ram.banks);
    per_bank_.assign(banks, 0);
    const auto pass = [&](auto bank_of) {
        std::int32_t rows = 0;
        std::int64_t previous = -1;
        for (std::int64_t i = 0; i < words.outside_count; ++i) {
            const std::int64_t from = words.base + words.outside[i];
            for (std::int64_t j = 0; j < words.inside_count; ++j) {
                const std::int64_t line = line_of(from + words.inside[j]);
                const std::int32_t is_new = line != previous ? 1 : 0;
                previous = line;
                per_bank_[bank_of(static_cast<std::size_t>(line))] += is_new;
                rows += is_new;
            }
        }
        return rows;
    };
    AccessCost result;
    result.words = static_cast<std::int32_t>(words.outside_count * words.inside_count);
    result.rows = is_power_of_two(banks) ? pass([banks](std::size_t line) { return line & (banks - 1); })
                                         : pass([banks](std::size_t line) { return line % banks; });
    for (const std::int32_t rows : per_bank_) {
        result.cycles = std::max(result.cycles, rows);
    }
    return result;
}

template <typename LineOf>
AccessCost AccessCounter::count(const RamGeometry& ram, const Words& words, LineOf line_of) {
    lines_.clear();
    for (std::int64_t i = 0; i < words.outside_count; ++i) {
        for (std::int64_t j = 0; j < words.inside_count; ++j) {
            lines_.push_back(line_of(words.base + words.outside[i] + words.inside[j]));
        }
    }
    std::sort(lines_.begin(), lines_.end());
    const auto banks = static_cast<std::size_t>(ram.banks);
    per_bank_.assign(banks, 0);
    AccessCost result;
    result.words = static_cast<std::int32_t>(lines_.size());
    lines_.erase(std::unique(lines_.begin(), lines_.end()), lines_.end());
    result.rows = static_cast<std::int32_t>(lines_.size());
    for (const std::int64_t line : lines_) {
        result.cycles = std::max(result.cycles, ++per_bank_[static_cast<std::size_t>(line) % banks]);
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
