// Counting RAM blocks as the vendor's tools do, and holding them against a device.
#pragma once

#include <string>
#include <vector>

#include "common/command.h"
#include "contraflow/config.h"
#include "contraflow/plan.h"

namespace contraflow {

// RAM blocks of a memory, each bank on its own: ceil(width / W) x ceil(depth / D) in the best legal shape.
//   BRAM, two ports: true dual port shapes, RAMB18 16Kx1 8Kx2 4Kx4 2Kx9 1Kx18, RAMB36 32Kx1 .. 1Kx36;
//   BRAM, one port: 512x36 and 512x72 as well. UG573. URAM288: 4096 x 72. LUTRAM: 64 x 1 per LUT and port.
[[nodiscard]] BlockCount blocks_of(const RamGeometry& ram);

// One line per kind of block that the device, after its shell, has too few of.
[[nodiscard]] std::string dram_overflow(std::int64_t bytes, const DramConfig& dram);
[[nodiscard]] std::vector<std::string> overflows_of(const BlockCount& blocks, const DeviceConfig& device);

}  // namespace contraflow
