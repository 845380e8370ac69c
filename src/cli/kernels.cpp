// contraflow kernels: the work of a training step, before any hardware is chosen to do it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "contraflow/step.h"
#include "step/extent.h"

namespace contraflow::cli {

namespace {

constexpr std::array kPhases{Phase::Forward, Phase::Backward, Phase::Update};
constexpr std::array kClasses{
    KernelClass::Merge,     KernelClass::Apply,  KernelClass::CoreGrad, KernelClass::Attention, KernelClass::Dense,
    KernelClass::Embedding, KernelClass::Vector, KernelClass::Loss,     KernelClass::Update,    KernelClass::Dma};

struct Totals {
    std::int64_t kernels = 0, macs = 0, bytes = 0;

    void add(const Kernel& kernel) {
        ++kernels;
        macs += kernel.macs();
        bytes += kernel.bytes();
    }
};

template <typename Selected>
Totals totals_of(const Step& step, Selected selected) {
    Totals totals;
    for (const Kernel& kernel : step.kernels) {
        if (selected(kernel)) {
            totals.add(kernel);
        }
    }
    return totals;
}

Totals totals_of(const Step& step, Phase phase) {
    return totals_of(step, [phase](const Kernel& kernel) { return kernel.phase == phase; });
}

Totals totals_of(const Step& step, KernelClass kernel_class) {
    return totals_of(step, [kernel_class](const Kernel& kernel) { return kernel.kernel_class == kernel_class; });
}

Totals totals_of(const Step& step) {
    return totals_of(step, [](const Kernel&) { return true; });
}

std::string grouped(std::int64_t value) {
    std::string text = std::to_string(value);
    for (std::size_t end = text.size(); end > 3; end -= 3) {
        text.insert(end - 3, ",");
    }
    return text;
}

void print_text(const Step& step) {
    std::size_t width = 0;
    for (const Kernel& kernel : step.kernels) {
        width = std::max(width, kernel.name.size());
    }
    const auto line = [width](const auto&... cells) {
        std::cout << fmt::format("{:<{}}  {:<9}  {:<8}  {:<21}  {:>12}  {:>12}  {}\n", cells...);
    };
    line("KERNEL", width, "CLASS", "PHASE", "OPERATION", "MACS", "BYTES", "SHAPE");
    for (const Kernel& kernel : step.kernels) {
        const Extent extent = extent_of(kernel);
        line(kernel.name, width, to_string(kernel.kernel_class), to_string(kernel.phase), extent.operation,
             grouped(kernel.macs()), grouped(kernel.bytes()), shape_text(extent));
    }

    const auto total = [](const std::string& name, const Totals& totals) {
        std::cout << fmt::format("{:<9}  {:>7}  {:>13}  {:>13}\n", name, totals.kernels, grouped(totals.macs),
                                 grouped(totals.bytes));
    };
    std::cout << fmt::format("\n{:<9}  {:>7}  {:>13}  {:>13}\n", "PHASE", "KERNELS", "MACS", "BYTES");
    for (const Phase phase : kPhases) {
        total(to_string(phase), totals_of(step, phase));
    }
    std::cout << fmt::format("\n{:<9}  {:>7}  {:>13}  {:>13}\n", "CLASS", "KERNELS", "MACS", "BYTES");
    for (const KernelClass kernel_class : kClasses) {
        total(to_string(kernel_class), totals_of(step, kernel_class));
    }
    std::cout << '\n';
    total("step", totals_of(step));
    std::cout
        << "\nSHAPE: contractions batch x rows x cols x depth (MACs are their product), vector kernels rows x cols, "
           "transfers words.\n"
           "BYTES: operand and result words touched, each once.\n";
}

using Json = nlohmann::ordered_json;

Json to_json(const Totals& totals) {
    return {{"kernels", totals.kernels}, {"macs", totals.macs}, {"bytes", totals.bytes}};
}

void print_json(const Step& step) {
    Json root;
    root["kernels"] = Json::array();
    for (const Kernel& kernel : step.kernels) {
        const Extent extent = extent_of(kernel);
        root["kernels"].push_back({{"name", kernel.name},
                                   {"class", to_string(kernel.kernel_class)},
                                   {"phase", to_string(kernel.phase)},
                                   {"operation", extent.operation},
                                   {"shapes", extent.shapes},
                                   {"macs", kernel.macs()},
                                   {"bytes", kernel.bytes()}});
    }
    for (const Phase phase : kPhases) {
        root["phases"][to_string(phase)] = to_json(totals_of(step, phase));
    }
    for (const KernelClass kernel_class : kClasses) {
        root["classes"][to_string(kernel_class)] = to_json(totals_of(step, kernel_class));
    }
    root["total"] = to_json(totals_of(step));
    std::cout << root.dump(2) << '\n';
}

}  // namespace

int kernels_command(const Arguments& args) {
    Syntax syntax;
    syntax.usage = "kernels -c FILE [--json]";
    syntax.summary =
        "Lists the kernels of one training step in program order, with shapes, MACs and bytes, and their totals by "
        "phase and by class.";
    syntax.takes_design = true;
    syntax.options.add_options()("json", "print JSON");
    const auto line = parse_command(args, syntax);
    if (line) {
        const Step step = build_training_step(line->design.config);
        line->has("json") ? print_json(step) : print_text(step);
    }
    return 0;
}

}  // namespace contraflow::cli
