#include "config/tensor_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "config/values.h"

namespace contraflow {

std::string to_string(const Partition& partition) {
    return fmt::format("{}.{}={}", partition.kind == Partition::Kind::Block ? "block" : "cyclic", partition.dimension,
                       partition.banks);
}

namespace config {

const Words<RamPlace> kPlaces{{"auto", RamPlace::Auto},
                              {"bram", RamPlace::Bram},
                              {"uram", RamPlace::Uram},
                              {"lutram", RamPlace::Lutram},
                              {"dram", RamPlace::Dram}};

namespace {

constexpr int kMaxDimension = 15;
constexpr int kMaxBanks = 4096;
constexpr int kMaxReshape = 64;

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) {
        parts.push_back(trimmed(part));
    }
    return parts;
}

int number_after(const std::string& part, std::size_t position, int max) {
    return static_cast<int>(parse_whole(part.substr(position), 1, max));
}

// "cyclic.0=12"; false if the part is none.
bool parse_partition(const std::string& part, TensorRule& rule) {
    const std::size_t dot = part.find('.');
    const std::size_t equals = part.find('=');
    if (dot == std::string::npos || equals == std::string::npos || equals < dot) {
        return false;
    }
    const std::string kind = part.substr(0, dot);
    if (kind != "cyclic" && kind != "block") {
        return false;
    }
    Partition partition;
    partition.kind = kind == "block" ? Partition::Kind::Block : Partition::Kind::Cyclic;
    partition.dimension = static_cast<int>(parse_whole(part.substr(dot + 1, equals - dot - 1), 0, kMaxDimension));
    partition.banks = number_after(part, equals + 1, kMaxBanks);
    for (const Partition& other : rule.partitions) {
        if (other.dimension == partition.dimension) {
            throw BadValue(fmt::format("partitions dimension {} twice in \"{}\"", partition.dimension, rule.pattern));
        }
    }
    rule.partitions.push_back(partition);
    return true;
}

void parse_part(const std::string& part, TensorRule& rule) {
    const auto place =
        std::find_if(kPlaces.begin(), kPlaces.end(), [&](const auto& entry) { return entry.first == part; });
    if (place != kPlaces.end()) {
        rule.place = place->second;
    } else if (part.rfind("reshape=", 0) == 0) {
        rule.reshape = number_after(part, 8, kMaxReshape);
    } else if (part.rfind("group=", 0) == 0 && part.size() > 6) {
        rule.group = part.substr(6);
    } else if (!parse_partition(part, rule)) {
        throw BadValue(fmt::format("\"{}\" is no part of a rule", part));
    }
}

}  // namespace

std::vector<TensorRule> parse_tensor_rules(const std::string& text) {
    std::vector<TensorRule> rules;
    for (const std::string& rule_text : split(text, ',')) {
        const std::vector<std::string> parts = split(rule_text, ':');
        if (parts.size() < 2 || parts.front().empty()) {
            throw BadValue(fmt::format("\"{}\" is no rule", rule_text));
        }
        TensorRule rule;
        rule.pattern = parts.front();
        for (std::size_t i = 1; i < parts.size(); ++i) {
            parse_part(parts[i], rule);
        }
        rules.push_back(std::move(rule));
    }
    return rules;
}

std::string tensor_rules_text(const std::vector<TensorRule>& rules) {
    std::string text;
    for (const TensorRule& rule : rules) {
        text += (text.empty() ? "" : ",") + rule.pattern;
        for (const auto& [word, place] : kPlaces) {
            if (rule.place == place) {
                text += ":" + word;
            }
        }
        for (const Partition& partition : rule.partitions) {
            text += ":" + to_string(partition);
        }
        if (rule.reshape != 0) {
            text += fmt::format(":reshape={}", rule.reshape);
        }
        if (!rule.group.empty()) {
            text += ":group=" + rule.group;
        }
    }
    return text;
}

}  // namespace config
}  // namespace contraflow
