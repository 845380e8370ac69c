// Values of options that several subcommands take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "contraflow/dataset.h"
#include "contraflow/load_config.h"

namespace contraflow::cli {

// The whole text as a number from 0 on, without a sign.
[[nodiscard]] std::optional<std::int64_t> parse_count(const std::string& text);

// The parsers below throw ConfigError with the option's name and what would be right.
[[nodiscard]] std::size_t parse_count_option(const std::string& option, const std::string& text, std::int64_t min,
                                             std::int64_t max);
[[nodiscard]] std::size_t parse_steps(const std::string& text);  // --steps

// True for the first of the two words.
[[nodiscard]] bool parse_either(const std::string& option, const std::string& text, const char* first,
                                const char* second);

// A file of a kind replaces one of its kind ("checkpoint"), but no other that exists: its first bytes tell.
void refuse_other_file(const std::string& option, const std::string& path, const std::string& what,
                       std::size_t start_bytes, const std::function<bool(const std::string&)>& starts_as_such);

// The design's data set; its problems name the key that led to them.
[[nodiscard]] Dataset load_data(const LoadedConfig& design);

}  // namespace contraflow::cli
