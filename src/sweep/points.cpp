#include "sweep/points.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>

#include "config/ini_file.h"
#include "config/key_table.h"
#include "config/values.h"
#include "contraflow/error.h"

namespace contraflow::sweep {

namespace {

using config::Key;
using Problems = std::vector<std::string>;

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::size_t begin = 0;
    for (;;) {
        const std::size_t end = text.find(separator, begin);
        parts.push_back(config::trimmed(text.substr(begin, end - begin)));
        if (end == std::string::npos) {
            return parts;
        }
        begin = end + 1;
    }
}

// The value as the key table prints it, so that 8 and 08 are the same point. `where`: beginning of a message.
std::optional<std::string> canonical(const Key& key, const std::string& text, const std::string& where,
                                     Problems& problems) {
    Config scratch;
    try {
        key.set(scratch, text);
        if (key.full_name() == "device.file") {
            (void)load_device(text);
        } else if (key.full_name() == "dram.file" && !text.empty()) {
            (void)load_memory(text);
        }
        return key.text(scratch);
    } catch (const config::BadValue& bad) {
        problems.push_back(where + bad.what() + "; " + key.expected());
    } catch (const ConfigError& error) {
        problems.push_back(where + error.lines().front());
    }
    return std::nullopt;
}

// A decimal number as an integer times a power of ten, so that ranges count exactly.
struct Decimal {
    std::int64_t digits = 0;
    std::size_t places = 0;
};

std::optional<Decimal> parse_decimal(const std::string& text) {
    Decimal decimal;
    std::string digits = text;
    const std::size_t point = digits.find('.');
    if (point != std::string::npos) {
        decimal.places = digits.size() - point - 1;
        digits.erase(point, 1);
    }
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), decimal.digits);
    const bool whole = error == std::errc{} && end == digits.data() + digits.size();
    constexpr std::int64_t kMax = 1'000'000'000'000;
    if (!whole || decimal.places > 9 || decimal.digits > kMax || decimal.digits < -kMax) {
        return std::nullopt;
    }
    return decimal;
}

std::int64_t with_places(Decimal decimal, std::size_t places) {
    for (; decimal.places < places; ++decimal.places) {
        decimal.digits *= 10;
    }
    return decimal.digits;
}

std::string decimal_text(std::int64_t digits, std::size_t places) {
    if (places == 0) {
        return std::to_string(digits);
    }
    std::string text = fmt::format("{:0{}}", std::abs(digits), places + 1);
    text.insert(text.size() - places, ".");
    return (digits < 0 ? "-" : "") + text;
}

std::vector<std::string> range_values(const std::string& spec, const std::string& where, Problems& problems) {
    std::vector<Decimal> parts;
    for (const std::string& part : split(spec, ':')) {
        const auto decimal = parse_decimal(part);
        if (!decimal) {
            problems.push_back(where + '"' + part + "\" is not a number; expected FIRST:LAST:STEP, e.g. 4:24:4");
            return {};
        }
        parts.push_back(*decimal);
    }
    if (parts.size() == 2) {
        parts.push_back({1, 0});
    }
    if (parts.size() != 3) {
        problems.push_back(where + "expected FIRST:LAST:STEP, e.g. 4:24:4");
        return {};
    }
    const std::size_t places = std::max({parts[0].places, parts[1].places, parts[2].places});
    if (places > 6) {
        problems.push_back(where + "expected at most six places behind the point");
        return {};
    }
    const std::int64_t first = with_places(parts[0], places);
    const std::int64_t last = with_places(parts[1], places);
    const std::int64_t step = with_places(parts[2], places);
    if (step == 0 || (last - first) / step < 0 || (last != first && (last > first) != (step > 0))) {
        problems.push_back(where + "the range never ends; expected a step that leads from the first to the last value");
        return {};
    }
    if (static_cast<std::uint64_t>((last - first) / step) >= kMaxPoints) {
        problems.push_back(where + fmt::format("has more than {} values", kMaxPoints));
        return {};
    }
    std::vector<std::string> values;
    for (std::int64_t value = first; step > 0 ? value <= last : value >= last; value += step) {
        values.push_back(decimal_text(value, places));
    }
    return values;
}

struct Axis {
    std::string key;
    std::vector<std::string> values;
};

