#include "cli/build_run.h"

#include <iostream>
#include <string>
#include <systemc>
#include <vector>

#include "contraflow/error.h"

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

std::unique_ptr<TrainingRun> build_run(const LoadedConfig& design, const TrainingOptions& options, Dataset data,
                                       Weights weights) {
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
