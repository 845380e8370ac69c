// Command-line parsing shared by the subcommands: their own options, -c FILE, and configuration keys as
// --section.key=value or --section.key value.
#pragma once

#include <boost/program_options.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "contraflow/load_config.h"

namespace contraflow::cli {

// What a subcommand accepts.
struct Syntax {
    std::string usage;    // "run -c FILE [options]"
    std::string summary;  // a sentence or two for --help
    boost::program_options::options_description options{"Options"};
    bool takes_design = false;  // accepts -c FILE, which is then required, and configuration keys
    std::size_t max_positionals = 0;
};

struct CommandLine {
    boost::program_options::variables_map values;  // the subcommand's own options
    LoadedConfig design;                           // if takes_design: validated
    std::vector<std::string> positionals;

    [[nodiscard]] bool has(const std::string& option) const { return values.count(option) != 0; }
    // Of an option with one value: the value, "" if it is not given.
    [[nodiscard]] std::string text(const std::string& option) const {
        return has(option) ? values[option].as<std::string>() : "";
    }
};

// Parses `args`; with --help prints the subcommand's help and returns nothing (the command then returns 0).
// Throws ConfigError for unknown options (with the nearest valid one), bad values, surplus arguments, and all problems
// of the design. An option given twice is an error unless it is composing; of a key given twice the last counts.
[[nodiscard]] std::optional<CommandLine> parse_command(const Arguments& args, const Syntax& syntax);

}  // namespace contraflow::cli
