// Configurations as the sweep's database spells them.
#pragma once

#include <string>

#include "contraflow/load_config.h"

namespace contraflow::sweep {

// {"engine.cols":8,"tt.rank":4}: sorted by key, values typed as in a report's config. REQUIRES: values the key table
// accepts.
[[nodiscard]] std::string keys_json(const Overrides& assignments);

// The same as load_config takes it.
[[nodiscard]] Overrides assignments_of(const std::string& keys_json);

// Every key of `config` as JSON, as in a report.
[[nodiscard]] std::string configuration_text(const Config& config);

// 16 hexadecimal digits: the same for configurations with equal values of all keys and equal device and memory numbers.
// `text`: the configuration's.
[[nodiscard]] std::string configuration_hash(const std::string& text, const Config& config);
[[nodiscard]] std::string text_hash(const std::string& text);

}  // namespace contraflow::sweep
