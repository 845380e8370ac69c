#include "cli/build_run.h"

#include <iostream>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "cli/option_values.h"
#include "contraflow/dataset.h"
#include "contraflow/error.h"
#include "contraflow/weights.h"

namespace contraflow::cli {

namespace {

// Infos are about SystemC's own doings; warnings are the user's to see, but not on stdout; errors end the run.
void handle_report(const sc_core::sc_report& report, const sc_core::sc_actions&) {
    if (report.get_severity() == sc_core::SC_WARNING) {
        std::cerr << "contraflow: warning: " << report.get_msg() << '\n';
    } else if (report.get_severity() > sc_core::SC_WARNING) {
        throw sc_core::sc_report(report);
    }
}

}  // namespace

TrainingOptions read_training_options(const CommandLine& line) {
    TrainingOptions options;
    options.run_mode = parse_either("mode", line.text("mode"), "leap", "clocked") ? RunMode::Leap : RunMode::Clocked;
    options.values = parse_either("values", line.text("values"), "on", "off");
    options.allow_overflow = line.has("allow-overflow");
    if (line.has("init") && line.text("init").empty()) {
        throw ConfigError("--init: expected the name of a checkpoint file");
    }
    return options;
}

std::unique_ptr<TrainingRun> build_run(const CommandLine& line, const TrainingOptions& options) {
    const LoadedConfig& design = line.design;
    Dataset data = load_data(design);
    Weights weights =
        line.has("init") ? load_weights(line.text("init"), design.config) : initial_weights(design.config);
    sc_core::sc_report_handler::set_handler(handle_report);
    try {
        return std::make_unique<TrainingRun>(design.config, options, std::move(data), std::move(weights));
    } catch (const DoesNotFit& error) {
        // What does not fit is told together with the way around it,
        std::vector<std::string> lines = error.lines();
        lines.back() += "; --allow-overflow simulates it anyway";
        throw ConfigError(lines);
    } catch (const ConfigError& error) {
        throw located(error, design);  // and what cannot be planned with the place in the design.
    }
}

}  // namespace contraflow::cli
