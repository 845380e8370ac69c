// Suggestions for mistyped words.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace contraflow::config {

// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
[[nodiscard]] std::size_t edit_distance(const std::string& a, const std::string& b);

// The candidate with the smallest edit distance to `word` (the first of several), or "" when none is close enough to be
// what was meant: at most a third of the word may differ, and two letters in a short word.
[[nodiscard]] std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace contraflow::config
