// contraflow check: validates a design and plans its memory, and simulates nothing.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "contraflow/error.h"
#include "contraflow/step.h"
#include "plan/planner.h"
#include "report/memory_report.h"
#include "report/report_json.h"
#include "report/report_text.h"
#include "report/table.h"

namespace contraflow::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kFlows{std::pair{Flow::Btt, "btt"}, std::pair{Flow::Tt, "tt"}, std::pair{Flow::Mm, "mm"}};

// A design with one thing changed, planned.
struct Variant {
    std::string name;
    std::int64_t macs = 0;
    MemoryReport memory;
    std::string error;  // why it cannot be planned; empty: it was
};

Variant plan_variant(std::string name, const Config& config, const PlanOptions& options = {}) {
    Variant variant;
    variant.name = std::move(name);
    try {
        Step step = build_training_step(config);
        variant.macs = step.macs();
        const PlannedStep planned = plan_step(std::move(step), config, options);
        variant.memory = make_memory_report(config, planned.step, planned.plan, planned.program, false);
    } catch (const ConfigError& error) {
        variant.error = error.lines().front();
    }
    return variant;
}

PlannedStep plan(const Step& step, const LoadedConfig& design) {
    try {
        return plan_step(step, design.config);
    } catch (const ConfigError& error) {
        throw located(error, design);
    }
}

// The same network under each flow, everything else as configured. `own`: the design itself, already planned.
std::vector<Variant> by_flow(const Config& config, const Variant& own) {
    std::vector<Variant> variants;
    for (const auto& [flow, name] : kFlows) {
        if (flow == config.network.flow) {
            variants.push_back(own);
            variants.back().name = name;
            continue;
        }
        Config other = config;
        other.network.flow = flow;
        variants.push_back(plan_variant(name, other));
    }
    return variants;
}

// The same design under each layout, with everything on chip.
std::vector<Variant> by_layout(const Config& config) {
    std::vector<Variant> variants;
    const auto add = [&](const char* name, LayoutPolicy layout, bool grouping) {
        Config other = config;
        other.memory.layout = layout;
        other.memory.grouping = grouping;
        PlanOptions options;
        options.on_chip = true;
        variants.push_back(plan_variant(name, other, options));
    };
    add("naive", LayoutPolicy::Naive, false);
    add("auto, no grouping", LayoutPolicy::Auto, false);
    add("auto", LayoutPolicy::Auto, true);
    return variants;
}

std::int64_t footprint(const MemoryReport& memory) {
    std::int64_t bytes = 0;
    for (const ClassBytes& entry : memory.classes) {
        bytes += entry.bytes();
    }
    return bytes;
}

std::string verdict(const Variant& variant) {
    if (!variant.error.empty()) {
        return "no plan";
    }
    if (!variant.memory.overflows.empty()) {
        return "no";
    }
    return variant.memory.dram_bytes > 0 ? "with DRAM" : "on chip";
}

std::string flows_text(const std::vector<Variant>& variants) {
    TextTable table({"flow", "MACs of a step", "parameters", "gradients", "activations", "scratch", "buffers", "all",
                     "in DRAM", "BRAM36", "URAM", "fits"});
    for (const Variant& variant : variants) {
        const MemoryReport& memory = variant.memory;
        std::vector<std::string> row{variant.name, grouped(variant.macs)};
        for (const ClassBytes& entry : memory.classes) {
            row.push_back(with_prefix(static_cast<double>(entry.bytes()), "B"));
        }
        row.resize(7, "-");
        row.push_back(with_prefix(static_cast<double>(footprint(memory)), "B"));
        row.push_back(with_prefix(static_cast<double>(memory.dram_bytes), "B"));
        row.push_back(grouped(memory.bram36.used));
        row.push_back(grouped(memory.uram.used));
        row.push_back(verdict(variant));
        table.add(std::move(row));
    }
    std::string text = table.text();
    for (const Variant& variant : variants) {
        if (!variant.error.empty()) {
            text += fmt::format("  {}: {}\n", variant.name, variant.error);
        }
    }
    return text;
}

