#include "sweep/numbers.h"

#include <algorithm>

#include "config/nearest.h"
#include "sweep/configuration.h"

namespace contraflow::sweep {

namespace {

using Json = nlohmann::ordered_json;

void collect(const Json& json, const std::string& name, Numbers& numbers) {
    if (json.is_object()) {
        for (const auto& [key, value] : json.items()) {
            collect(value, name.empty() ? key : name + "." + key, numbers);
        }
    } else if (json.is_array()) {
        for (std::size_t i = 0; i < json.size(); ++i) {
            collect(json[i], name + "[" + std::to_string(i) + "]", numbers);
        }
    } else if (json.is_number()) {
        numbers.emplace_back(name, json);
    }
}

// The element that a dotted name leads to; nullptr if there is none.
const Json* find(const Json& json, const std::string& name) {
    const Json* here = &json;
    for (std::size_t begin = 0; begin < name.size();) {
        std::size_t end = std::min(name.find_first_of(".[", begin), name.size());
        if (name[begin] == '[') {
            end = name.find(']', begin);
            const std::string index = end == std::string::npos ? "" : name.substr(begin + 1, end - begin - 1);
            const bool is_index = !index.empty() && index.size() < 10 &&
                                  std::all_of(index.begin(), index.end(), [](char c) { return c >= '0' && c <= '9'; });
            if (!is_index || !here->is_array() || std::stoul(index) >= here->size()) {
                return nullptr;
            }
            here = &(*here)[std::stoul(index)];
            ++end;
        } else {
            const auto found = here->find(name.substr(begin, end - begin));
            if (!here->is_object() || found == here->end()) {
                return nullptr;
            }
            here = &*found;
        }
        begin = end < name.size() && name[end] == '.' ? end + 1 : end;
    }
    return here;
}

std::string csv_field(const std::string& text) {
    if (text.find_first_of(",\"\n\r") == std::string::npos) {
        return text;
    }
    std::string quoted = "\"";
    for (const char c : text) {
        quoted += c == '"' ? "\"\"" : std::string(1, c);
    }
    return quoted + '"';
}

}  // namespace

Numbers numbers_of(const std::string& report) {
    Numbers numbers;
    if (!report.empty()) {
        collect(Json::parse(report), "", numbers);
    }
    return numbers;
}

nlohmann::json number_of(const Row& row, const std::string& name) {
    for (const std::string* text : {&row.report, &row.config}) {
        if (!text->empty()) {
            const Json json = Json::parse(*text);
            const Json* found = find(json, name);
            if (found != nullptr && found->is_number()) {
                return *found;
            }
        }
    }
    return nullptr;
}

std::vector<std::string> key_values(const Row& row, const std::vector<std::string>& keys) {
    std::vector<std::string> values(keys.size());
    for (const auto& [key, value] : assignments_of(row.keys)) {
        const auto column = std::find(keys.begin(), keys.end(), key) - keys.begin();
        values[static_cast<std::size_t>(column)] = value;
    }
    return values;
}

std::string unknown_number_text(const std::string& name, const std::vector<std::string>& names) {
    const std::string meant = config::nearest(name, names);
    return "no point has this number" + (meant.empty() ? "; `contraflow export --csv` lists them in its first line"
                                                       : "; did you mean " + meant + "?");
}

std::string csv_line(const std::vector<std::string>& fields) {
    std::string line;
    for (std::size_t i = 0; i < fields.size(); ++i) {
        line += (i == 0 ? "" : ",") + csv_field(fields[i]);
    }
    return line + '\n';
}

}  // namespace contraflow::sweep
