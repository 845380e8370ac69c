#include "plan/planner.h"

#include <algorithm>
#include <memory>
#include <string>

#include "common/integer_math.h"
#include "contraflow/error.h"
#include "plan/blocks.h"
#include "plan/layout.h"
#include "plan/placer.h"
#include "plan/program_builder.h"
#include "plan/step_facts.h"
#include "plan/streaming.h"

namespace contraflow {

namespace {

void find_peak(const Step& step, Plan& plan) {
    // First what comes and goes at each kernel, then what is there.
    plan.alive.assign(step.kernels.size() + 1, {});
    for (std::size_t i = 0; i < step.tensors.size(); ++i) {
        const Placement& placement = plan.placements[i];
        if (!placement.in_dram()) {
            const auto tensor_class = static_cast<std::size_t>(step.tensors[i].tensor_class);
            plan.alive[static_cast<std::size_t>(placement.first_kernel)][tensor_class] += step.tensors[i].words();
            plan.alive[static_cast<std::size_t>(placement.last_kernel) + 1][tensor_class] -= step.tensors[i].words();
        }
    }
    plan.alive.pop_back();
    for (std::size_t kernel = 0; kernel < plan.alive.size(); ++kernel) {
        std::int64_t words = 0;
        for (std::size_t c = 0; c < kNumTensorClasses; ++c) {
            plan.alive[kernel][c] += kernel > 0 ? plan.alive[kernel - 1][c] : 0;
            words += plan.alive[kernel][c];
        }
        if (words > plan.peak_words) {
            plan.peak_words = words;
            plan.peak_kernel = static_cast<std::int32_t>(kernel);
        }
    }
}

// What all placements of a step have in common.
struct Analysis {
    StreamedStep streamed;
    Step& step;  // the given one where nothing streams, otherwise the streamed one
    StepFacts facts;
    std::vector<std::vector<std::int64_t>> splits;
    std::vector<std::vector<std::uint32_t>> dependences;
    std::vector<KernelSpan> spans;

    Analysis(Step& given, const std::vector<bool>& in_dram, const Config& config)
        : streamed(streams(in_dram)
                       ? stream_tensors(given, in_dram, config.memory.stream_words, config.memory.stream_buffers)
                       : on_chip(given)),
          step(streams(in_dram) ? streamed.step : given),
          facts(step, given.tensors.size()),
          splits(split_points(step)),
          dependences(kernel_dependences(step, facts.uses, {})),
          spans(predict_schedule(step, config, dependences)) {}

private:
    static bool streams(const std::vector<bool>& in_dram) {
        return std::find(in_dram.begin(), in_dram.end(), true) != in_dram.end();
    }
    static StreamedStep on_chip(const Step& step) {
        StreamedStep streamed;
        streamed.dram_homes.assign(step.tensors.size(), -1);
        streamed.buffers.assign(step.tensors.size(), -1);
        return streamed;
    }
};

// A step with a place for every tensor.
struct Attempt {
    std::shared_ptr<Analysis> analysis;
    PlacedTensors placed;
    Plan plan;
};

class Planner {
public:
    Planner(Step step, const Config& config, const PlanOptions& options)
        : step_(std::move(step)), config_(config), options_(options), wishes_(tensor_wishes(step_, config.memory)) {
        for (const TensorWish& wish : wishes_) {
            in_dram_.push_back(wish.place == RamPlace::Dram);
        }
    }

    PlannedStep plan() {
        Attempt attempt = fit(attempt_with(false));
        Step& step = attempt.analysis->step;
        std::vector<std::vector<std::uint32_t>> dependences = std::move(attempt.analysis->dependences);
        if (!attempt.placed.successions.empty()) {
            dependences = kernel_dependences(step, attempt.analysis->facts.uses, succession_dependences(attempt));
        }
        find_peak(step, attempt.plan);
        PlannedStep planned;
        KnownContractions nothing;
        planned.program = build_program(step, config_, attempt.plan, attempt.placed.rams, dependences,
                                        options_.known != nullptr ? *options_.known : nothing);
        planned.plan = std::move(attempt.plan);
        planned.step = std::move(step);
        return planned;
    }

private:
    // Places the step with the tensors of in_dram_ in DRAM. REQUIRES: analysis_ is of these, or null.
    [[nodiscard]] Attempt attempt_with(bool share) {
        if (analysis_ == nullptr) {
            analysis_ = std::make_shared<Analysis>(step_, in_dram_, config_);
        }
        Attempt attempt;
        attempt.analysis = analysis_;
        const StreamedStep& streamed = analysis_->streamed;
        wishes_.resize(analysis_->step.tensors.size());  // tiles are placed by their buffers
        attempt.placed = place_tensors({analysis_->step, analysis_->facts, analysis_->spans, config_, wishes_,
                                        analysis_->splits, streamed.dram_homes, streamed.buffers, share});
        Plan& plan = attempt.plan;
        plan.placements = std::move(attempt.placed.placements);
        plan.num_tensors = step_.tensors.size();
        plan.shares_space = share;
        plan.dram_bytes = streamed.dram_bytes;
        for (const RamGeometry& ram : attempt.placed.rams) {
            plan.ram_blocks.push_back(blocks_of(ram));
            plan.blocks += plan.ram_blocks.back();
        }
        plan.overflows = overflows_of(plan.blocks, config_.device);
        const std::int64_t capacity = config_.dram.channel_bytes * config_.dram.channels;
        if (plan.dram_bytes > 0 && kTensorsDramAddress + plan.dram_bytes > capacity) {
            plan.overflows.push_back(dram_overflow(kTensorsDramAddress + plan.dram_bytes, config_.dram));
        }
        return attempt;
    }

