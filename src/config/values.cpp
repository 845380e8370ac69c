#include "config/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>
#include <system_error>

namespace contraflow::config {

namespace {

constexpr std::size_t kQuotedCharacters = 60;

std::string quoted(const std::string& text) {
    if (text.size() <= kQuotedCharacters) {
        return '"' + text + '"';
    }
    return '"' + text.substr(0, kQuotedCharacters) + "...\"";
}

enum class Parsed { Ok, OutOfRange, TextAfter, NotANumber };

// REQUIRES: T is an integer or floating-point type.
template <class T>
Parsed parse_all(const std::string& text, T& value) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc::invalid_argument) {
        return Parsed::NotANumber;
    }
    if (stop != end) {
        return Parsed::TextAfter;
    }
    return error == std::errc::result_out_of_range ? Parsed::OutOfRange : Parsed::Ok;
}

[[noreturn]] void refuse(const std::string& text, Parsed parsed, const char* wanted) {
    if (text.empty()) {
        throw BadValue("has no value");
    }
    double number = 0;
    if (parsed == Parsed::TextAfter && parse_all(text, number) == Parsed::TextAfter) {
        throw BadValue(quoted(text) + " has text after the number");
    }
    throw BadValue(quoted(text) + " is not " + wanted);
}

}  // namespace

std::int64_t parse_whole(const std::string& text, std::int64_t min, std::int64_t max) {
    std::int64_t value = 0;
    const Parsed parsed = parse_all(text, value);
    if (parsed == Parsed::OutOfRange) {
        throw BadValue(quoted(text) + (text.front() == '-' ? " is too small" : " is too large"));
    }
    if (parsed != Parsed::Ok) {
        refuse(text, parsed, "a whole number");
    }
    if (value < min || value > max) {
        throw BadValue(fmt::format("{} is too {}", value, value < min ? "small" : "large"));
    }
    return value;
}

std::uint64_t parse_unsigned(const std::string& text) {
    std::uint64_t value = 0;
    const Parsed parsed = parse_all(text, value);
    if (parsed == Parsed::OutOfRange) {
        throw BadValue(quoted(text) + " is too large");
    }
    if (std::int64_t negative = 0; parsed == Parsed::NotANumber && parse_all(text, negative) != Parsed::NotANumber) {
        throw BadValue(quoted(text) + " is too small");
    }
    if (parsed != Parsed::Ok) {
        refuse(text, parsed, "a whole number");
    }
    return value;
}

double parse_number(const std::string& text, double min, double max) {
    double value = 0;
    const Parsed parsed = parse_all(text, value);
    if (parsed == Parsed::OutOfRange) {
        throw BadValue(quoted(text) + " does not fit a number");
    }
    if (parsed != Parsed::Ok) {
        refuse(text, parsed, "a number");
    }
    if (!std::isfinite(value)) {
        throw BadValue(quoted(text) + " is not a finite number");
    }
    if (value < min || value > max) {
        throw BadValue(fmt::format("{} is too {}", text, value < min ? "small" : "large"));
    }
    return value;
}

bool parse_switch(const std::string& text) {
    if (text == "on" || text == "true" || text == "1") {
        return true;
    }
    if (text == "off" || text == "false" || text == "0") {
        return false;
    }
    throw BadValue(text.empty() ? "has no value" : quoted(text) + " is neither on nor off");
}

std::vector<int> parse_whole_list(const std::string& text, int min, int max) {
    std::vector<int> values;
    if (text.empty()) {
        return values;
    }
    std::size_t begin = 0;
    while (begin <= text.size()) {
        const std::size_t comma = std::min(text.find(',', begin), text.size());
        const std::string element = trimmed(text.substr(begin, comma - begin));
        if (element.empty()) {
            throw BadValue(quoted(text) + " has an empty place");
        }
        values.push_back(static_cast<int>(parse_whole(element, min, max)));
        begin = comma + 1;
    }
    return values;
}

std::string number_text(double value) {
    return fmt::format("{}", value);
}

std::string list_text(const std::vector<int>& values) {
    return fmt::format("{}", fmt::join(values, ","));
}

std::string trimmed(const std::string& text) {
    constexpr const char* kBlanks = " \t\r\v\f";
    const std::size_t begin = text.find_first_not_of(kBlanks);
    if (begin == std::string::npos) {
        return {};
    }
    return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::vector<MappingRule> parse_mapping_rules(const std::string& text) {
    std::vector<MappingRule> rules;
    std::istringstream entries(text);
    for (std::string entry; std::getline(entries, entry, ',');) {
        entry = trimmed(entry);
        const std::size_t colon = entry.rfind(':');
        if (colon == std::string::npos || colon == 0) {
            throw BadValue('"' + entry + "\" has no pattern and form");
        }
        MappingRule rule;
        rule.pattern = entry.substr(0, colon);
        const std::string form = entry.substr(colon + 1);
        const std::size_t slash = form.find('/');
        const std::string index = form.substr(0, slash);
        if (index != "rows" && index != "cols") {
            throw BadValue('"' + form + "\" is no form");
        }
        rule.transposed = index == "cols";
        if (slash != std::string::npos) {
            std::string counts = form.substr(slash + 1);
            std::replace(counts.begin(), counts.end(), 'x', ',');
            const std::vector<int> numbers = parse_whole_list(counts, 1, 1024);
            if (numbers.size() < 2 || numbers.size() > 3) {
                throw BadValue('"' + form + "\" is no form");
            }
            rule.rows = numbers[0];
            rule.cols = numbers[1];
            rule.batches = numbers.size() == 3 ? numbers[2] : 1;
        }
        rules.push_back(rule);
    }
    return rules;
}

std::string mapping_rules_text(const std::vector<MappingRule>& rules) {
    std::string text;
    for (const MappingRule& rule : rules) {
        text += (text.empty() ? "" : ",") + rule.pattern + (rule.transposed ? ":cols" : ":rows");
        if (rule.rows > 0) {
            text +=
                '/' + std::to_string(rule.rows) + 'x' + std::to_string(rule.cols) + 'x' + std::to_string(rule.batches);
        }
    }
    return text;
}

}  // namespace contraflow::config
