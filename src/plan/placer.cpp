#include "plan/placer.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <algorithm>
#include <array>
#include <limits>

#include "common/integer_math.h"
#include "contraflow/error.h"
#include "plan/blocks.h"
#include "plan/layout.h"

namespace contraflow {

namespace {

constexpr std::int64_t kBramRows = 1024;  // depth of a shared BRAM bank: one RAMB36 of 1K x 36
constexpr std::int64_t kUramRows = 4096;  // one URAM288
constexpr std::int64_t kWordBits = 32;
constexpr int kUramLanes = 2;            // words of 32 bits in a row of 72
constexpr std::int64_t kBuckets = 2048;  // of the step's time
constexpr float kWriteBackShare = 0.5F;  // of a contraction's time, for a port that only write-back needs
constexpr float kDmaShare = 0.5F;
constexpr float kCrowding = 0.2F;             // of a cycle, for every other tensor moved meanwhile
constexpr float kWorthAMemory = 1.0F / 4096;  // of the step's cycles: stalls that justify a memory more

RamPlace class_place(TensorClass tensor_class, const MemoryPolicy& memory) {
    switch (tensor_class) {
        case TensorClass::Parameter:
            return memory.parameters;
        case TensorClass::Gradient:
            return memory.gradients;
        case TensorClass::Activation:
            return memory.activations;
        case TensorClass::Scratch:
            return memory.scratch;
        case TensorClass::Buffer:
            return RamPlace::Lutram;
    }
    return RamPlace::Auto;
}

// A tensor on its way into a memory.
struct Request {
    std::size_t tensor = 0;
    RamKind kind = RamKind::Bram;
    int banks = 1, lanes = 1;
    std::string group;
    std::vector<LayoutLevel> levels;
    std::string layout;
    std::int64_t words = 0;
    std::int32_t first = 0, last = 0;  // lifetime in kernels
};

// A memory under construction.
struct Pool {
    RamGeometry geometry;
    std::string group;
    std::int64_t capacity = 0;  // words
    bool closed = false;        // takes only what names its group
    struct Block {
        std::size_t tensor = 0;
        std::int64_t begin = 0, end = 0;
        std::int64_t next_row = 0;  // first row boundary from the end on
        std::int32_t first = 0, last = 0;
    };
    std::vector<Block> blocks;  // by address, without a gap but at the ends of rows
    std::int64_t next_row = 0;  // behind all of them
    bool shared = false;        // blocks overlap

    [[nodiscard]] std::int64_t width() const { return std::int64_t{geometry.banks} * geometry.lanes; }
};

// A number per memory under construction, for each of many times (kernels): those of one time lie side by side.
template <typename Number>
class PoolTable {
public:
    explicit PoolTable(std::size_t rows) : rows_(rows) {}

    void add_pool() {
        if (pools_ == width_) {
            const std::size_t width = std::max<std::size_t>(16, 2 * width_);
            std::vector<Number> numbers(rows_ * width);
            for (std::size_t row = 0; row < rows_; ++row) {
                std::copy_n(numbers_.data() + row * width_, width_, numbers.data() + row * width);
            }
            numbers_ = std::move(numbers);
            width_ = width;
        }
        ++pools_;
    }
    [[nodiscard]] Number* row(std::size_t row) { return numbers_.data() + row * width_; }

private:
    std::size_t rows_;
    std::size_t pools_ = 0, width_ = 0;
    std::vector<Number> numbers_;
};

class Placer {
public:
    explicit Placer(const PlacementRequest& request)
        : in_(request),
          memory_(request.config.memory),
          uses_(request.step.tensors.size()),
          moved_(static_cast<std::size_t>(kBuckets)),
          tensors_of_kernel_(request.step.kernels.size()) {
        std::int64_t end = 0;
        for (const KernelSpan& span : in_.spans) {
            end = std::max(end, span.end);
        }
        bucket_cycles_ = std::max<std::int64_t>(1, ceil_div(end, kBuckets - 1));
        find_uses();
    }

