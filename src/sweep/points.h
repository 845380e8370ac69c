// The points of a sweep: which keys it varies, and the values of each point.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "contraflow/load_config.h"

namespace contraflow::sweep {

struct Points {
    std::vector<std::string> keys;                 // section.name, in the order given
    std::vector<std::vector<std::string>> values;  // per point, one text per key, each as the key table prints it

    [[nodiscard]] std::size_t size() const { return values.size(); }
    // What load_config takes.
    [[nodiscard]] Overrides assignments(std::size_t point) const;
};

// More would be a mistyped range.
inline constexpr std::size_t kMaxPoints = 1'000'000;

// When each point is run, from 0: those whose keys of network, tensors, engines and memories are equal one after the
// other, since they have much of their plan in common; otherwise in order.
[[nodiscard]] std::vector<std::size_t> turns_of(const Points& points);

// Cross product of `KEY=SPEC` arguments, the last one varying fastest. SPEC is a list, `8,16,32`, or for numbers a
// range with its ends and step, `4:24:4` (4, 8, ... 24; the end counts if it is met). Values of a key that is itself a
// list are separated by semicolons: `tt.out_modes=12,8,8;8,12,8`. Both throw ConfigError with one line per problem:
// unknown key, bad value, a key or point given twice. A combination of values that no design can have is no problem
// here.
[[nodiscard]] Points cross_product(const std::vector<std::string>& specs);

// From a CSV file: a line of key names, then one line per point; a field with commas stands in double quotes.
[[nodiscard]] Points read_points(const std::string& csv_path);

}  // namespace contraflow::sweep
