#include "common/access_cost.h"

#include <algorithm>

namespace contraflow {

AccessCost AccessCounter::cost(const RamGeometry& ram, std::int64_t base, const std::int32_t* offsets,
                               std::int64_t count) {
    lines_.clear();
    for (std::int64_t i = 0; i < count; ++i) {
        lines_.push_back((base + offsets[i]) / ram.lanes);
    }
    return this->count(ram);
}

AccessCost AccessCounter::cost(const RamGeometry& ram, std::int64_t base, const std::vector<std::int32_t>& outer,
                               std::int64_t outer_begin, std::int64_t outer_end,
                               const std::vector<std::int32_t>& inner, std::int64_t inner_begin,
                               std::int64_t inner_end) {
    lines_.clear();
    const std::int64_t outer_count = outer.empty() ? 1 : outer_end - outer_begin;
    const std::int64_t inner_count = inner.empty() ? 1 : inner_end - inner_begin;
    for (std::int64_t i = 0; i < outer_count; ++i) {
        const std::int64_t line_base = base + AccessTable::at(outer, outer_begin + i);
        for (std::int64_t j = 0; j < inner_count; ++j) {
            lines_.push_back((line_base + AccessTable::at(inner, inner_begin + j)) / ram.lanes);
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
    std::sort(lines_.begin(), lines_.end());
    lines_.erase(std::unique(lines_.begin(), lines_.end()), lines_.end());
    per_bank_.assign(static_cast<std::size_t>(ram.banks), 0);
    for (const std::int64_t line : lines_) {
        std::int32_t& rows = per_bank_[static_cast<std::size_t>(line % ram.banks)];
        ++rows;
        result.cycles = std::max(result.cycles, rows);
    }
    result.rows = static_cast<std::int32_t>(lines_.size());
    return result;
}

}  // namespace contraflow
