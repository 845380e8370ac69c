// Trains a design for some steps and prints what each took: the simulator inside another program.
//
//     embed DESIGN.ini STEPS [section.key=value ...]
#include <cstddef>
#include <exception>
#include <iostream>
#include <string>
#include <systemc>

#include "contraflow/error.h"
#include "contraflow/load_config.h"
#include "contraflow/training_run.h"

namespace {

contraflow::Overrides read_overrides(int argc, char* argv[]) {
    contraflow::Overrides overrides;
    for (int i = 3; i < argc; ++i) {
        const std::string text = argv[i];
        const std::size_t equals = text.find('=');
        if (equals == std::string::npos) {
            throw contraflow::ConfigError(text + ": expected section.key=value");
        }
        overrides.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
    return overrides;
}

}  // namespace

// SystemC brings main(), which calls this; <systemc> declares it.
int sc_main(int argc, char* argv[]) {
    if (argc < 3) {
        std::cerr << "usage: embed DESIGN.ini STEPS [section.key=value ...]\n";
        return 2;
    }
    try {
        const contraflow::Config config = contraflow::load_config(argv[1], read_overrides(argc, argv)).config;
        contraflow::TrainingRun run(config, {});
        std::cout << "step,cycles,loss\n";
        std::size_t step = 0;
        run.train(std::stoul(argv[2]), [&](const contraflow::StepOutcome& outcome) {
            std::cout << step++ << ',' << outcome.end - outcome.start << ',' << outcome.loss << '\n';
        });
        std::cout << run.report_json() << '\n';
        return 0;
    } catch (const contraflow::ConfigError& error) {  // also a design that does not fit
        for (const std::string& line : error.lines()) {
            std::cerr << line << '\n';
        }
        return 2;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
