#include "cli/commands.h"

namespace contraflow::cli {

const std::vector<Command>& commands() {
    static const std::vector<Command> table{
        {"run", "train on the simulated machine and report cycles, stalls, memory and energy", train_command},
        {"trace", "run training steps and write the waveforms of a window", trace_command},
        {"sweep", "run many points of a design, several at once, into a database", sweep_command},
        {"merge", "join the databases of a sweep's shards", merge_command},
        {"export", "write a sweep's database as CSV or JSON", export_command},
        {"pareto", "find the points of a sweep that no other point beats", pareto_command},
        {"check", "validate a design and plan its memory, without simulating", check_command},
        {"verify", "run vector files through the machine and compare", verify_command},
        {"dram", "replay memory requests on the DRAM alone", dram_command},
        {"keys", "list every configuration key", keys_command},
        {"kernels", "list the kernels of a training step with shapes, MACs and bytes", kernels_command},
        {"devices", "list the FPGAs that have a device file", devices_command},
    };
    return table;
}

}  // namespace contraflow::cli