    PlacedTensors place_all() {
        placed_.placements.resize(in_.step.tensors.size());
        for (std::size_t i = 0; i < in_.step.tensors.size(); ++i) {
            if (in_.dram_homes[i] >= 0) {
                Placement& placement = placed_.placements[i];
                placement.ram = Placement::kDram;
                placement.dram_address = in_.dram_homes[i];
                placement.words = in_.step.tensors[i].words();
                placement.layout = "row-major";
                placement.last_kernel = in_.facts.lifetimes[i].second;
                continue;
            }
            place(i);
        }
        // A memory is as deep as what it holds.
        for (Pool& pool : pools_) {
            pool.geometry.rows = pool.next_row / pool.width();
            placed_.rams.push_back(pool.geometry);
        }
        find_successions();
        return std::move(placed_);
    }

private:
    // When each tensor is moved: the spans of the kernels that do, an output of a contraction only part of the time.
    void find_uses() {
        const auto add = [this](TensorId tensor, std::size_t kernel, float share) {
            if (tensor == kNoTensor) {
                return;
            }
            std::vector<Use>& own = uses_[index_of(tensor)];
            const auto first = static_cast<std::int32_t>(in_.spans[kernel].start / bucket_cycles_);
            const auto last = static_cast<std::int32_t>(in_.spans[kernel].end / bucket_cycles_);
            if (own.empty() || own.back().kernel != kernel) {
                own.push_back({kernel, first, last, share});
            } else {
                own.back().share = std::max(own.back().share, share);
            }
        };
        for (std::size_t k = 0; k < in_.step.kernels.size(); ++k) {
            const Kernel& kernel = in_.step.kernels[k];
            if (const auto* c = std::get_if<Contraction>(&kernel.work)) {
                add(c->a.tensor, k, 1);
                add(c->b.tensor, k, 1);
                for (const TensorId written : {c->out.tensor, c->bias.tensor, c->residual.tensor}) {
                    add(written, k, kWriteBackShare);
                }
            } else if (const auto* vector = std::get_if<VectorKernel>(&kernel.work)) {
                const float share = 1.0F / static_cast<float>(vector->segments.size());
                for (const VectorSegment& segment : vector->segments) {
                    for (const auto* operands : {&segment.in, &segment.out}) {
                        for (const VectorOperand& operand : *operands) {
                            add(operand.tensor, k, share);
                        }
                    }
                }
            } else {
                add(std::get<DmaTransfer>(kernel.work).tensor, k, kDmaShare);
            }
        }
    }

    // Predicted cycles lost to missing ports if the tensor came into each of the memories. Kernels that move two of a
    // memory's tensors hold two of its ports for each burst and wait for both; a memory that is busy at all is likelier
    // to be so when the tensor is needed than one that is not.
    void find_added_stalls(std::size_t tensor) {
        const std::size_t count = pools_.size();
        stalls_.assign(count, 0);
        float* const buckets = stalls_.data();
        const auto ports = static_cast<float>(memory_.ports);
        for (const Use& use : uses_[tensor]) {
            const std::int32_t* const tensors = tensors_of_kernel_.row(use.kernel);
            const std::int32_t length = use.last - use.first + 1;
            const float share = use.share;
            for (std::size_t i = 0; i < count; ++i) {
                buckets[i] += static_cast<float>(tensors[i] * length) * share;
            }
            for (std::int32_t bucket = use.first; bucket <= use.last; ++bucket) {
                const float* const moved = moved_.row(static_cast<std::size_t>(bucket));
                for (std::size_t i = 0; i < count; ++i) {
                    buckets[i] += std::max(0.0F, moved[i] + share - ports) - std::max(0.0F, moved[i] - ports) +
                                  kCrowding * moved[i] * share;
                }
            }
        }
        for (float& stalls : stalls_) {
            stalls *= static_cast<float>(bucket_cycles_);
        }
    }

    [[nodiscard]] Request make_request(std::size_t i, RamKind kind) const {
        const Tensor& tensor = in_.step.tensors[i];
        const TensorWish& wish = in_.wishes[i];
        Request request;
        request.tensor = i;
        request.kind = kind;
        request.group = wish.group;
        if (in_.stream_buffers[i] >= 0) {
            request.group = fmt::format("stream{}", in_.stream_buffers[i]);
        }
        if (!wish.partitions.empty() || wish.reshape > 0) {
            request.lanes = std::max(1, wish.reshape);
            request.banks = static_cast<int>(partition_banks(wish.partitions));
            request.levels = make_partitioned_levels(tensor, in_.splits[i], wish.partitions, request.lanes);
            std::vector<std::string> parts;
            for (const Partition& partition : wish.partitions) {
                parts.push_back(to_string(partition));
            }
            if (wish.reshape > 0) {
                parts.push_back(fmt::format("reshape={}", wish.reshape));
            }
            request.layout = fmt::format("{}", fmt::join(parts, " "));
        } else {
            const bool skewed = memory_.layout == LayoutPolicy::Auto;
            request.lanes = request.kind == RamKind::Uram && memory_.banks > 1 ? kUramLanes : 1;
            request.banks = static_cast<int>(ceil_div(memory_.banks, request.lanes));
            request.levels = make_levels(in_.splits[i], request.banks, request.lanes, skewed);
            request.layout = skewed && occupied_words(request.levels) > tensor.words() ? "skewed" : "row-major";
        }
        request.words = occupied_words(request.levels);
        if (request.words > std::numeric_limits<std::int32_t>::max()) {
            throw ConfigError(fmt::format(
                "tensor {} occupies {} words; expected at most 2147483647, which a 32-bit address generator reaches",
                tensor.name, request.words));
        }
        request.first = in_.facts.lifetimes[i].first;
        request.last = in_.facts.lifetimes[i].second;
        return request;
    }

