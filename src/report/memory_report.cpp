#include "report/memory_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

std::string kernel_name(const Step& step, std::int32_t kernel) {
    const auto last = static_cast<std::int32_t>(step.kernels.size()) - 1;
    return last < 0 ? "" : step.kernels[static_cast<std::size_t>(std::clamp(kernel, 0, last))].name;
}

std::int64_t& bytes_in(ClassBytes& bytes, RamKind kind) {
    return kind == RamKind::Lutram ? bytes.lutram_bytes : kind == RamKind::Bram ? bytes.bram_bytes : bytes.uram_bytes;
}

}  // namespace

const char* to_string(RamKind kind) {
    return kind == RamKind::Lutram ? "lutram" : kind == RamKind::Bram ? "bram" : "uram";
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

    for (const TensorClass tensor_class : kClasses) {
        report.classes.push_back({tensor_class, 0, 0, 0, 0});
    }
    std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> ranges(program.rams.size());
    for (std::size_t i = 0; i < step.tensors.size(); ++i) {
        const Tensor& tensor = step.tensors[i];
        const Placement& placement = plan.placements[i];
        const RamGeometry& ram = program.rams[placement.ram];
        TensorReport entry;
        entry.name = tensor.name;
        entry.tensor_class = tensor.tensor_class;
        entry.ram = ram.name;
        entry.kind = ram.kind;
        entry.bytes = tensor.words() * kWordBytes;
        entry.words_occupied = placement.words;
        entry.first_kernel = kernel_name(step, placement.first_kernel);
        entry.last_kernel = kernel_name(step, placement.last_kernel);
        ranges[placement.ram].emplace_back(placement.base, placement.base + placement.words);
        for (ClassBytes& bytes : report.classes) {
            if (bytes.tensor_class == tensor.tensor_class) {
                ++bytes.tensors;
                bytes_in(bytes, ram.kind) += entry.bytes;
            }
        }
        report.tensors.push_back(std::move(entry));
    }
    for (std::size_t i = 0; i < program.rams.size(); ++i) {
        RamReport ram;
        ram.geometry = program.rams[i];
        ram.blocks = plan.ram_blocks[i];
        ram.bits_used = covered_words(std::move(ranges[i])) * kWordBits;
        ram.bits_occupied = ram.blocks.luts * kLutBits + ram.blocks.bram18 * kBram18Bits + ram.blocks.urams * kUramBits;
        report.bits_used += ram.bits_used;
        report.bits_occupied += ram.bits_occupied;
        report.rams.push_back(std::move(ram));
    }
    return report;
}

}  // namespace contraflow
