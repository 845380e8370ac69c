#include "step/extent.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

namespace contraflow {

namespace {

Extent extent_of(const Contraction& work) {
    return {"contraction", {{work.batch, work.rows, work.cols, work.depth}}};
}

Extent extent_of(const VectorKernel& work) {
    Extent extent{to_string(work.segments.front().op), {}};
    for (const VectorSegment& segment : work.segments) {
        extent.shapes.push_back({segment.rows, segment.cols});
    }
    return extent;
}

Extent extent_of(const DmaTransfer& work) {
    return {work.to_chip ? "read" : "write", {{work.words}}};
}

}  // namespace

Extent extent_of(const Kernel& kernel) {
    return std::visit([](const auto& work) { return extent_of(work); }, kernel.work);
}

std::string shape_text(const Extent& extent) {
    std::vector<std::string> parts;
    for (auto first = extent.shapes.begin(); first != extent.shapes.end();) {
        const auto last = std::find_if(first, extent.shapes.end(), [&](const auto& shape) { return shape != *first; });
        const auto count = last - first;
        parts.push_back((count > 1 ? fmt::format("{} of ", count) : "") + fmt::format("{}", fmt::join(*first, " x ")));
        first = last;
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace contraflow