    // Every tensor has a memory to itself.
    [[nodiscard]] bool own_memories() const { return memory_.layout == LayoutPolicy::Naive || !memory_.grouping; }

    [[nodiscard]] bool may_share(const Request& request) const { return !own_memories() || !request.group.empty(); }

    // The configuration leaves the kind of memory open.
    [[nodiscard]] bool is_open(std::size_t i) const {
        return in_.stream_buffers[i] < 0 && in_.wishes[i].place == RamPlace::Auto && in_.wishes[i].group.empty();
    }

    [[nodiscard]] RamKind kind_of(std::size_t i) const {
        const Tensor& tensor = in_.step.tensors[i];
        if (in_.stream_buffers[i] >= 0) {
            return in_.config.device.urams > 0 ? RamKind::Uram : RamKind::Bram;
        }
        switch (in_.wishes[i].place) {
            case RamPlace::Lutram:
                return RamKind::Lutram;
            case RamPlace::Uram:
                return RamKind::Uram;
            case RamPlace::Bram:
                return RamKind::Bram;
            case RamPlace::Auto:
            case RamPlace::Dram:
                break;
        }
        // A memory of its own may be small enough for LUTRAM; a shared one is not.
        const std::int64_t depth = ceil_div(tensor.words(), std::int64_t{memory_.banks});
        if (own_memories() && depth <= memory_.lutram_max_words && depth * kWordBits <= memory_.lutram_max_bits) {
            return RamKind::Lutram;
        }
        if (in_.config.device.urams == 0) {
            return RamKind::Bram;
        }
        const bool passing =
            tensor.tensor_class != TensorClass::Parameter && tensor.tensor_class != TensorClass::Gradient;
        const bool large = tensor.words() > kBramRows * memory_.banks;
        return passing || large ? RamKind::Uram : RamKind::Bram;
    }

    // A place that a tensor may take: `pool` with the fewest stalls, or a new memory.
    struct Option {
        Request request;
        Pool* pool = nullptr;
        std::int64_t begin = 0;
        float stalls = 0;
        bool may_add = false;  // the device has room for a memory more
    };

    // REQUIRES: find_added_stalls of the tensor.
    [[nodiscard]] Option best_option(Request request) {
        Option option;
        option.may_add = has_budget(request);
        if (may_share(request)) {
            for (std::size_t i = 0; i < pools_.size(); ++i) {
                if (!accepts(pools_[i], request)) {
                    continue;
                }
                const float most = option.pool == nullptr ? std::numeric_limits<float>::max() : option.stalls;
                std::int64_t begin = 0;
                if (stalls_[i] < most && find_space(pools_[i], request, begin)) {
                    option.pool = &pools_[i];
                    option.begin = begin;
                    option.stalls = stalls_[i];
                }
            }
        }
        option.request = std::move(request);
        return option;
    }

    // The kind of memory that suits the tensor; where it has no room left, or only at the price of stalls, the other.
    void place(std::size_t tensor) {
        const float worth = kWorthAMemory * static_cast<float>(bucket_cycles_ * kBuckets);
        const auto settled = [&](const Option& option) {
            const bool named = !option.request.group.empty();
            return option.may_add || (option.pool != nullptr && (named || option.stalls <= worth));
        };
        Request request = make_request(tensor, kind_of(tensor));
        if (may_share(request)) {
            find_added_stalls(tensor);
        }
        Option option = best_option(std::move(request));
        if (!settled(option) && is_open(tensor) && option.request.kind != RamKind::Lutram) {
            const bool to_bram = option.request.kind == RamKind::Uram;
            if (to_bram || in_.config.device.urams > 0) {
                Option other = best_option(make_request(tensor, to_bram ? RamKind::Bram : RamKind::Uram));
                const bool better = other.pool != nullptr && (option.pool == nullptr || other.stalls < option.stalls);
                if (settled(other) || better) {
                    option = std::move(other);
                }
            }
        }
        const bool add =
            option.pool == nullptr || (option.request.group.empty() && option.stalls > worth && option.may_add);
        Pool& pool = add ? add_pool(option.request) : *option.pool;
        put(std::move(option.request), pool, add ? 0 : option.begin);
    }

