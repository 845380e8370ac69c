// Where a byte of a channel is: an address is cut into fields by a list of parts, most significant first, above the
// bytes of one burst.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "contraflow/config.h"

namespace contraflow {

struct DramAddress {
    std::uint32_t rank = 0, group = 0, bank = 0;  // bank within its group
    std::uint32_t row = 0;
    std::uint32_t column = 0;  // in bursts
};

// Channels take turns by config.interleave_bytes.
struct ChannelAddress {
    std::size_t channel = 0;
    std::uint64_t address = 0;  // within the channel
};
[[nodiscard]] inline ChannelAddress channel_of(const DramConfig& config, std::uint64_t address) {
    const auto stripe = static_cast<std::uint64_t>(config.interleave_bytes);
    const auto channels = static_cast<std::uint64_t>(config.channels);
    const std::uint64_t index = address / stripe;
    return {static_cast<std::size_t>(index % channels), index / channels * stripe + address % stripe};
}

class AddressMapping {
public:
    // REQUIRES: the parts of config.mapping cover each field once (validated with the design).
    explicit AddressMapping(const DramConfig& config);

    [[nodiscard]] DramAddress decode(std::uint64_t address) const;
    [[nodiscard]] std::uint64_t encode(const DramAddress& place) const;  // first byte

private:
    struct Slice {
        DramField field;
        int from, to, bits;  // lowest bit in the address and in the field
    };
    std::vector<Slice> slices_;
};

}  // namespace contraflow
