#include "dram/address_mapping.h"

#include <array>

#include "common/integer_math.h"

namespace contraflow {

namespace {

std::uint32_t& field_of(DramAddress& place, DramField field) {
    switch (field) {
        case DramField::Row:
            return place.row;
        case DramField::Rank:
            return place.rank;
        case DramField::BankGroup:
            return place.group;
        case DramField::Bank:
            return place.bank;
        case DramField::Column:
            break;
    }
    return place.column;
}

}  // namespace

AddressMapping::AddressMapping(const DramConfig& config) {
    std::array<int, 5> taken{};  // bits of each field that have a part of their own
    for (const MappingPart& part : config.mapping) {
        taken[static_cast<std::size_t>(part.field)] += part.bits;
    }
    std::vector<int> widths;
    for (const MappingPart& part : config.mapping) {
        const int rest = log2_of(config.values_of(part.field)) - taken[static_cast<std::size_t>(part.field)];
        widths.push_back(part.bits == 0 ? rest : part.bits);
    }
    // From the least significant part up: a field's parts are in order, too.
    std::array<int, 5> filled{};
    int from = log2_of(config.burst_bytes());
    for (std::size_t i = widths.size(); i-- > 0;) {
        const DramField field = config.mapping[i].field;
        int& to = filled[static_cast<std::size_t>(field)];
        slices_.push_back({field, from, to, widths[i]});
        from += widths[i];
        to += widths[i];
    }
}

DramAddress AddressMapping::decode(std::uint64_t address) const {
    DramAddress place;
    for (const Slice& slice : slices_) {
        const auto bits = static_cast<std::uint32_t>((address >> slice.from) & ((std::uint64_t{1} << slice.bits) - 1));
        field_of(place, slice.field) |= bits << slice.to;
    }
    return place;
}

std::uint64_t AddressMapping::encode(const DramAddress& place) const {
    DramAddress fields = place;
    std::uint64_t address = 0;
    for (const Slice& slice : slices_) {
        const std::uint64_t bits = (field_of(fields, slice.field) >> slice.to) & ((std::uint64_t{1} << slice.bits) - 1);
        address |= bits << slice.from;
    }
    return address;
}

}  // namespace contraflow
