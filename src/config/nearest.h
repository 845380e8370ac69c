// Suggestions for mistyped words.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace contraflow::config {

// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
[[nodiscard]] std::size_t edit_distance(const std::string& a, const std::string& b);

// The candidate with the smallest edit distance to `word` (the first of several), or "" when all are farther than
// `limit`.
[[nodiscard]] std::string nearest(const std::string& word, const std::vector<std::string>& candidates,
                                  std::size_t limit);

// The same with the limit of a mistyped word: at most a third of it may differ, and two letters in a short word.
[[nodiscard]] std::string nearest(const std::string& word, const std::vector<std::string>& candidates);
[[nodiscard]] std::size_t typing_limit(const std::string& word);

}  // namespace contraflow::config
