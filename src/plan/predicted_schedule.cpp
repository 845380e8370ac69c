#include "plan/predicted_schedule.h"

#include <algorithm>
#include <queue>
#include <tuple>

#include "common/command.h"
#include "common/integer_math.h"

namespace contraflow {

namespace {

constexpr std::int64_t kOverheadCycles = 30;  // start, fill, drain and completion of a kernel
constexpr std::int64_t kPassesOfRows = 4;     // of LayerNorm and softmax; element-wise operations have one

// Cycles of a kernel on one engine, one vector unit or the DMA.
std::int64_t cycles_alone(const Kernel& kernel, const Config& config) {
    if (const auto* contraction = std::get_if<Contraction>(&kernel.work)) {
        const std::int64_t pes = std::int64_t{config.engine.rows} * config.engine.cols;
        return std::max(ceil_div(kernel.macs(), pes), contraction->depth);
    }
    if (const auto* vector = std::get_if<VectorKernel>(&kernel.work)) {
        std::int64_t cycles = 0;
        for (const VectorSegment& segment : vector->segments) {
            const bool rows = segment.op == VectorOp::LayerNormForward || segment.op == VectorOp::LayerNormBackward ||
                              segment.op == VectorOp::SoftmaxForward || segment.op == VectorOp::SoftmaxBackward ||
                              segment.op == VectorOp::GeluForward || segment.op == VectorOp::GeluBackward;
            cycles += segment.rows * ceil_div(segment.cols, config.vector.lanes) * (rows ? kPassesOfRows : 1);
        }
        return cycles;
    }
    return std::get<DmaTransfer>(kernel.work).words / std::max(1, config.dma.beat_bytes / 4);
}

class ListScheduler {
public:
    ListScheduler(const Step& step, const Config& config, const std::vector<std::vector<std::uint32_t>>& dependences)
        : config_(config),
          spans_(step.kernels.size()),
          open_(step.kernels.size()),
          dependents_(step.kernels.size()),
          priority_(step.kernels.size()),
          free_engines_(config.engine.count),
          free_vectors_(config.vector.count) {
        for (const Kernel& kernel : step.kernels) {
            alone_.push_back(cycles_alone(kernel, config));
            units_.push_back(std::holds_alternative<Contraction>(kernel.work)    ? UnitKind::Engine
                             : std::holds_alternative<VectorKernel>(kernel.work) ? UnitKind::Vector
                                                                                 : UnitKind::Dma);
        }
        for (std::size_t i = step.kernels.size(); i-- > 0;) {
            priority_[i] += alone_[i] / (is_contraction(i) ? config.engine.count : 1) + kOverheadCycles;
            open_[i] = dependences[i].size();
            for (const std::uint32_t dependence : dependences[i]) {
                dependents_[dependence].push_back(static_cast<std::uint32_t>(i));
                priority_[dependence] = std::max(priority_[dependence], priority_[i]);
            }
        }
    }

    std::vector<KernelSpan> run() {
        for (std::size_t i = 0; i < open_.size(); ++i) {
            if (open_[i] == 0) {
                make_ready(static_cast<std::uint32_t>(i));
            }
        }
        issue();
        while (!running_.empty()) {
            now_ = running_.top().end;
            while (!running_.empty() && running_.top().end == now_) {
                complete(running_.top());
                running_.pop();
            }
            issue();
        }
        return std::move(spans_);
    }

private:
    struct Running {
        std::int64_t end = 0;
        std::uint32_t kernel = 0;
        int engines = 0;
        bool operator<(const Running& other) const { return std::tie(end, kernel) > std::tie(other.end, other.kernel); }
    };

    [[nodiscard]] bool is_contraction(std::size_t i) const { return units_[i] == UnitKind::Engine; }
    [[nodiscard]] bool is_vector(std::size_t i) const { return units_[i] == UnitKind::Vector; }

    void make_ready(std::uint32_t kernel) {
        const auto before = [&](std::uint32_t a, std::uint32_t b) {
            return priority_[a] != priority_[b] ? priority_[a] > priority_[b] : a < b;
        };
        ready_.insert(std::upper_bound(ready_.begin(), ready_.end(), kernel, before), kernel);
    }

    void complete(const Running& done) {
        free_engines_ += done.engines;
        free_vectors_ += is_vector(done.kernel) ? 1 : 0;
        dma_free_ = dma_free_ || (!is_vector(done.kernel) && done.engines == 0);
        for (const std::uint32_t dependent : dependents_[done.kernel]) {
            if (--open_[dependent] == 0) {
                make_ready(dependent);
            }
        }
    }

    void issue() {
        const bool serial = config_.schedule_policy == SchedulePolicy::Serial;
        for (std::size_t i = 0; i < ready_.size();) {
            if (serial && !running_.empty()) {
                return;
            }
            const std::uint32_t kernel = serial ? *std::min_element(ready_.begin(), ready_.end()) : ready_[i];
            if (start(kernel)) {
                ready_.erase(std::find(ready_.begin(), ready_.end(), kernel));
            } else {
                ++i;
            }
        }
    }

    bool start(std::uint32_t kernel) {
        int engines = 0;
        std::int64_t cycles = alone_[kernel];
        if (is_contraction(kernel)) {
            if (free_engines_ == 0) {
                return false;
            }
            engines = config_.schedule_split ? std::max(1, free_engines_ / sharers(kernel)) : 1;
            free_engines_ -= engines;
            cycles /= engines;
        } else if (is_vector(kernel)) {
            if (free_vectors_ == 0) {
                return false;
            }
            --free_vectors_;
        } else {
            if (!dma_free_) {
                return false;
            }
            dma_free_ = false;
        }
        spans_[kernel] = {now_, now_ + cycles + kOverheadCycles};
        running_.push({spans_[kernel].end, kernel, engines});
        return true;
    }

    // Ready contractions as urgent as this one, itself included.
    [[nodiscard]] int sharers(std::uint32_t kernel) const {
        int count = 0;
        for (const std::uint32_t other : ready_) {
            count += is_contraction(other) && priority_[other] == priority_[kernel] ? 1 : 0;
        }
        return std::max(1, count);
    }

    const Config& config_;
    std::vector<KernelSpan> spans_;
    std::vector<std::size_t> open_;
    std::vector<std::vector<std::uint32_t>> dependents_;
    std::vector<std::int64_t> priority_;
    std::vector<std::int64_t> alone_;
    std::vector<UnitKind> units_;
    std::vector<std::uint32_t> ready_;  // most urgent first
    std::priority_queue<Running> running_;
    int free_engines_, free_vectors_;
    bool dma_free_ = true;
    std::int64_t now_ = 0;
};

}  // namespace

std::vector<KernelSpan> predict_schedule(const Step& step, const Config& config,
                                         const std::vector<std::vector<std::uint32_t>>& dependences) {
    return ListScheduler(step, config, dependences).run();
}

}  // namespace contraflow
