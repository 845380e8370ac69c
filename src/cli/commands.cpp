#include "cli/commands.h"

namespace contraflow::cli {

const std::vector<Command>& commands() {
    static const std::vector<Command> table{
        {"keys", "list every configuration key", keys_command},
        {"kernels", "list the kernels of a training step with shapes, MACs and bytes", kernels_command},
        {"devices", "list the FPGAs that have a device file", devices_command},
    };
    return table;
}

}  // namespace contraflow::cli
