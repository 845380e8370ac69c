// Text of a DRAM address mapping: A, B, or a list of fields, most significant first.
#pragma once

#include <string>

#include "contraflow/config.h"

namespace contraflow::config {

// "A", "B" or "ro,ba,co:4,bg,co": each of ro, ra, bg, ba, co, cut into parts or not; of a field's parts all but one say
// how many bits they take. Fields that are left out have no bits. Throws BadValue.
[[nodiscard]] AddressOrder parse_address_order(const std::string& text);
[[nodiscard]] std::string address_order_text(const AddressOrder& order);

// What is wrong with the mapping for a memory; empty if nothing.
[[nodiscard]] std::string address_order_problem(const DramConfig& dram);

}  // namespace contraflow::config
