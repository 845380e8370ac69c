// The subcommands: one row per command, one file per command.
#pragma once

#include <string>
#include <vector>

namespace contraflow::cli {

using Arguments = std::vector<std::string>;  // what follows the subcommand's name

struct Command {
    std::string name;
    std::string summary;
    // Returns the exit status; throws ConfigError for the user's mistakes (status 2), anything else is a failed run
    // (1).
    int (*run)(const Arguments& args);
};

[[nodiscard]] const std::vector<Command>& commands();

int train_command(const Arguments& args);
int trace_command(const Arguments& args);
int sweep_command(const Arguments& args);
int merge_command(const Arguments& args);
int export_command(const Arguments& args);
int pareto_command(const Arguments& args);
int check_command(const Arguments& args);
int dram_command(const Arguments& args);
int verify_command(const Arguments& args);
int keys_command(const Arguments& args);
int devices_command(const Arguments& args);
int kernels_command(const Arguments& args);

}  // namespace contraflow::cli