Axis parse_axis(const std::string& argument, Problems& problems) {
    const std::string where = "--over " + argument + ": ";
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos) {
        problems.push_back(where + "expected KEY=SPEC, e.g. tt.rank=4:24:4 or engine.cols=8,12,16");
        return {};
    }
    Axis axis;
    axis.key = config::trimmed(argument.substr(0, equals));
    const std::string spec = config::trimmed(argument.substr(equals + 1));
    const Key* key = config::find_key(config::design_keys(), axis.key);
    if (key == nullptr) {
        problems.push_back(where + unknown_key_text(axis.key));
        return {};
    }
    const bool is_number = key->type == "whole number" || key->type == "number";
    const std::vector<std::string> texts = is_number && spec.find(':') != std::string::npos
                                               ? range_values(spec, where, problems)
                                               : split(spec, key->type == "list" ? ';' : ',');
    for (const std::string& text : texts) {
        const auto value = canonical(*key, text, where, problems);
        if (!value) {
            continue;
        }
        if (std::find(axis.values.begin(), axis.values.end(), *value) != axis.values.end()) {
            problems.push_back(where + *value + " is given twice");
        } else {
            axis.values.push_back(*value);
        }
    }
    return axis;
}

void refuse(Problems problems) {
    if (!problems.empty()) {
        throw ConfigError(std::move(problems));
    }
}

// One record of a CSV file.
struct Record {
    std::size_t line = 0;
    std::vector<std::string> fields;
};

class CsvReader {
public:
    CsvReader(const std::string& text, const std::string& path) : text_(text), path_(path) {}

    std::vector<Record> read() {
        std::vector<Record> records;
        while (next_ < text_.size()) {
            Record record = read_record();
            if (record.fields.size() > 1 || !record.fields.front().empty()) {  // no empty line
                records.push_back(std::move(record));
            }
        }
        return records;
    }

private:
    Record read_record() {
        Record record{line_, {}};
        for (;;) {
            record.fields.push_back(config::trimmed(read_field()));
            const bool more = next_ < text_.size() && text_[next_] == ',';
            if (next_ < text_.size()) {
                ++next_;  // comma or line end
            }
            if (!more) {
                ++line_;
                return record;
            }
        }
    }

    std::string read_field() {
        const std::size_t start = text_.find_first_not_of(" \t", next_);
        if (start != std::string::npos && text_[start] == '"') {
            next_ = start + 1;
            return read_quoted();
        }
        const std::size_t end = std::min(text_.find_first_of(",\n", next_), text_.size());
        const std::string field = text_.substr(next_, end - next_);
        next_ = end;
        return field;
    }

    std::string read_quoted() {
        const std::size_t opened_at = line_;
        std::string field;
        for (; next_ < text_.size(); ++next_) {
            const bool quote = text_[next_] == '"';
            if (quote && next_ + 1 < text_.size() && text_[next_ + 1] == '"') {
                ++next_;
            } else if (quote) {
                ++next_;
                const std::size_t end = std::min(text_.find_first_of(",\n", next_), text_.size());
                if (!config::trimmed(text_.substr(next_, end - next_)).empty()) {
                    throw ConfigError(
                        fmt::format("{}:{}: text behind a closing quote; expected a comma", path_, line_));
                }
                next_ = end;
                return field;
            }
            line_ += text_[next_] == '\n' ? 1 : 0;
            field += text_[next_];
        }
        throw ConfigError(fmt::format("{}:{}: a quote is not closed", path_, opened_at));
    }

    const std::string& text_;
    const std::string& path_;
    std::size_t next_ = 0;
    std::size_t line_ = 1;
};

std::vector<const Key*> header_keys(const Record& header, const std::string& path, Problems& problems) {
    std::vector<const Key*> keys;
    for (const std::string& name : header.fields) {
        const Key* key = config::find_key(config::design_keys(), name);
        if (key == nullptr) {
            problems.push_back(fmt::format("{}:{}: {}", path, header.line, unknown_key_text(name)));
        } else if (std::find(keys.begin(), keys.end(), key) != keys.end()) {
            problems.push_back(fmt::format("{}:{}: {} is given twice", path, header.line, name));
        }
        keys.push_back(key);
    }
    return keys;
}

}  // namespace

