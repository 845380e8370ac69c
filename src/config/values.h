// Text of one configuration value to a number, switch or list. The whole text must be the value: nothing may follow it.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "contraflow/config.h"

namespace contraflow::config {

// What is wrong with a value, without saying where it stood or what would be right, e.g. `"8x" is not a whole number`.
class BadValue : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// Each throws BadValue when the text is not of the type, does not fit it, or is outside min .. max (both included).
[[nodiscard]] std::int64_t parse_whole(const std::string& text, std::int64_t min, std::int64_t max);
[[nodiscard]] std::uint64_t parse_unsigned(const std::string& text);
[[nodiscard]] double parse_number(const std::string& text, double min, double max);
[[nodiscard]] bool parse_switch(const std::string& text);  // on, off, true, false, 1, 0
// Comma-separated whole numbers, each in min .. max; empty text: an empty list.
[[nodiscard]] std::vector<int> parse_whole_list(const std::string& text, int min, int max);

// The shortest text that reads back as the same value.
[[nodiscard]] std::string number_text(double value);
[[nodiscard]] std::string list_text(const std::vector<int>& values);  // "12,8,8"

// Without white space (blank, tab, carriage return) at both ends.
[[nodiscard]] std::string trimmed(const std::string& text);

// "*.fwd.T:cols,encoder.0.*:rows/1x4": docs/keys.md, engine.mapping.
[[nodiscard]] std::vector<MappingRule> parse_mapping_rules(const std::string& text);
[[nodiscard]] std::string mapping_rules_text(const std::vector<MappingRule>& rules);

}  // namespace contraflow::config
