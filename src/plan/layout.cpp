#include "plan/layout.h"

#include <fmt/format.h>
#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "common/integer_math.h"
#include "contraflow/error.h"

namespace contraflow {

namespace {

using Splits = std::vector<std::int64_t>;

void insert(Splits& splits, std::int64_t point) {
    if (std::find(splits.begin(), splits.end(), point) == splits.end()) {
        splits.push_back(point);
    }
}

bool is_chain(const std::vector<std::int64_t>& points) {
    for (std::size_t i = 1; i < points.size(); ++i) {
        if (points[i] % points[i - 1] != 0) {
            return false;
        }
    }
    return true;
}

// The part of a tensor that one operand of a kernel reaches: offset + the sum of its digits.
struct Reach {
    TensorId tensor = kNoTensor;
    std::int64_t offset = 0;
    std::vector<Digit> digits;

    void start(TensorId of, std::int64_t from) {
        tensor = of;
        offset = from;
        digits.clear();
    }
    void add(std::int64_t extent, std::int64_t stride) {
        if (extent > 1 && stride > 0) {
            digits.push_back({extent, stride});
        }
    }
};

template <typename Visit>
void visit_reaches(const Step& step, const Visit& visit) {
    Reach reach;
    const auto visit_operand = [&](const VectorSegment& segment, const VectorOperand& operand, OperandShape shape) {
        if (operand.tensor == kNoTensor) {
            return;
        }
        reach.start(operand.tensor, operand.offset);
        if (shape == OperandShape::Matrix || shape == OperandShape::Column) {
            reach.add(segment.rows, operand.row_stride);
        }
        if (shape == OperandShape::Matrix || shape == OperandShape::Row) {
            reach.add(segment.cols, 1);
        }
        if (operand.token.modulus != 0) {
            reach.add(operand.token.modulus, operand.token.stride);
        }
        visit(reach);
    };
    for (const Kernel& kernel : step.kernels) {
        if (const auto* contraction = std::get_if<Contraction>(&kernel.work)) {
            for (const Access* access :
                 {&contraction->a, &contraction->b, &contraction->out, &contraction->bias, &contraction->residual}) {
                if (access->tensor == kNoTensor) {
                    continue;
                }
                reach.start(access->tensor, access->offset);
                for (const IndexMap* map : {&access->batch, &access->row, &access->col, &access->depth}) {
                    for (const Digit& digit : *map) {
                        reach.add(digit.extent, digit.stride);
                    }
                }
                if (access->token.modulus != 0) {
                    reach.add(access->token.modulus, access->token.stride);
                }
                visit(reach);
            }
        } else if (const auto* vector = std::get_if<VectorKernel>(&kernel.work)) {
            for (const VectorSegment& segment : vector->segments) {
                for (std::size_t i = 0; i < segment.in.size(); ++i) {
                    visit_operand(segment, segment.in[i], input_shape(segment.op, i));
                }
                for (std::size_t i = 0; i < segment.out.size(); ++i) {
                    visit_operand(segment, segment.out[i], output_shape(segment.op, i));
                }
            }
        }
    }
}

// Whether an operand's offset lies in levels that its digits do not run through, so that offsets of levels add up.
bool offset_stays_apart(const Reach& reach, const Splits& points) {
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
        if (reach.offset / points[i] % (points[i + 1] / points[i]) == 0) {
            continue;
        }
        for (const Digit& digit : reach.digits) {
            if (digit.stride <= points[i] && digit.stride * digit.extent >= points[i + 1]) {
                return false;
            }
        }
    }
    return true;
}

}  // namespace

std::vector<std::vector<std::int64_t>> split_points(const Step& step) {
    std::vector<Splits> splits(step.tensors.size());
    visit_reaches(step, [&](const Reach& reach) {
        for (const Digit& digit : reach.digits) {
            insert(splits[index_of(reach.tensor)], digit.stride);
            insert(splits[index_of(reach.tensor)], digit.stride * digit.extent);
        }
    });
    const auto dense = [&](std::size_t tensor) {
        const std::int64_t words = step.tensors[tensor].words();
        splits[tensor] = Splits{words};
    };
    for (std::size_t i = 0; i < step.tensors.size(); ++i) {
        insert(splits[i], 1);
        insert(splits[i], step.tensors[i].words());
        std::sort(splits[i].begin(), splits[i].end());
        if (splits[i].back() != step.tensors[i].words() || !is_chain(splits[i])) {
            dense(i);
        }
    }
    visit_reaches(step, [&](const Reach& reach) {
        if (reach.offset != 0 && !offset_stays_apart(reach, splits[index_of(reach.tensor)])) {
            dense(index_of(reach.tensor));
        }
    });
    return splits;
}

