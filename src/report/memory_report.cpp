#include "report/memory_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "contraflow/weights.h"

namespace contraflow {

namespace {

constexpr std::int64_t kWordBytes = 4;
constexpr std::int64_t kWordBits = 32;
constexpr std::int64_t kLutBits = 64;
constexpr std::int64_t kBram18Bits = 18'432;
constexpr std::int64_t kUramBits = 294'912;
constexpr std::array kClasses{TensorClass::Parameter, TensorClass::Gradient, TensorClass::Activation,
                              TensorClass::Scratch, TensorClass::Buffer};

// Sizes are stated to four digits, and compression is their ratio: the published table was made like this (65.12 MB /
// 1.531 MB = 42.53; of the bytes themselves it is 42.52).
double four_digits(std::int64_t bytes) {
    return std::stod(fmt::format("{:.3e}", static_cast<double>(bytes)));
}

std::int64_t bits_of(const BlockCount& blocks) {
    return blocks.luts * kLutBits + blocks.bram18 * kBram18Bits + blocks.urams * kUramBits;
}

std::size_t class_index(TensorClass tensor_class) {
    return static_cast<std::size_t>(tensor_class);
}

std::vector<MemoryAtKernel> make_timeline(const Step& step, const Plan& plan) {
    std::vector<MemoryAtKernel> timeline;
    timeline.reserve(plan.alive.size());
    for (std::size_t kernel = 0; kernel < plan.alive.size(); ++kernel) {
        MemoryAtKernel at{step.kernels[kernel].name, {}};
        at.bytes.reserve(kNumTensorClasses);
        for (const std::int64_t words : plan.alive[kernel]) {
            at.bytes.push_back(words * kWordBytes);
        }
        timeline.push_back(std::move(at));
    }
    return timeline;
}

// Words that at least one of the ranges [first, second) covers.
std::int64_t covered_words(std::vector<std::pair<std::int64_t, std::int64_t>> ranges) {
    std::sort(ranges.begin(), ranges.end());
    std::int64_t words = 0;
    std::int64_t end = 0;
    for (const auto& [first, last] : ranges) {
        words += std::max<std::int64_t>(0, last - std::max(first, end));
        end = std::max(end, last);
    }
    return words;
}

const std::string& kernel_name(const Step& step, std::int32_t kernel) {
    static const std::string kNone;
    const auto last = static_cast<std::int32_t>(step.kernels.size()) - 1;
    return last < 0 ? kNone : step.kernels[static_cast<std::size_t>(std::clamp(kernel, 0, last))].name;
}

std::int64_t& bytes_in(ClassBytes& bytes, const std::string& place) {
    return place == "lutram" ? bytes.lutram_bytes
           : place == "bram" ? bytes.bram_bytes
           : place == "uram" ? bytes.uram_bytes
                             : bytes.dram_bytes;
}

}  // namespace

BlockShare& BlockShare::operator+=(const BlockShare& other) {
    luts += other.luts;
    bram36 += other.bram36;
    urams += other.urams;
    return *this;
}

std::int64_t MemoryAtKernel::total() const {
    return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

std::int64_t MemoryReport::bytes_of(TensorClass tensor_class) const {
    std::int64_t bytes = 0;
    for (const ClassBytes& entry : classes) {
        bytes += entry.tensor_class == tensor_class ? entry.bytes() : 0;
    }
    return bytes;
}

MemoryReport make_memory_report(const Config& config, const Step& step, const Plan& plan, const Program& program,
                                bool allow_overflow) {
    MemoryReport report;
    report.parameters_bytes = parameter_words(config, config.network.flow == Flow::Mm) * kWordBytes;
    report.dense_parameters_bytes = parameter_words(config, true) * kWordBytes;
    report.compression = four_digits(report.dense_parameters_bytes) / four_digits(report.parameters_bytes);
    report.peak_on_chip_bytes = plan.peak_words * kWordBytes;
    report.peak_kernel = kernel_name(step, plan.peak_kernel);
    report.bram36 = {plan.blocks.bram36(), config.device.available_bram36, config.device.bram36};
    report.uram = {plan.blocks.urams, config.device.available_urams, config.device.urams};
    report.lutram_luts = {plan.blocks.luts, config.device.available_luts, config.device.luts};
    report.shares_space = plan.shares_space;
    report.allow_overflow = allow_overflow;
    report.overflows = plan.overflows;
    report.on_chip_overflows = plan.on_chip_overflows;
    report.dram_bytes = plan.dram_bytes;
    report.timeline = make_timeline(step, plan);
    for (const MemoryAtKernel& at : report.timeline) {
        report.peak_scratch_bytes = std::max(report.peak_scratch_bytes, at.bytes[class_index(TensorClass::Scratch)]);
    }

    for (const TensorClass tensor_class : kClasses) {
        report.classes.emplace_back();
        report.classes.back().tensor_class = tensor_class;
    }
    std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> ranges(program.rams.size());
    std::vector<double> words_in(program.rams.size(), 0);  // shared words count for each of their tensors
    std::vector<bool> holds_tiles(program.rams.size(), false);
    for (const Placement& placement : plan.placements) {
        if (!placement.in_dram()) {
            words_in[placement.ram] += static_cast<double>(placement.words);
        }
    }
    report.tensors.reserve(step.tensors.size());
    for (std::size_t i = 0; i < step.tensors.size(); ++i) {
        const Tensor& tensor = step.tensors[i];
        const Placement& placement = plan.placements[i];
        TensorReport entry;
        entry.name = tensor.name;
        entry.tensor_class = tensor.tensor_class;
        entry.ram = placement.in_dram() ? "dram" : program.rams[placement.ram].name;
        entry.place = placement.in_dram() ? "dram" : to_string(program.rams[placement.ram].kind);
        entry.layout = placement.layout;
        entry.bytes = tensor.words() * kWordBytes;
        entry.words_occupied = placement.words;
        entry.first_kernel = kernel_name(step, placement.first_kernel);
        entry.last_kernel = kernel_name(step, placement.last_kernel);
        if (!placement.in_dram()) {
            ranges[placement.ram].emplace_back(placement.base, placement.base + placement.words);
            const BlockCount& blocks = plan.ram_blocks[placement.ram];
            const double part = static_cast<double>(placement.words) / words_in[placement.ram];
            entry.blocks = {part * static_cast<double>(blocks.luts), part * static_cast<double>(blocks.bram18) / 2,
                            part * static_cast<double>(blocks.urams)};
            entry.bits_occupied = part * static_cast<double>(bits_of(blocks));
        }
        ClassBytes& own = report.classes[class_index(tensor.tensor_class)];
        if (i < plan.num_tensors) {
            ++own.tensors;
            bytes_in(own, entry.place) += entry.bytes;
        } else {
            holds_tiles[placement.ram] = true;
        }
        own.blocks += entry.blocks;
        own.bits_occupied += entry.bits_occupied;
        report.tensors.push_back(std::move(entry));
    }
    for (std::size_t i = 0; i < program.rams.size(); ++i) {
        RamReport ram;
        ram.geometry = program.rams[i];
        ram.blocks = plan.ram_blocks[i];
        ram.bits_used = covered_words(std::move(ranges[i])) * kWordBits;
        ram.bits_occupied = bits_of(ram.blocks);
        if (holds_tiles[i]) {
            ClassBytes& buffers = report.classes[class_index(TensorClass::Buffer)];
            ++buffers.tensors;
            bytes_in(buffers, to_string(ram.geometry.kind)) += ram.geometry.words() * kWordBytes;
        }
        report.bits_used += ram.bits_used;
        report.bits_occupied += ram.bits_occupied;
        report.rams.push_back(std::move(ram));
    }
    return report;
}

void add_simulated_peaks(const Step& step, const Plan& plan, const std::vector<KernelTimes>& kernels,
                         MemoryReport& report) {
    struct Life {
        std::uint64_t start = std::numeric_limits<std::uint64_t>::max(), end = 0;
    };
    std::vector<Life> lives(step.tensors.size());
    Life whole;
    for (const KernelTimes& times : kernels) {
        const TensorUses uses = tensor_uses(step, step.kernels[times.kernel]);
        for (const auto* ids : {&uses.reads, &uses.writes, &uses.read_modify_writes}) {
            for (const TensorId id : *ids) {
                Life& life = lives[index_of(id)];
                life = {std::min(life.start, times.start), std::max(life.end, times.end)};
            }
        }
        whole = {std::min(whole.start, times.start), std::max(whole.end, times.end)};
    }
    const auto last = static_cast<std::int32_t>(step.kernels.size()) - 1;
    std::vector<std::tuple<std::uint64_t, std::int64_t, bool>> changes;  // when, bytes, scratch; deaths before births
    changes.reserve(2 * lives.size());
    for (std::size_t i = 0; i < lives.size(); ++i) {
        const Placement& placement = plan.placements[i];
        if (placement.in_dram()) {
            continue;
        }
        const bool always = placement.first_kernel == 0 && placement.last_kernel >= last;
        const Life& life = always ? whole : lives[i];
        const std::int64_t bytes = step.tensors[i].words() * kWordBytes;
        const bool scratch = step.tensors[i].tensor_class == TensorClass::Scratch;
        changes.emplace_back(life.start, bytes, scratch);
        changes.emplace_back(life.end, -bytes, scratch);
    }
    std::sort(changes.begin(), changes.end());
    std::int64_t alive = 0;
    std::int64_t scratch_alive = 0;
    for (const auto& [when, bytes, scratch] : changes) {
        alive += bytes;
        scratch_alive += scratch ? bytes : 0;
        report.simulated_peak_on_chip_bytes = std::max(report.simulated_peak_on_chip_bytes, alive);
        report.simulated_peak_scratch_bytes = std::max(report.simulated_peak_scratch_bytes, scratch_alive);
    }
}

}  // namespace contraflow
