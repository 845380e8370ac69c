#include "common/command.h"

namespace contraflow {

const char* to_string(RamKind kind) {
    return kind == RamKind::Lutram ? "lutram" : kind == RamKind::Bram ? "bram" : "uram";
}

void AccessTable::find_runs() {
    const auto step_of = [](const std::vector<std::int32_t>& table) -> std::int64_t {
        const std::int64_t step = table.size() > 1 ? table[1] : 0;
        for (std::size_t i = 0; i < table.size(); ++i) {
            if (table[i] != static_cast<std::int64_t>(i) * step) {
                return -1;
            }
        }
        return step;
    };
    const auto counts_up = [&](const std::vector<std::int32_t>& table) {
        return table.size() == 1 || (table.size() > 1 && step_of(table) == 1);
    };
    row_contiguous = counts_up(row);
    col_contiguous = counts_up(col);
    depth_step = step_of(depth);
}

}  // namespace contraflow
