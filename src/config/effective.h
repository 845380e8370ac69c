// The configuration as a run used it, written beside its results.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

#include "contraflow/config.h"

namespace contraflow {

// An INI file that load_config reads back to the same configuration, every key with its value.
[[nodiscard]] std::string effective_ini(const Config& config);

// {"network": {"encoders": 2, ...}, ...}: every key of the table, numbers as numbers, lists as arrays.
[[nodiscard]] nlohmann::json config_json(const Config& config);

}  // namespace contraflow
