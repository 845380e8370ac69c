// Rules that tie several keys together.
#pragma once

#include <string>
#include <vector>

#include "contraflow/config.h"

namespace contraflow::config {

// A broken rule: the keys it is about, the one to change first, and what is wrong with what would be right.
struct Conflict {
    std::vector<std::string> keys;
    std::string text;
};

// All broken rules; empty when the configuration can be built. Keys without effect under the flow are not looked at.
[[nodiscard]] std::vector<Conflict> find_conflicts(const Config& config);

// Rules within a device file and within a memory file (keys device.* and dram.*).
[[nodiscard]] std::vector<Conflict> find_device_conflicts(const DeviceConfig& device);
[[nodiscard]] std::vector<Conflict> find_memory_conflicts(const DramConfig& dram);

}  // namespace contraflow::config