std::vector<LayoutLevel> make_levels(const std::vector<std::int64_t>& splits, int banks, int lanes, bool skewed) {
    if (splits.size() == 1) {
        return {{splits.front(), 1, 1, {}}};
    }
    std::vector<LayoutLevel> levels;  // fastest first, turned around at the end
    levels.reserve(splits.size() - 1);
    std::int64_t stride = 1;
    for (std::size_t i = 0; i + 1 < splits.size(); ++i) {
        LayoutLevel level;
        level.dense = splits[i];
        level.extent = splits[i + 1] / splits[i];
        level.stride = skewed ? stride : splits[i];
        stride = level.stride * level.extent;
        levels.push_back(std::move(level));
        if (skewed && banks > 1) {
            std::int64_t rows = (stride + lanes - 1) / lanes;
            while (std::gcd(rows, std::int64_t{banks}) != 1) {
                ++rows;
            }
            stride = rows * lanes;
        }
    }
    std::reverse(levels.begin(), levels.end());
    return levels;
}

std::int64_t partition_banks(const std::vector<Partition>& partitions) {
    std::int64_t banks = 1;
    for (const Partition& partition : partitions) {
        banks *= partition.banks;
    }
    return banks;
}

namespace {

// One level's positions, split into a bank and a place inside the bank.
struct LevelSplit {
    std::int64_t banks = 1;
    std::int64_t inside = 1;  // positions per bank
    bool block = false;

    [[nodiscard]] std::int64_t bank(std::int64_t position) const {
        return block ? position / inside : position % banks;
    }
    [[nodiscard]] std::int64_t place(std::int64_t position) const {
        return block ? position % inside : position / banks;
    }
};

// The split points of a tensor with its own dimensions among them, or empty if they do not divide each other.
std::vector<std::int64_t> with_dimensions(const Tensor& tensor, std::vector<std::int64_t> splits) {
    std::int64_t stride = 1;
    for (auto extent = tensor.shape.rbegin(); extent != tensor.shape.rend(); ++extent) {
        stride *= *extent;
        insert(splits, stride);
    }
    std::sort(splits.begin(), splits.end());
    return splits.front() == 1 && is_chain(splits) ? splits : std::vector<std::int64_t>{};
}

[[noreturn]] void refuse(const Tensor& tensor, const std::string& what) {
    throw ConfigError(fmt::format("memory.tensors: {} ({}): {}", tensor.name, fmt::join(tensor.shape, " x "), what));
}

}  // namespace

std::vector<LayoutLevel> make_partitioned_levels(const Tensor& tensor, const std::vector<std::int64_t>& splits,
                                                 const std::vector<Partition>& partitions, int lanes) {
    if (splits.size() == 1 && partitions.empty()) {
        return make_levels(splits, 1, lanes, false);  // row-major, as many words side by side as there are lanes
    }
    const std::vector<std::int64_t> points = with_dimensions(tensor, splits);
    if (points.empty()) {
        refuse(tensor, "its accesses cut it across its dimensions, so that they cannot be partitioned");
    }
    std::vector<LayoutLevel> levels;  // fastest first, turned around at the end
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
        levels.push_back({points[i + 1] / points[i], points[i], 1, {}});
    }
    if (levels.empty()) {
        levels.emplace_back();
    }
    std::vector<LevelSplit> level_splits(levels.size());
    for (std::size_t i = 0; i < levels.size(); ++i) {
        level_splits[i].inside = levels[i].extent;
    }
    std::vector<std::int64_t> bank_weight(levels.size(), 0);
    std::int64_t banks = 1;
    for (const Partition& partition : partitions) {
        const auto dimension = static_cast<std::size_t>(partition.dimension);
        if (dimension >= tensor.shape.size()) {
            refuse(tensor, fmt::format("has no dimension {}; expected 0 to {}", dimension, tensor.shape.size() - 1));
        }
        const std::int64_t extent = tensor.shape[dimension];
        if (partition.banks > extent) {
            refuse(tensor, fmt::format("dimension {} has {} elements for {} banks; expected at most {}", dimension,
                                       extent, partition.banks, extent));
        }
        std::int64_t dense = 1;
        for (std::size_t d = dimension + 1; d < tensor.shape.size(); ++d) {
            dense *= tensor.shape[d];
        }
        // The level that decides the bank: of a cyclic partition the fastest of the dimension, of blocks the slowest.
        const bool block = partition.kind == Partition::Kind::Block;
        std::size_t chosen = levels.size();
        for (std::size_t i = 0; i < levels.size(); ++i) {
            const bool inside = levels[i].dense >= dense && levels[i].dense < dense * extent && levels[i].extent > 1;
            if (inside && (block || chosen == levels.size())) {
                chosen = i;
            }
        }
        if (chosen == levels.size()) {
            continue;  // one element: one bank
        }
        const std::int64_t per_bank = ceil_div(extent, partition.banks);
        const std::int64_t unit = levels[chosen].dense / dense;  // elements of the dimension in one of the level
        const bool alone = levels[chosen].extent == extent;
        if (!alone && (block ? per_bank % unit != 0 : levels[chosen].extent % partition.banks != 0)) {
            refuse(tensor,
                   fmt::format("accesses cut dimension {} into pieces of {}; expected a number of banks that {}",
                               dimension, block ? unit : levels[chosen].extent,
                               block ? "leaves whole pieces in each" : "divides it"));
        }
        LevelSplit& split = level_splits[chosen];
        split.banks = partition.banks;
        split.block = block;
        split.inside = block ? per_bank / unit : ceil_div(levels[chosen].extent, partition.banks);
        bank_weight[chosen] = banks;
        banks *= partition.banks;
    }
    // Words of a bank in the order of the tensor; rows of `lanes` of them.
    std::int64_t stride = 1;
    for (std::size_t i = 0; i < levels.size(); ++i) {
        const LevelSplit& split = level_splits[i];
        for (std::int64_t position = 0; position < levels[i].extent; ++position) {
            const std::int64_t inside = split.place(position) * stride;
            const std::int64_t row = inside / lanes;
            levels[i].table.push_back((row * banks + split.bank(position) * bank_weight[i]) * lanes + inside % lanes);
        }
        stride *= split.inside;
        if (i == 0) {
            stride = ceil_div(stride, lanes) * lanes;
        }
    }
    std::reverse(levels.begin(), levels.end());
    return levels;
}

