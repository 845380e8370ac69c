#include "plan/layout.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

namespace contraflow {

namespace {

using Splits = std::set<std::int64_t>;

void add_digit(Splits& splits, std::int64_t extent, std::int64_t stride) {
    if (extent > 1 && stride > 0) {
        splits.insert(stride);
        splits.insert(stride * extent);
    }
}

void add_access(std::vector<Splits>& splits, const Access& access) {
    if (access.tensor == kNoTensor) {
        return;
    }
    Splits& own = splits[index_of(access.tensor)];
    for (const IndexMap* map : {&access.batch, &access.row, &access.col, &access.depth}) {
        for (const Digit& digit : *map) {
            add_digit(own, digit.extent, digit.stride);
        }
    }
    if (access.token.modulus != 0) {
        add_digit(own, access.token.modulus, access.token.stride);
    }
    if (access.offset != 0) {
        own.insert(access.offset);
    }
}

void add_operand(std::vector<Splits>& splits, const VectorSegment& segment, const VectorOperand& operand,
                 OperandShape shape) {
    if (operand.tensor == kNoTensor) {
        return;
    }
    Splits& own = splits[index_of(operand.tensor)];
    if (shape == OperandShape::Matrix || shape == OperandShape::Column) {
        add_digit(own, segment.rows, operand.row_stride);
    }
    if (shape == OperandShape::Matrix || shape == OperandShape::Row) {
        add_digit(own, segment.cols, 1);
    }
    if (operand.token.modulus != 0) {
        add_digit(own, operand.token.modulus, operand.token.stride);
    }
    if (operand.offset != 0) {
        own.insert(operand.offset);
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

}  // namespace

std::vector<std::vector<std::int64_t>> split_points(const Step& step) {
    std::vector<Splits> splits(step.tensors.size());
    for (const Kernel& kernel : step.kernels) {
        if (const auto* contraction = std::get_if<Contraction>(&kernel.work)) {
            for (const Access* access :
                 {&contraction->a, &contraction->b, &contraction->out, &contraction->bias, &contraction->residual}) {
                add_access(splits, *access);
            }
        } else if (const auto* vector = std::get_if<VectorKernel>(&kernel.work)) {
            for (const VectorSegment& segment : vector->segments) {
                for (std::size_t i = 0; i < segment.in.size(); ++i) {
                    add_operand(splits, segment, segment.in[i], input_shape(segment.op, i));
                }
                for (std::size_t i = 0; i < segment.out.size(); ++i) {
                    add_operand(splits, segment, segment.out[i], output_shape(segment.op, i));
                }
            }
        }
    }
    std::vector<std::vector<std::int64_t>> result;
    for (std::size_t i = 0; i < step.tensors.size(); ++i) {
        const std::int64_t words = step.tensors[i].words();
        splits[i].insert(1);
        splits[i].insert(words);
        std::vector<std::int64_t> points(splits[i].begin(), splits[i].end());
        if (points.back() != words || !is_chain(points)) {
            points = words == 1 ? std::vector<std::int64_t>{1} : std::vector<std::int64_t>{1, words};
        }
        result.push_back(std::move(points));
    }
    return result;
}

std::vector<LayoutLevel> make_levels(const std::vector<std::int64_t>& splits, int banks, int lanes, bool padded) {
    std::vector<LayoutLevel> levels;  // fastest first, turned around at the end
    std::int64_t stride = 1;
    for (std::size_t i = 0; i + 1 < splits.size(); ++i) {
        LayoutLevel level;
        level.dense = splits[i];
        level.extent = splits[i + 1] / splits[i];
        level.stride = padded ? stride : splits[i];
        levels.push_back(level);
        stride = level.stride * level.extent;
        if (padded && banks > 1) {
            std::int64_t rows = (stride + lanes - 1) / lanes;
            while (std::gcd(rows, std::int64_t{banks}) != 1) {
                ++rows;
            }
            stride = rows * lanes;
        }
    }
    if (levels.empty()) {
        levels.push_back({1, 1, 1});
    }
    std::reverse(levels.begin(), levels.end());
    return levels;
}

std::int64_t occupied_words(const std::vector<LayoutLevel>& levels) {
    std::int64_t last = 0;
    for (const LayoutLevel& level : levels) {
        last += (level.extent - 1) * level.stride;
    }
    return last + 1;
}

std::int64_t Placement::address(std::int64_t element) const {
    std::int64_t address = base;
    for (const LayoutLevel& level : levels) {
        address += element / level.dense * level.stride;
        element %= level.dense;
    }
    return address;
}

std::vector<std::int32_t> offset_table(const Placement& placement, const IndexMap& map) {
    std::vector<std::int32_t> table{0};
    const auto expand = [&table](std::int64_t extent, std::int64_t stride) {
        std::vector<std::int32_t> next;
        next.reserve(table.size() * static_cast<std::size_t>(extent));
        for (const std::int32_t offset : table) {
            for (std::int64_t i = 0; i < extent; ++i) {
                next.push_back(static_cast<std::int32_t>(offset + i * stride));
            }
        }
        table = std::move(next);
    };
    bool depends = false;
    for (const Digit& digit : map) {
        if (digit.stride == 0 || digit.extent == 1) {
            // The operand does not move along this digit, but the index counts through it.
            expand(digit.extent, 0);
            continue;
        }
        depends = true;
        const std::int64_t end = digit.stride * digit.extent;
        if (placement.levels.size() == 1) {
            expand(digit.extent, digit.stride);
            continue;
        }
        for (const LayoutLevel& level : placement.levels) {
            if (level.dense >= digit.stride && level.dense * level.extent <= end) {
                expand(level.extent, level.stride);
            }
        }
    }
    if (!depends) {
        table.clear();
    }
    return table;
}

std::int64_t stride_of(const Placement& placement, std::int64_t dense) {
    if (dense == 0 || placement.levels.size() == 1) {
        return dense;
    }
    for (const LayoutLevel& level : placement.levels) {
        if (level.dense == dense) {
            return level.stride;
        }
    }
    throw std::logic_error("a stride of " + std::to_string(dense) + " words is no level of its tensor");
}

}  // namespace contraflow
