// One point of a sweep: from its keys to its row, in a process of its own.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "contraflow/dataset.h"
#include "contraflow/load_config.h"
#include "sweep/database.h"

namespace contraflow {
struct KnownContractions;
}

namespace contraflow::sweep {

struct PointOptions {
    std::size_t steps = 1;
    bool values = true;
    bool allow_overflow = false;
    bool full_reports = false;  // keep the long lists: kernels, tensors, memories, critical path

    [[nodiscard]] std::string json() const;  // as in the database
};

// What the points share.
struct PointContext {
    LoadedConfig design;
    PointOptions options;
    std::optional<Dataset> data;  // if it is the same for all points
};

// Plans, simulates and reports the point; what stands in the way of that is a failure with its reason. Nothing in the
// result but the host's numbers depends on when and where it is made, nor on what is known from other points. To be
// called in a child process, again only after forget_elaboration() (simulate/elaboration.h).
[[nodiscard]] PointResult run_point(const PointContext& context, const Claim& claim, KnownContractions& known);

// The row of a point whose process crashed or was stopped.
[[nodiscard]] PointResult failed_point(const PointContext& context, const Claim& claim, const std::string& reason);

// A result as bytes, from process to process.
[[nodiscard]] std::string pack(const PointResult& result);
[[nodiscard]] PointResult unpack(const std::string& bytes);

}  // namespace contraflow::sweep