    // First every tensor for itself, then shared space, then the largest parameters and gradients in DRAM.
    Attempt fit(Attempt attempt) {
        if (attempt.plan.overflows.empty()) {
            return attempt;
        }
        const bool may_share =
            config_.memory.layout == LayoutPolicy::Auto && config_.memory.grouping && !options_.keep_all;
        if (may_share) {
            Attempt shared = attempt_with(true);
            const bool helps = shared.plan.overflows.size() < attempt.plan.overflows.size() ||
                               (shared.plan.blocks.bram18 <= attempt.plan.blocks.bram18 &&
                                shared.plan.blocks.urams < attempt.plan.blocks.urams);
            if (helps) {
                attempt = std::move(shared);
            }
        }
        if (attempt.plan.overflows.empty() || options_.on_chip) {
            return attempt;
        }
        const std::vector<std::string> on_chip_overflows = attempt.plan.overflows;
        std::vector<std::size_t> candidates = movable();
        std::size_t moved = 0;
        while (moved < candidates.size() && !attempt.plan.overflows.empty()) {
            // At least as many words as the device lacks, and never less than an eighth of what could go.
            const std::int64_t lacking = lacking_words(attempt.plan.blocks);
            const std::size_t least = std::max<std::size_t>(1, candidates.size() / 8);
            std::int64_t words = 0;
            for (std::size_t count = 0; moved < candidates.size() && (count < least || words < lacking); ++count) {
                words += step_.tensors[candidates[moved]].words();
                in_dram_[candidates[moved++]] = true;
            }
            try {
                analysis_ = nullptr;
                attempt = attempt_with(may_share);
            } catch (const ConfigError&) {
                // A kernel needs one of them whole: they all stay on chip, and the plan says what it lacks.
                return attempt;
            }
        }
        attempt.plan.on_chip_overflows = on_chip_overflows;
        return attempt;
    }

    // Parameters and gradients that the configuration leaves open, the largest first.
    [[nodiscard]] std::vector<std::size_t> movable() const {
        std::vector<std::size_t> tensors;
        for (std::size_t i = 0; i < step_.tensors.size(); ++i) {
            const TensorClass tensor_class = step_.tensors[i].tensor_class;
            if ((tensor_class == TensorClass::Parameter || tensor_class == TensorClass::Gradient) &&
                wishes_[i].place == RamPlace::Auto && wishes_[i].group.empty()) {
                tensors.push_back(i);
            }
        }
        std::stable_sort(tensors.begin(), tensors.end(), [this](std::size_t a, std::size_t b) {
            return step_.tensors[a].words() > step_.tensors[b].words();
        });
        return tensors;
    }

    [[nodiscard]] std::int64_t lacking_words(const BlockCount& blocks) const {
        constexpr std::int64_t kBramWords = 1024;
        constexpr std::int64_t kUramWords = 8192;
        return std::max<std::int64_t>(0, blocks.bram36() - config_.device.available_bram36) * kBramWords +
               std::max<std::int64_t>(0, blocks.urams - config_.device.available_urams) * kUramWords;
    }

    // A tensor that takes over another's words is first written after the other's last use.
    [[nodiscard]] static std::vector<std::vector<std::uint32_t>> succession_dependences(const Attempt& attempt) {
        const std::vector<TensorUses>& all_uses = attempt.analysis->facts.uses;
        std::vector<std::vector<std::uint32_t>> users(attempt.analysis->step.tensors.size());
        for (std::uint32_t kernel = 0; kernel < all_uses.size(); ++kernel) {
            const TensorUses& uses = all_uses[kernel];
            for (const auto* ids : {&uses.reads, &uses.writes, &uses.read_modify_writes}) {
                for (const TensorId id : *ids) {
                    users[index_of(id)].push_back(kernel);
                }
            }
        }
        std::vector<std::vector<std::uint32_t>> earlier(all_uses.size());
        for (const auto& [before, after] : attempt.placed.successions) {
            std::vector<std::uint32_t>& own = earlier[users[after].front()];
            own.insert(own.end(), users[before].begin(), users[before].end());
        }
        return earlier;
    }

    Step step_;
    const Config& config_;
    const PlanOptions& options_;
    std::vector<TensorWish> wishes_;
    std::vector<bool> in_dram_;
    std::shared_ptr<Analysis> analysis_;
};

}  // namespace

PlannedStep plan_step(Step step, const Config& config, const PlanOptions& options) {
    return Planner(std::move(step), config, options).plan();
}

}  // namespace contraflow
