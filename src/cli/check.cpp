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

constexpr std::array kFlows{std::pair{Flow::Btt, "btt"}, std::pair{Flow::Tt, "tt"}, std::pair{Flow::Mm, "mm"}};

std::int64_t macs_of(const Step& step) {
    std::int64_t macs = 0;
    for (const Kernel& kernel : step.kernels) {
        macs += kernel.macs();
    }
    return macs;
}

// Multiply-accumulates of a step under each flow, everything else as configured.
std::vector<std::pair<std::string, std::int64_t>> macs_by_flow(const Config& config) {
    std::vector<std::pair<std::string, std::int64_t>> macs;
    for (const auto& [flow, name] : kFlows) {
        Config other = config;
        other.network.flow = flow;
        macs.emplace_back(name, macs_of(build_training_step(other)));
    }
    return macs;
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
    const PlannedStep planned = plan_step(step, config);
    const MemoryReport memory = make_memory_report(config, planned.step, planned.plan, planned.program, allow);
    const auto macs = macs_by_flow(config);
    if (line->has("json")) {
        nlohmann::ordered_json json;
        json["fits"] = memory.overflows.empty();
        json["kernels"] = step.kernels.size();
        for (const auto& [flow, count] : macs) {
            json["macs"][flow] = count;
        }
        json["memory"] = memory_json(memory);
        std::cout << json.dump(2) << '\n';
    } else {
        std::string text = memory_text(config, memory);
        TextTable table({"flow", "MACs of a step"});
        for (const auto& [flow, count] : macs) {
            table.add({flow, grouped(count)});
        }
        text += fmt::format("\nStep: {} kernels\n{}", step.kernels.size(), table.text());
        std::cout << text;
    }
    if (!memory.overflows.empty() && !allow) {
        std::cout << std::flush;
        throw ConfigError(memory.overflows);
    }
    return 0;
}

}  // namespace contraflow::cli
