#include "config/nearest.h"

#include <algorithm>

namespace contraflow::config {

std::size_t edit_distance(const std::string& a, const std::string& b) {
    // Rows of the usual table: before_last and last are those of the prefixes of `a` one and two letters shorter.
    std::vector<std::size_t> before_last;
    std::vector<std::size_t> last(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) {
        last[j] = j;
    }
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::vector<std::size_t> row(b.size() + 1);
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U);
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = std::min(row[j], before_last[j - 2] + 1);
            }
        }
        before_last = std::move(last);
        last = std::move(row);
    }
    return last[b.size()];
}

std::size_t typing_limit(const std::string& word) {
    return std::max<std::size_t>(2, word.size() / 3);
}

std::string nearest(const std::string& word, const std::vector<std::string>& candidates, std::size_t limit) {
    constexpr std::size_t kLongestWord = 100;  // the table grows with the square of the length
    if (word.size() > kLongestWord) {
        return {};
    }
    std::string best;
    std::size_t best_distance = limit + 1;
    for (const std::string& candidate : candidates) {
        const std::size_t distance = edit_distance(word, candidate);
        if (distance < best_distance && distance < word.size()) {
            best_distance = distance;
            best = candidate;
        }
    }
    return best;
}

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
    return nearest(word, candidates, typing_limit(word));
}

}  // namespace contraflow::config
