// The numbers of a point by dotted names: cycles.total, memory.bram36.used, blocks.engine0.busy, loss[0].
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sweep/database.h"

namespace contraflow::sweep {

using Numbers = std::vector<std::pair<std::string, nlohmann::json>>;

// All numbers of a stored report, in its order: what the view `numbers` holds.
[[nodiscard]] Numbers numbers_of(const std::string& report);

// The value of a report's number or, failing that, of a configuration key (tt.rank); null if the row has neither or it
// is no number.
[[nodiscard]] nlohmann::json number_of(const Row& row, const std::string& name);

// The values of the swept keys in the order of `keys`, as the command line takes them.
[[nodiscard]] std::vector<std::string> key_values(const Row& row, const std::vector<std::string>& keys);

// What is wrong with a name that is none of `names`.
[[nodiscard]] std::string unknown_number_text(const std::string& name, const std::vector<std::string>& names);

// A line of a CSV file; a field with a comma, a quote or a line end stands in quotes.
[[nodiscard]] std::string csv_line(const std::vector<std::string>& fields);

}  // namespace contraflow::sweep