    void put(Request request, Pool& pool, std::int64_t begin) {
        const auto number = static_cast<std::size_t>(&pool - pools_.data());
        for (const Use& use : uses_[request.tensor]) {
            ++tensors_of_kernel_.row(use.kernel)[number];
            for (std::int32_t bucket = use.first; bucket <= use.last; ++bucket) {
                moved_.row(static_cast<std::size_t>(bucket))[number] += use.share;
            }
        }
        const std::int64_t end = begin + request.words;
        const std::int64_t next_row = ceil_div(end, pool.width()) * pool.width();
        const Pool::Block block{request.tensor, begin, end, next_row, request.first, request.last};
        const auto position =
            std::upper_bound(pool.blocks.begin(), pool.blocks.end(), block,
                             [](const Pool::Block& a, const Pool::Block& b) { return a.begin < b.begin; });
        pool.blocks.insert(position, block);
        pool.shared = pool.shared || begin < pool.next_row;
        pool.next_row = std::max(pool.next_row, next_row);
        Placement& placement = placed_.placements[request.tensor];
        placement.ram = static_cast<std::uint32_t>(number);
        placement.base = begin;
        placement.words = request.words;
        placement.levels = std::move(request.levels);
        placement.layout = std::move(request.layout);
        placement.first_kernel = request.first;
        placement.last_kernel = request.last;
    }

    [[nodiscard]] bool accepts(const Pool& pool, const Request& request) const {
        if (pool.group != request.group) {
            return false;
        }
        const bool same = pool.geometry.kind == request.kind && pool.geometry.banks == request.banks &&
                          pool.geometry.lanes == request.lanes;
        if (!same && !request.group.empty()) {
            throw ConfigError(fmt::format(
                "memory.tensors: group {} holds {} in {} banks of {} words; {} wants {} of {} in {}; expected one "
                "layout",
                request.group, to_string(pool.geometry.kind), pool.geometry.banks, pool.geometry.lanes,
                in_.step.tensors[request.tensor].name, request.banks, request.lanes, to_string(request.kind)));
        }
        return same;
    }

    // Lowest free place, at a row boundary; words whose tensor is dead are free when space is shared.
    [[nodiscard]] bool find_space(const Pool& pool, const Request& request, std::int64_t& begin) const {
        const bool named = !request.group.empty();  // such a memory grows as needed
        const bool share = in_.share || in_.stream_buffers[request.tensor] >= 0;
        begin = share ? 0 : pool.next_row;
        for (auto block = pool.blocks.begin(); share && block != pool.blocks.end(); ++block) {
            if (block->begin >= begin + request.words) {
                break;  // blocks ascend, so that none that was passed is met again
            }
            if (begin < block->end && block->first <= request.last && request.first <= block->last) {
                begin = block->next_row;
            }
        }
        return named || begin + request.words <= pool.capacity;
    }

    Pool& add_pool(const Request& request) {
        Pool pool;
        pool.group = request.group;
        pool.geometry.kind = request.kind;
        pool.geometry.banks = request.banks;
        pool.geometry.lanes = request.lanes;
        pool.geometry.ports = memory_.ports;
        std::int64_t rows = 0;
        switch (request.kind) {
            case RamKind::Lutram:
                rows = memory_.lutram_max_words;
                pool.geometry.read_latency_cycles = memory_.lutram_read_latency_cycles;
                break;
            case RamKind::Bram:
                rows = kBramRows;
                pool.geometry.read_latency_cycles = memory_.bram_read_latency_cycles;
                break;
            case RamKind::Uram:
                rows = kUramRows;
                pool.geometry.read_latency_cycles = memory_.uram_read_latency_cycles;
                break;
        }
        rows = std::max(rows, ceil_div(request.words, pool.width()));
        pool.geometry.rows = rows;
        pool.capacity = rows * pool.width();
        int& number = numbers_[static_cast<std::size_t>(request.kind)];
        pool.geometry.name = fmt::format("{}{}", to_string(request.kind), number++);
        moved_.add_pool();
        tensors_of_kernel_.add_pool();
        used_ += blocks_of(pool.geometry);
        pools_.push_back(std::move(pool));
        return pools_.back();
    }