std::int64_t occupied_words(const std::vector<LayoutLevel>& levels) {
    std::int64_t last = 0;
    for (const LayoutLevel& level : levels) {
        last += level.table.empty() ? (level.extent - 1) * level.stride
                                    : *std::max_element(level.table.begin(), level.table.end());
    }
    return last + 1;
}

std::int64_t Placement::address(std::int64_t element) const {
    std::int64_t address = base;
    for (const LayoutLevel& level : levels) {
        address += level.offset(element / level.dense);
        element %= level.dense;
    }
    return address;
}

std::vector<std::int32_t> offset_table(const Placement& placement, const IndexMap& map) {
    std::vector<std::int32_t> table{0};
    const auto expand = [&table](std::int64_t extent, const auto& offset) {
        std::vector<std::int32_t> next;
        next.reserve(table.size() * static_cast<std::size_t>(extent));
        for (const std::int32_t start : table) {
            for (std::int64_t i = 0; i < extent; ++i) {
                next.push_back(static_cast<std::int32_t>(start + offset(i)));
            }
        }
        table = std::move(next);
    };
    bool depends = false;
    for (const Digit& digit : map) {
        if (digit.stride == 0 || digit.extent == 1) {
            // The operand does not move along this digit, but the index counts through it.
            expand(digit.extent, [](std::int64_t) { return std::int64_t{0}; });
            continue;
        }
        depends = true;
        const std::int64_t end = digit.stride * digit.extent;
        if (placement.levels.size() == 1) {
            const LayoutLevel& level = placement.levels.front();
            expand(digit.extent, [&](std::int64_t i) { return level.offset(i * digit.stride); });
            continue;
        }
        for (const LayoutLevel& level : placement.levels) {
            if (level.dense >= digit.stride && level.dense * level.extent <= end) {
                expand(level.extent, [&](std::int64_t i) { return level.offset(i); });
            }
        }
    }
    if (!depends) {
        table.clear();
    }
    return table;
}

std::int64_t stride_of(const Placement& placement, std::int64_t dense) {
    if (dense == 0) {
        return dense;
    }
    for (const LayoutLevel& level : placement.levels) {
        if (level.dense == dense || placement.levels.size() == 1) {
            const std::int64_t stride = level.offset(dense / level.dense);
            for (std::int64_t i = 0; i < level.extent; i += dense / level.dense) {
                if (level.offset(i) != i * level.dense / dense * stride) {
                    throw ConfigError(
                        fmt::format("memory.tensors: {} words apart in a tensor are chosen by tokens; "
                                    "expected no partition of that dimension",
                                    dense));
                }
            }
            return stride;
        }
    }
    throw std::logic_error("a stride of " + std::to_string(dense) + " words is no level of its tensor");
}

}  // namespace contraflow
