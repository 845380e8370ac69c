#include "sequencer/issue_policy.h"

#include <algorithm>

namespace contraflow {

namespace {

// The first free unit; none: -1.
int free_unit(const std::vector<UnitState>& units) {
    const auto free = std::find_if(units.begin(), units.end(), [](const UnitState& unit) { return !unit.busy; });
    return free == units.end() ? -1 : static_cast<int>(free - units.begin());
}

// Program order: the next kernel is the lowest one, and only when nothing runs.
class SerialIssue : public IssuePolicyIf {
public:
    explicit SerialIssue(const Program& program) : program_(program) {}

    [[nodiscard]] std::optional<Issue> choose(const ReadyKernels& ready, const Units& units,
                                              std::uint64_t /*now*/) const override {
        if (units.running > 0 || ready.empty()) {
            return std::nullopt;
        }
        std::uint32_t lowest = ~0U;
        for (const auto* list : {&ready.engine, &ready.vector, &ready.dma}) {
            for (const std::uint32_t kernel : *list) {
                lowest = std::min(lowest, kernel);
            }
        }
        const KernelCommand& command = program_.kernels[lowest];
        return Issue{lowest, 0, command.unit == UnitKind::Engine ? command.gang_for.back() : 1};
    }

private:
    const Program& program_;
};

// Every kernel whose dependences are complete may start, the one with the longest chain behind it first. A contraction
// chooses its gang by the planner's predicted cycles: the one that is done first, where what a gang takes from the
// other ready contractions by using its engines worse than the best gang would counts as time as well.
//
// With look-ahead it may also choose engines that are still busy, if waiting for them pays: then they are kept for it,
// and kernels of lower priority get the others only. Without, it takes what is free.
class OverlapIssue : public IssuePolicyIf {
public:
    OverlapIssue(const Program& program, bool look_ahead) : program_(program), look_ahead_(look_ahead) {}

    [[nodiscard]] std::optional<Issue> choose(const ReadyKernels& ready, const Units& units,
                                              std::uint64_t now) const override {
        if (!ready.dma.empty() && !units.dma.busy) {
            return Issue{ready.dma.front(), 0, 1};
        }
        if (!ready.vector.empty()) {
            if (const int unit = free_unit(units.vector_units); unit >= 0) {
                return Issue{ready.vector.front(), unit, 1};
            }
        }
        return choose_engines(ready.engine, units.engines, now);
    }

private:
    struct Placement {
        std::uint64_t start = 0, cycles = 0;
        int first = 0, gang = 0;  // gang 0: none
    };

    [[nodiscard]] std::optional<Issue> choose_engines(const std::vector<std::uint32_t>& ready,
                                                      const std::vector<UnitState>& engines, std::uint64_t now) const {
        if (ready.empty() || free_unit(engines) < 0) {
            return std::nullopt;
        }
        free_at_.clear();
        for (const UnitState& engine : engines) {
            // A kernel that should be done and is not may be done at the next edge.
            free_at_.push_back(engine.busy ? std::max(engine.free_at, now + 1) : now);
        }
        std::uint64_t waiting = 0;  // cycles of one engine
        for (const std::uint32_t kernel : ready) {
            waiting += program_.kernels[kernel].cycles[1];
        }
        for (const std::uint32_t kernel : ready) {
            const KernelCommand& command = program_.kernels[kernel];
            const Placement best = place(command, now, waiting - command.cycles[1]);
            if (best.gang > 0 && best.start == now) {
                return Issue{kernel, best.first, best.gang};
            }
            for (int i = 0; i < best.gang; ++i) {
                free_at_[static_cast<std::size_t>(best.first + i)] = best.start + best.cycles;
            }
            if (std::none_of(free_at_.begin(), free_at_.end(), [now](std::uint64_t at) { return at == now; })) {
                break;
            }
        }
        return std::nullopt;
    }

    // `others`: what the other ready contractions would take on one engine.
    [[nodiscard]] Placement place(const KernelCommand& command, std::uint64_t now, std::uint64_t others) const {
        const std::size_t engines = free_at_.size();
        std::uint64_t least = command.cycles[1];  // engine cycles of the most economical gang
        for (std::size_t gang = 2; gang <= engines; ++gang) {
            least = std::min(least, gang * command.cycles[gang]);
        }
        Placement best;
        std::uint64_t best_cost = ~std::uint64_t{0};
        window_ = free_at_;  // by first engine: edge at which all of a gang are free
        for (std::size_t gang = 1; gang <= engines; ++gang) {
            for (std::size_t first = 0; gang > 1 && first + gang <= engines; ++first) {
                window_[first] = std::max(window_[first], free_at_[first + gang - 1]);
            }
            if (command.gang_for[gang] != static_cast<int>(gang)) {
                continue;  // a smaller gang is as fast
            }
            const std::uint64_t cycles = command.cycles[gang];
            const std::uint64_t waste = std::min((gang * cycles - least) / engines, others);
            for (std::size_t first = 0; first + gang <= engines; ++first) {
                const std::uint64_t cost = window_[first] - now + cycles + waste;
                if (cost < best_cost && (look_ahead_ || window_[first] == now)) {
                    best_cost = cost;
                    best = {window_[first], cycles, static_cast<int>(first), static_cast<int>(gang)};
                }
            }
        }
        return best;
    }

    const Program& program_;
    bool look_ahead_;
    mutable std::vector<std::uint64_t> free_at_, window_;  // scratch
};

}  // namespace

std::unique_ptr<IssuePolicyIf> make_issue_policy(SchedulePolicy policy, bool look_ahead, const Program& program) {
    if (policy == SchedulePolicy::Serial) {
        return std::make_unique<SerialIssue>(program);
    }
    return std::make_unique<OverlapIssue>(program, look_ahead);
}

}  // namespace contraflow
