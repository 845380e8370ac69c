#include "plan/planner.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string>

#include "contraflow/error.h"
#include "plan/blocks.h"
#include "plan/layout.h"
#include "plan/program_builder.h"

namespace contraflow {

namespace {

constexpr std::int64_t kBramRows = 1024;  // depth of a shared BRAM bank: one RAMB36 of 1K x 36
constexpr std::int64_t kUramRows = 4096;  // one URAM288
constexpr std::int64_t kWordBits = 32;
constexpr int kUramLanes = 2;  // words of 32 bits in a row of 72

struct Request {
    std::size_t tensor = 0;
    RamKind kind = RamKind::Bram;
    std::vector<LayoutLevel> levels;
    std::int64_t words = 0;
    std::int32_t first = 0, last = 0;  // lifetime in kernels
};

// A memory under construction.
struct Pool {
    RamGeometry geometry;
    std::int64_t capacity = 0;  // words
    struct Block {
        std::size_t tensor = 0;
        std::int64_t begin = 0, end = 0;
        std::int32_t first = 0, last = 0;
    };
    std::vector<Block> blocks;  // by address
};

class Placer {
public:
    Placer(const Step& step, const Config& config, bool share)
        : step_(step), config_(config), share_(share), streamed_with_(step.tensors.size()) {
        find_streams();
        find_lifetimes();
    }

    void place_all() {
        const std::vector<std::vector<std::int64_t>> splits = split_points(step_);
        const bool padded = config_.memory.layout == LayoutPolicy::Auto;
        placements_.resize(step_.tensors.size());
        for (std::size_t i = 0; i < step_.tensors.size(); ++i) {
            Request request;
            request.tensor = i;
            request.kind = kind_of(step_.tensors[i]);
            request.levels = make_levels(splits[i], banks_of(request.kind), lanes_of(request.kind), padded);
            request.words = occupied_words(request.levels);
            if (request.words > std::numeric_limits<std::int32_t>::max()) {
                throw ConfigError("tensor " + step_.tensors[i].name + " occupies " + std::to_string(request.words) +
                                  " words; expected at most 2147483647, which a 32-bit address generator reaches");
            }
            request.first = lifetimes_[i].first;
            request.last = lifetimes_[i].second;
            place(request);
        }
        // A memory is as deep as what it holds.
        for (Pool& pool : pools_) {
            std::int64_t end = 1;
            for (const Pool::Block& block : pool.blocks) {
                end = std::max(end, block.end);
            }
            const std::int64_t width = std::int64_t{pool.geometry.banks} * pool.geometry.lanes;
            pool.geometry.rows = (end + width - 1) / width;
        }
    }

    [[nodiscard]] std::vector<RamGeometry> rams() const {
        std::vector<RamGeometry> rams;
        for (const Pool& pool : pools_) {
            rams.push_back(pool.geometry);
        }
        return rams;
    }
    [[nodiscard]] const std::vector<Placement>& placements() const { return placements_; }
    [[nodiscard]] const std::vector<std::pair<std::int32_t, std::int32_t>>& lifetimes() const { return lifetimes_; }