std::string layouts_text(const std::vector<Variant>& variants) {
    TextTable table({"memory.layout", "BRAM36", "URAM", "LUTs as RAM", "bits used", "fits"});
    for (const Variant& variant : variants) {
        const MemoryReport& memory = variant.memory;
        table.add({variant.name, grouped(memory.bram36.used), grouped(memory.uram.used),
                   grouped(memory.lutram_luts.used),
                   memory.bits_occupied == 0
                       ? "-"
                       : percent(static_cast<double>(memory.bits_used) / static_cast<double>(memory.bits_occupied)),
                   verdict(variant)});
    }
    return table.text();
}

Json timeline_json(const MemoryReport& memory) {
    Json timeline = Json::array();
    for (const MemoryAtKernel& at : memory.timeline) {
        Json entry{{"kernel", at.kernel}};
        for (std::size_t i = 0; i < at.bytes.size(); ++i) {
            entry[fmt::format("{}_bytes", to_string(memory.classes[i].tensor_class))] = at.bytes[i];
        }
        entry["total_bytes"] = at.total();
        timeline.push_back(std::move(entry));
    }
    return timeline;
}

Json variant_json(const Variant& variant) {
    Json json;
    if (!variant.error.empty()) {
        json["error"] = variant.error;
        return json;
    }
    json["footprint_bytes"] = footprint(variant.memory);
    for (const ClassBytes& entry : variant.memory.classes) {
        json["bytes"][to_string(entry.tensor_class)] = entry.bytes();
    }
    json["dram_bytes"] = variant.memory.dram_bytes;
    json["bram36"] = variant.memory.bram36.used;
    json["uram"] = variant.memory.uram.used;
    json["lutram_luts"] = variant.memory.lutram_luts.used;
    json["bits_used"] = variant.memory.bits_used;
    json["bits_occupied"] = variant.memory.bits_occupied;
    json["fits"] = variant.memory.overflows.empty();
    json["fits_on_chip"] = variant.memory.overflows.empty() && variant.memory.on_chip_overflows.empty();
    return json;
}

}  // namespace

int check_command(const Arguments& args) {
    Syntax syntax;
    syntax.usage = "check -c FILE [--allow-overflow] [--json]";
    syntax.summary =
        "Validates a design and plans its memory: sizes, multiply-accumulates, RAM blocks against the device. "
        "Simulates\n"
        "nothing. Exit status 2 if the design does not fit.";
    syntax.takes_design = true;
    syntax.options.add_options()("allow-overflow", "exit status 0 even if the design does not fit");
    syntax.options.add_options()("json", "print JSON");
    const auto line = parse_command(args, syntax);
    if (!line) {
        return 0;
    }
    const Config& config = line->design.config;
    const bool allow = line->has("allow-overflow");
    const Step step = build_training_step(config);
    const PlannedStep planned = plan(step, line->design);
    const MemoryReport memory = make_memory_report(config, planned.step, planned.plan, planned.program, allow);
    const std::vector<Variant> flows = by_flow(config, {"", step.macs(), memory, ""});
    const std::vector<Variant> layouts = by_layout(config);
    if (line->has("json")) {
        Json json;
        json["fits"] = memory.overflows.empty();
        json["kernels"] = planned.step.kernels.size();
        for (const Variant& flow : flows) {
            json["macs"][flow.name] = flow.macs;
        }
        json["memory"] = memory_json(memory);
        json["memory_timeline"] = timeline_json(memory);
        for (const Variant& flow : flows) {
            json["flows"][flow.name] = variant_json(flow);
        }
        for (const Variant& layout : layouts) {
            json["layouts"][layout.name] = variant_json(layout);
        }
        std::cout << json.dump(2) << '\n';
    } else {
        std::cout << memory_text(config, memory) << fmt::format("\nStep: {} kernels\n", planned.step.kernels.size())
                  << "\nThe same network under each flow\n"
                  << flows_text(flows) << "\nThe same design under each layout\n"
                  << layouts_text(layouts);
    }
    if (!memory.overflows.empty() && !allow) {
        std::cout << std::flush;
        throw ConfigError(memory.overflows);
    }
    return 0;
}

}  // namespace contraflow::cli
