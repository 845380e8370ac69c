// Tables of text: columns as wide as their widest cell.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace contraflow {

// 12345678 as 12,345,678.
[[nodiscard]] std::string grouped(std::int64_t value);
[[nodiscard]] std::string grouped(std::uint64_t value);
// With a unit that keeps the number below 1000 (factor 1000): 1.23 MB, 45.6 nJ, 3.35 ms. At least three digits.
[[nodiscard]] std::string with_prefix(double value, const std::string& unit);
[[nodiscard]] std::string percent(double fraction);

class TextTable {
public:
    explicit TextTable(std::vector<std::string> heads) : rows_{std::move(heads)} {}
    void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
    // First column to the left, the others to the right, two spaces before each line.
    [[nodiscard]] std::string text() const;

private:
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace contraflow
