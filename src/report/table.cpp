#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace contraflow {

std::string grouped(std::uint64_t value) {
    std::string text = std::to_string(value);
    for (std::size_t end = text.size(); end > 3; end -= 3) {
        text.insert(end - 3, ",");
    }
    return text;
}

std::string grouped(std::int64_t value) {
    const bool negative = value < 0;
    const std::string digits = grouped(static_cast<std::uint64_t>(negative ? -value : value));
    return negative ? "-" + digits : digits;
}

std::string with_prefix(double value, const std::string& unit) {
    struct Prefix {
        double factor;
        const char* name;
    };
    static constexpr std::array kPrefixes{Prefix{1e9, "G"},  Prefix{1e6, "M"},  Prefix{1e3, "k"}, Prefix{1, ""},
                                          Prefix{1e-3, "m"}, Prefix{1e-6, "u"}, Prefix{1e-9, "n"}};
    if (value == 0 || !std::isfinite(value)) {
        return fmt::format("{} {}", value, unit);
    }
    // 999.96 would be rounded up to 1000.
    const auto fits = [&](const Prefix& prefix) { return std::abs(value) * 1.00005 >= prefix.factor; };
    const bool whole = unit == "B";  // no fractions of a byte
    const auto* found = std::find_if(kPrefixes.begin(), kPrefixes.end() - (whole ? 3 : 0), fits);
    const Prefix& prefix = found == kPrefixes.end() ? kPrefixes.back() : *found;
    const double scaled = value / prefix.factor;
    const int decimals = whole && prefix.factor == 1 ? 0 : scaled >= 99.995 ? 1 : scaled >= 9.9995 ? 2 : 3;
    return fmt::format("{:.{}f} {}{}", scaled, decimals, prefix.name, unit);
}

std::string percent(double fraction) {
    return fmt::format("{:.1f} %", 100 * fraction);
}

std::string TextTable::text() const {
    std::vector<std::size_t> widths;
    for (const auto& row : rows_) {
        widths.resize(std::max(widths.size(), row.size()), 0);
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths[i] = std::max(widths[i], row[i].size());
        }
    }
    std::string text;
    for (const auto& row : rows_) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            line += i == 0 ? fmt::format("  {:<{}}", row[i], widths[i]) : fmt::format("  {:>{}}", row[i], widths[i]);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + '\n';
    }
    return text;
}

}  // namespace contraflow