    // Pairs (earlier, later) of tensors that occupy the same words one after the other.
    [[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> successions() const {
        std::vector<std::pair<std::size_t, std::size_t>> pairs;
        for (const Pool& pool : pools_) {
            for (const Pool::Block& a : pool.blocks) {
                for (const Pool::Block& b : pool.blocks) {
                    if (a.last < b.first && a.begin < b.end && b.begin < a.end) {
                        pairs.emplace_back(a.tensor, b.tensor);
                    }
                }
            }
        }
        return pairs;
    }

private:
    // Which tensors one kernel (one segment) moves at the same time.
    void find_streams() {
        for (const Kernel& kernel : step_.kernels) {
            if (const auto* c = std::get_if<Contraction>(&kernel.work)) {
                add_streams({c->a.tensor, c->b.tensor, c->out.tensor, c->bias.tensor, c->residual.tensor});
            } else if (const auto* vector = std::get_if<VectorKernel>(&kernel.work)) {
                for (const VectorSegment& segment : vector->segments) {
                    std::vector<TensorId> ids;
                    for (const auto* operands : {&segment.in, &segment.out}) {
                        for (const VectorOperand& operand : *operands) {
                            ids.push_back(operand.tensor);
                        }
                    }
                    add_streams(ids);
                }
            }
        }
    }

    void add_streams(const std::vector<TensorId>& ids) {
        for (const TensorId a : ids) {
            for (const TensorId b : ids) {
                if (a != b && a != kNoTensor && b != kNoTensor) {
                    streamed_with_[index_of(a)].insert(index_of(b));
                }
            }
        }
    }

    void find_lifetimes() {
        const auto end = static_cast<std::int32_t>(step_.kernels.size()) - 1;
        lifetimes_.assign(step_.tensors.size(), {std::numeric_limits<std::int32_t>::max(), -1});
        for (std::int32_t kernel = 0; kernel <= end; ++kernel) {
            const TensorUses uses = tensor_uses(step_, step_.kernels[static_cast<std::size_t>(kernel)]);
            for (const auto* ids : {&uses.reads, &uses.writes, &uses.read_modify_writes}) {
                for (const TensorId id : *ids) {
                    auto& [first, last] = lifetimes_[index_of(id)];
                    first = std::min(first, kernel);
                    last = std::max(last, kernel);
                }
            }
        }
        for (std::size_t i = 0; i < step_.tensors.size(); ++i) {
            const TensorClass tensor_class = step_.tensors[i].tensor_class;
            const bool passing = tensor_class == TensorClass::Activation || tensor_class == TensorClass::Scratch;
            if (!passing || lifetimes_[i].second < 0) {
                lifetimes_[i] = {0, end};
            }
        }
    }

    [[nodiscard]] RamKind kind_of(const Tensor& tensor) const {
        const bool has_uram = config_.device.urams > 0;
        RamPlace place = RamPlace::Auto;
        switch (tensor.tensor_class) {
            case TensorClass::Parameter:
                place = config_.memory.parameters;
                break;
            case TensorClass::Gradient:
                place = config_.memory.gradients;
                break;
            case TensorClass::Activation:
                place = config_.memory.activations;
                break;
            case TensorClass::Scratch:
                place = config_.memory.scratch;
                break;
            case TensorClass::Buffer:
                return RamKind::Lutram;
        }
        switch (place) {
            case RamPlace::Lutram:
                return RamKind::Lutram;
            case RamPlace::Uram:
                return RamKind::Uram;
            case RamPlace::Bram:
                return RamKind::Bram;
            case RamPlace::Auto:
                break;
        }
        // A memory of its own may be small enough for LUTRAM; a shared one is not.
        const std::int64_t depth = (tensor.words() + config_.memory.banks - 1) / config_.memory.banks;
        if (config_.memory.layout == LayoutPolicy::Naive && depth <= config_.memory.lutram_max_words &&
            depth * kWordBits <= config_.memory.lutram_max_bits) {
            return RamKind::Lutram;
        }
        if (!has_uram) {
            return RamKind::Bram;
        }
        const bool passing =
            tensor.tensor_class == TensorClass::Activation || tensor.tensor_class == TensorClass::Scratch;
        const bool large = tensor.words() > kBramRows * config_.memory.banks;
        return passing || large ? RamKind::Uram : RamKind::Bram;
    }

    [[nodiscard]] int lanes_of(RamKind kind) const {
        return kind == RamKind::Uram && config_.memory.banks > 1 ? kUramLanes : 1;
    }
    [[nodiscard]] int banks_of(RamKind kind) const {
        return (config_.memory.banks + lanes_of(kind) - 1) / lanes_of(kind);
    }

    void place(const Request& request) {
        Pool* best = nullptr;
        std::int64_t best_begin = 0;
        std::size_t best_clashes = 0;
        if (config_.memory.layout == LayoutPolicy::Auto) {
            for (Pool& pool : pools_) {
                std::int64_t begin = 0;
                if (pool.geometry.kind != request.kind || !find_space(pool, request, begin)) {
                    continue;
                }
                const std::size_t clashes = count_clashes(pool, request.tensor);
                if (best == nullptr || clashes < best_clashes) {
                    best = &pool;
                    best_begin = begin;
                    best_clashes = clashes;
                }
            }
        }
        if (best == nullptr || (best_clashes > 0 && has_budget(request.kind))) {
            best = &add_pool(request);
            best_begin = 0;
        }
        Pool::Block block{request.tensor, best_begin, best_begin + request.words, request.first, request.last};
        const auto position =
            std::upper_bound(best->blocks.begin(), best->blocks.end(), block,
                             [](const Pool::Block& a, const Pool::Block& b) { return a.begin < b.begin; });
        best->blocks.insert(position, block);
        Placement& placement = placements_[request.tensor];
        placement.ram = static_cast<std::uint32_t>(best - pools_.data());
        placement.base = best_begin;
        placement.words = request.words;
        placement.levels = request.levels;
        placement.first_kernel = request.first;
        placement.last_kernel = request.last;
    }

    // Lowest free place, at a row boundary; words whose tensor is dead are free when space is shared.
    [[nodiscard]] bool find_space(const Pool& pool, const Request& request, std::int64_t& begin) const {
        const std::int64_t width = std::int64_t{pool.geometry.banks} * pool.geometry.lanes;
        begin = 0;
        for (const Pool::Block& block : pool.blocks) {
            const bool disjoint = share_ && (block.last < request.first || request.last < block.first);
            if (!disjoint && block.begin < begin + request.words && begin < block.end) {
                begin = (block.end + width - 1) / width * width;
            }
        }
        // Moving up may have run into a block passed before only if blocks overlap, which sharing allows.
        for (bool moved = share_; moved;) {
            moved = false;
            for (const Pool::Block& block : pool.blocks) {
                const bool disjoint = block.last < request.first || request.last < block.first;
                if (!disjoint && block.begin < begin + request.words && begin < block.end) {
                    begin = (block.end + width - 1) / width * width;
                    moved = true;
                }
            }
        }
        return begin + request.words <= pool.capacity;
    }

    [[nodiscard]] std::size_t count_clashes(const Pool& pool, std::size_t tensor) const {
        std::size_t clashes = 0;
        for (const Pool::Block& block : pool.blocks) {
            clashes += streamed_with_[tensor].count(block.tensor);
        }
        return clashes;
    }

    Pool& add_pool(const Request& request) {
        Pool pool;
        pool.geometry.kind = request.kind;
        pool.geometry.banks = banks_of(request.kind);
        pool.geometry.lanes = lanes_of(request.kind);
        pool.geometry.ports = config_.memory.ports;
        std::int64_t rows = 0;
        switch (request.kind) {
            case RamKind::Lutram:
                rows = config_.memory.lutram_max_words;
                pool.geometry.read_latency_cycles = config_.memory.lutram_read_latency_cycles;
                break;
            case RamKind::Bram:
                rows = kBramRows;
                pool.geometry.read_latency_cycles = config_.memory.bram_read_latency_cycles;
                break;
            case RamKind::Uram:
                rows = kUramRows;
                pool.geometry.read_latency_cycles = config_.memory.uram_read_latency_cycles;
                break;
        }
        const std::int64_t width = std::int64_t{pool.geometry.banks} * pool.geometry.lanes;
        rows = std::max(rows, (request.words + width - 1) / width);
        pool.geometry.rows = rows;
        pool.capacity = rows * width;
        static constexpr const char* kNames[] = {"lutram", "bram", "uram"};
        int& number = numbers_[static_cast<std::size_t>(request.kind)];
        pool.geometry.name = std::string(kNames[static_cast<std::size_t>(request.kind)]) + std::to_string(number++);
        used_ += blocks_of(pool.geometry);
        pools_.push_back(std::move(pool));
        return pools_.back();
    }

    // Whether the device has room for one more memory of usual depth.
    [[nodiscard]] bool has_budget(RamKind kind) const {
        if (kind == RamKind::Bram) {
            return used_.bram36() + banks_of(kind) <= config_.device.available_bram36;
        }
        if (kind == RamKind::Uram) {
            return used_.urams + banks_of(kind) <= config_.device.available_urams;
        }
        return true;
    }

    const Step& step_;
    const Config& config_;
    bool share_;
    std::vector<std::set<std::size_t>> streamed_with_;
    std::vector<std::pair<std::int32_t, std::int32_t>> lifetimes_;
    std::vector<Pool> pools_;
    std::vector<Placement> placements_;
    BlockCount used_;
    std::array<int, 3> numbers_{};
};

// A tensor that takes over another's words is first written after the other's last use.
void add_succession_dependences(const Step& step, const std::vector<std::pair<std::size_t, std::size_t>>& successions,
                                std::vector<std::vector<std::uint32_t>>& dependences) {
    if (successions.empty()) {
        return;
    }
    std::vector<std::vector<std::uint32_t>> users(step.tensors.size());
    for (std::uint32_t kernel = 0; kernel < step.kernels.size(); ++kernel) {
        const TensorUses uses = tensor_uses(step, step.kernels[kernel]);
        for (const auto* ids : {&uses.reads, &uses.writes, &uses.read_modify_writes}) {
            for (const TensorId id : *ids) {
                users[index_of(id)].push_back(kernel);
            }
        }
    }
    for (const auto& [earlier, later] : successions) {
        std::vector<std::uint32_t>& own = dependences[users[later].front()];
        own.insert(own.end(), users[earlier].begin(), users[earlier].end());
    }
    for (std::vector<std::uint32_t>& own : dependences) {
        std::sort(own.begin(), own.end());
        own.erase(std::unique(own.begin(), own.end()), own.end());
    }
}

void find_peak(const Step& step, Plan& plan) {
    std::vector<std::int64_t> change(step.kernels.size() + 1, 0);
    for (std::size_t i = 0; i < step.tensors.size(); ++i) {
        const Placement& placement = plan.placements[i];
        change[static_cast<std::size_t>(placement.first_kernel)] += step.tensors[i].words();
        change[static_cast<std::size_t>(placement.last_kernel) + 1] -= step.tensors[i].words();
    }
    std::int64_t alive = 0;
    for (std::size_t kernel = 0; kernel < step.kernels.size(); ++kernel) {
        alive += change[kernel];
        if (alive > plan.peak_words) {
            plan.peak_words = alive;
            plan.peak_kernel = static_cast<std::int32_t>(kernel);
        }
    }
}

}  // namespace

PlannedStep plan_step(const Step& step, const Config& config, const PlanOptions& options) {
    PlannedStep planned;
    for (const bool share : {false, true}) {
        Placer placer(step, config, share);
        placer.place_all();
        Plan plan;
        plan.placements = placer.placements();
        plan.shares_space = share;
        const std::vector<RamGeometry> rams = placer.rams();
        for (const RamGeometry& ram : rams) {
            plan.ram_blocks.push_back(blocks_of(ram));
            plan.blocks += plan.ram_blocks.back();
        }
        plan.overflows = overflows_of(plan.blocks, config.device);
        find_peak(step, plan);
        if (share && plan.overflows.size() >= planned.plan.overflows.size() &&
            (plan.blocks.bram18 > planned.plan.blocks.bram18 || plan.blocks.urams >= planned.plan.blocks.urams)) {
            break;  // sharing does not help: the plain plan stands
        }
        std::vector<std::vector<std::uint32_t>> dependences = kernel_dependences(step);
        add_succession_dependences(step, placer.successions(), dependences);
        planned.program = build_program(step, config, plan, rams, dependences);
        planned.plan = std::move(plan);
        if (planned.plan.overflows.empty() || options.keep_all || config.memory.layout == LayoutPolicy::Naive) {
            break;
        }
    }
    return planned;
}

}  // namespace contraflow
