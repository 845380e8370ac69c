#include "plan/blocks.h"

#include <fmt/format.h>
#include <algorithm>

#include "common/integer_math.h"

namespace contraflow {

namespace {

// RAMB18s of a depth x width array; a RAMB36 counts as two.
std::int64_t bram18_of(std::int64_t depth, std::int64_t width, int ports) {
    struct Shape {
        std::int64_t depth, width, halves;
        bool dual_port;
    };
    static constexpr Shape kShapes[] = {
        {16384, 1, 1, true}, {8192, 2, 1, true},  {4096, 4, 1, true},  {2048, 9, 1, true}, {1024, 18, 1, true},
        {512, 36, 1, false}, {32768, 1, 2, true}, {16384, 2, 2, true}, {8192, 4, 2, true}, {4096, 9, 2, true},
        {2048, 18, 2, true}, {1024, 36, 2, true}, {512, 72, 2, false}};
    std::int64_t best = 0;
    for (const Shape& shape : kShapes) {
        if (!shape.dual_port && ports > 1) {
            continue;
        }
        const std::int64_t blocks = ceil_div(depth, shape.depth) * ceil_div(width, shape.width) * shape.halves;
        best = best == 0 ? blocks : std::min(best, blocks);
    }
    return best;
}

}  // namespace

BlockCount& BlockCount::operator+=(const BlockCount& other) {
    luts += other.luts;
    bram18 += other.bram18;
    urams += other.urams;
    return *this;
}

BlockCount blocks_of(const RamGeometry& ram) {
    BlockCount count;
    const std::int64_t width = std::int64_t{32} * ram.lanes;
    switch (ram.kind) {
        case RamKind::Lutram:
            count.luts = ram.banks * ceil_div(ram.rows, 64) * width * ram.ports;
            break;
        case RamKind::Bram:
            count.bram18 = ram.banks * bram18_of(ram.rows, width, ram.ports);
            break;
        case RamKind::Uram:
            count.urams = ram.banks * ceil_div(ram.rows, 4096) * ceil_div(width, 72);
            break;
    }
    return count;
}

std::string dram_overflow(std::int64_t bytes, const DramConfig& dram) {
    const std::int64_t capacity = dram.channel_bytes * dram.channels;
    return fmt::format("the plan needs {} bytes of DRAM, {} of {} {} have {}: {} too many", bytes, dram.channels,
                       dram.name, dram.channels == 1 ? "channel" : "channels", capacity, bytes - capacity);
}

std::vector<std::string> overflows_of(const BlockCount& blocks, const DeviceConfig& device) {
    std::vector<std::string> lines;
    const auto check = [&](const char* what, std::int64_t used, std::int64_t available) {
        if (used > available) {
            lines.push_back(fmt::format("{} needs {} {}, {} leaves {}: {} too many", "the plan", used, what,
                                        device.name, available, used - available));
        }
    };
    check("BRAM36", blocks.bram36(), device.available_bram36);
    check("URAM", blocks.urams, device.available_urams);
    check("LUTs for LUTRAM", blocks.luts, device.available_luts);
    return lines;
}

}  // namespace contraflow