Overrides Points::assignments(std::size_t point) const {
    Overrides result;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        result.emplace_back(keys[i], values[point][i]);
    }
    return result;
}

std::vector<std::size_t> turns_of(const Points& points) {
    std::vector<std::size_t> columns;
    for (std::size_t column = 0; column < points.keys.size(); ++column) {
        for (const char* section : {"network.", "tt.", "ttm.", "engine.", "memory."}) {
            if (points.keys[column].rfind(section, 0) == 0) {
                columns.push_back(column);
            }
        }
    }
    std::map<std::vector<std::string>, std::size_t> firsts;
    std::vector<std::size_t> first_alike(points.size());  // by point
    std::vector<std::size_t> order(points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
        std::vector<std::string> values;
        for (const std::size_t column : columns) {
            values.push_back(points.values[i][column]);
        }
        first_alike[i] = firsts.emplace(std::move(values), i).first->second;
        order[i] = i;
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return first_alike[a] < first_alike[b]; });
    std::vector<std::size_t> turns(points.size());
    for (std::size_t turn = 0; turn < order.size(); ++turn) {
        turns[order[turn]] = turn;
    }
    return turns;
}

Points cross_product(const std::vector<std::string>& specs) {
    Problems problems;
    Points points;
    points.values.emplace_back();
    for (const std::string& spec : specs) {
        const Axis axis = parse_axis(spec, problems);
        if (!problems.empty()) {
            continue;  // only to find the other problems
        }
        if (std::find(points.keys.begin(), points.keys.end(), axis.key) != points.keys.end()) {
            problems.push_back("--over " + spec + ": " + axis.key + " is given twice");
            continue;
        }
        if (points.size() * axis.values.size() > kMaxPoints) {
            problems.push_back(fmt::format("--over {}: the sweep has more than {} points", spec, kMaxPoints));
            continue;
        }
        points.keys.push_back(axis.key);
        std::vector<std::vector<std::string>> product;
        product.reserve(points.size() * axis.values.size());
        for (const std::vector<std::string>& head : points.values) {
            for (const std::string& value : axis.values) {
                product.push_back(head);
                product.back().push_back(value);
            }
        }
        points.values = std::move(product);
    }
    refuse(std::move(problems));
    return points;
}

Points read_points(const std::string& csv_path) {
    const std::string text = config::read_text_file(csv_path);
    const std::vector<Record> records = CsvReader(text, csv_path).read();
    if (records.size() < 2) {
        throw ConfigError(csv_path + ": has no points; expected a line of key names, then one line per point");
    }
    if (records.size() - 1 > kMaxPoints) {
        throw ConfigError(fmt::format("{}: has more than {} points", csv_path, kMaxPoints));
    }
    Problems problems;
    const std::vector<const Key*> keys = header_keys(records.front(), csv_path, problems);
    refuse(problems);
    Points points;
    points.keys = records.front().fields;
    std::map<std::vector<std::string>, std::size_t> lines;
    std::map<std::pair<std::size_t, std::string>, std::string> known;  // column and text -> value
    for (std::size_t i = 1; i < records.size(); ++i) {
        const Record& record = records[i];
        if (record.fields.size() != keys.size()) {
            problems.push_back(fmt::format("{}:{}: has {} fields; expected {}, one per key", csv_path, record.line,
                                           record.fields.size(), keys.size()));
            continue;
        }
        std::vector<std::string> values;
        for (std::size_t column = 0; column < keys.size(); ++column) {
            const auto found = known.find({column, record.fields[column]});
            if (found != known.end()) {
                values.push_back(found->second);
                continue;
            }
            const std::string where =
                fmt::format("{}:{}: {}={}: ", csv_path, record.line, points.keys[column], record.fields[column]);
            const auto value = canonical(*keys[column], record.fields[column], where, problems);
            if (value) {
                known.emplace(std::pair{column, record.fields[column]}, *value);
                values.push_back(*value);
            }
        }
        const auto [first, is_new] = lines.emplace(values, record.line);
        if (values.size() == keys.size() && !is_new) {
            problems.push_back(
                fmt::format("{}:{}: is the same point as line {}", csv_path, record.line, first->second));
        }
        points.values.push_back(std::move(values));
    }
    refuse(std::move(problems));
    return points;
}

}  // namespace contraflow::sweep