    // Whether the device has room for one more memory of usual depth.
    [[nodiscard]] bool has_budget(const Request& request) const {
        const DeviceConfig& device = in_.config.device;
        if (request.kind == RamKind::Bram) {
            return used_.bram36() + request.banks <= device.available_bram36;
        }
        if (request.kind == RamKind::Uram) {
            return used_.urams + request.banks <= device.available_urams;
        }
        return true;
    }

    // A tensor waits for those whose words it takes over, but not for one whose words yet another took over in between.
    void find_successions() {
        std::vector<const Pool::Block*> before;
        for (const Pool& pool : pools_) {
            if (!pool.shared) {
                continue;
            }
            for (const Pool::Block& later : pool.blocks) {
                before.clear();
                for (const Pool::Block& block : pool.blocks) {
                    if (block.begin >= later.end) {
                        break;
                    }
                    if (block.last < later.first && later.begin < block.end) {
                        before.push_back(&block);
                    }
                }
                std::sort(before.begin(), before.end(), [](const Pool::Block* a, const Pool::Block* b) {
                    return a->last != b->last ? a->last > b->last : a->tensor < b->tensor;
                });
                std::size_t kept = 0;
                for (const Pool::Block* block : before) {
                    const std::int64_t begin = std::max(block->begin, later.begin);
                    const std::int64_t end = std::min(block->end, later.end);
                    const bool hidden =
                        std::any_of(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(kept),
                                    [&](const Pool::Block* other) {
                                        return block->last < other->first && other->begin <= begin && other->end >= end;
                                    });
                    if (!hidden) {
                        before[kept++] = block;
                        placed_.successions.emplace_back(block->tensor, later.tensor);
                    }
                }
            }
        }
    }

    const PlacementRequest& in_;
    const MemoryPolicy& memory_;
    // A kernel that moves the tensor, in time buckets, and the share of that time in which it needs a port.
    struct Use {
        std::size_t kernel = 0;
        std::int32_t first = 0, last = 0;
        float share = 1;
    };
    std::vector<std::vector<Use>> uses_;  // by tensor
    std::int64_t bucket_cycles_ = 1;
    std::vector<Pool> pools_;
    PoolTable<float> moved_;                     // by time bucket: a memory's tensors that are moved at that time
    PoolTable<std::int32_t> tensors_of_kernel_;  // by kernel: how many of a memory's tensors it moves
    std::vector<float> stalls_;                  // by memory: find_added_stalls
    PlacedTensors placed_;
    BlockCount used_;
    std::array<int, 3> numbers_{};
};

}  // namespace

std::vector<TensorWish> tensor_wishes(const Step& step, const MemoryPolicy& memory) {
    std::vector<TensorWish> wishes(step.tensors.size());
    for (std::size_t i = 0; i < wishes.size(); ++i) {
        wishes[i].place = class_place(step.tensors[i].tensor_class, memory);
    }
    std::vector<std::string> problems;
    for (const TensorRule& rule : memory.tensors) {
        bool matched = false;
        for (std::size_t i = 0; i < wishes.size(); ++i) {
            if (fnmatch(rule.pattern.c_str(), step.tensors[i].name.c_str(), 0) != 0) {
                continue;
            }
            matched = true;
            TensorWish& wish = wishes[i];
            wish.place = rule.place.value_or(wish.place);
            wish.partitions = rule.partitions.empty() ? wish.partitions : rule.partitions;
            wish.reshape = rule.reshape == 0 ? wish.reshape : rule.reshape;
            wish.group = rule.group.empty() ? wish.group : rule.group;
        }
        if (!matched) {
            problems.push_back(fmt::format(
                "memory.tensors: {} matches no tensor of this design; expected a pattern of their names, which "
                "`contraflow check --json` lists",
                rule.pattern));
        }
    }
    // The host's sample arrives in its buffer, and the loss leaves from its own.
    for (const TensorId id : {step.sample, step.loss}) {
        if (id != kNoTensor && wishes[index_of(id)].place == RamPlace::Dram) {
            wishes[index_of(id)].place = RamPlace::Auto;
        }
    }
    if (!problems.empty()) {
        throw ConfigError(problems);
    }
    return wishes;
}

PlacedTensors place_tensors(const PlacementRequest& request) {
    return Placer(request).place_all();
}

}  // namespace contraflow
