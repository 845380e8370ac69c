// The constraints between DRAM commands, looked up in the history of a command list: slow, and written apart from the
// model's earliest-time bookkeeping, which it checks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "contraflow/config.h"
#include "dram/dram_device.h"

namespace contraflow::test {

struct ListedCommand {
    Cycle cycle = 0;
    DramCommand command = DramCommand::Act;
    std::size_t rank = 0, group = 0, bank = 0;
    std::uint32_t row = 0;
};

// The first rule that the list breaks; empty if none.
[[nodiscard]] std::string broken_rule(const DramConfig& config, const std::vector<ListedCommand>& commands);

}  // namespace contraflow::test
