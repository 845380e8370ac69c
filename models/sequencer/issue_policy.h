// Which ready kernel starts next and on which units: the policy of the sequencer. Plain C++.
//
// A policy is asked when something changed: a kernel became ready, one was issued, one completed. What it answers may
// depend on nothing else but its arguments, so that `clocked` and `leap` hear the same.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/command.h"
#include "contraflow/config.h"

namespace contraflow {

// One engine, vector unit or DMA as the sequencer knows it.
struct UnitState {
    bool busy = false;
    std::uint64_t free_at = 0;  // if busy: edge at which its kernel should be done by the planner's prediction
};

struct Units {
    std::vector<UnitState> engines, vector_units;
    UnitState dma;
    std::size_t running = 0;  // kernels
};

// Kernels whose dependences completed, by kind of unit, highest priority first.
struct ReadyKernels {
    std::vector<std::uint32_t> engine, vector, dma;

    [[nodiscard]] bool empty() const { return engine.empty() && vector.empty() && dma.empty(); }
    [[nodiscard]] std::size_t size() const { return engine.size() + vector.size() + dma.size(); }
    [[nodiscard]] std::vector<std::uint32_t>& of(UnitKind unit) {
        return unit == UnitKind::Engine ? engine : unit == UnitKind::Vector ? vector : dma;
    }
};

struct Issue {
    std::uint32_t kernel = 0;
    int first_unit = 0;
    int units = 1;  // neighbouring engines
};

class IssuePolicyIf {
public:
    virtual ~IssuePolicyIf() = default;

    // The kernel to start at edge `now`. None: nothing is to start until a kernel completes. Always one if nothing
    // runs and a kernel is ready, so that the policy alone cannot stop a step.
    [[nodiscard]] virtual std::optional<Issue> choose(const ReadyKernels& ready, const Units& units,
                                                      std::uint64_t now) const = 0;
};

// serial: program order, one kernel at a time. overlap: see issue_policy.cpp.
[[nodiscard]] std::unique_ptr<IssuePolicyIf> make_issue_policy(SchedulePolicy policy, bool look_ahead,
                                                               const Program& program);

}  // namespace contraflow
