// What a kernel does, and over what, for people: lists and timelines print it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "contraflow/step.h"

namespace contraflow {

// Of a contraction batch x rows x cols x depth, of a vector kernel rows x cols of each segment, of a transfer words.
struct Extent {
    std::string operation;
    std::vector<std::vector<std::int64_t>> shapes;
};

[[nodiscard]] Extent extent_of(const Kernel& kernel);

// Equal shapes in a row are written once: 4 of 12 x 96.
[[nodiscard]] std::string shape_text(const Extent& extent);

}  // namespace contraflow
