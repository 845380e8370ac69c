// Every configuration key is one row of one table. The INI parser, the command line, `contraflow keys`, docs/keys.md,
// the effective configuration and the error texts all read that row, so they cannot disagree.
#pragma once

#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <vector>

#include "contraflow/config.h"

namespace contraflow::config {

struct Key {
    std::string section;
    std::string name;
    std::string type;  // whole number, number, switch, word, list, text, file, folder
    std::string unit;  // empty: none
    std::string default_text;
    std::string range;  // "1 to 4096", "on or off", "btt, tt or mm"
    std::string meaning;
    bool required = false;  // has no default (device and memory files)

    std::function<void(Config&, const std::string&)> set;  // throws BadValue
    std::function<std::string(const Config&)> text;        // reads back as the same value
    std::function<nlohmann::json(const Config&)> json;

    [[nodiscard]] std::string full_name() const { return section + "." + name; }
    [[nodiscard]] std::string expected() const;  // "expected 1 to 4096 (PEs)"
};

using KeyTable = std::vector<Key>;

[[nodiscard]] const KeyTable& design_keys();  // a design's INI file and the command line
[[nodiscard]] const KeyTable& device_keys();  // [device] of configs/devices/*.ini
[[nodiscard]] const KeyTable& memory_keys();  // [dram] of configs/memories/*.ini

[[nodiscard]] const Key* find_key(const KeyTable& table, const std::string& full_name);  // nullptr if there is none

// "unknown key engine.row; did you mean engine.rows?"; a name without section, or right but in the wrong section, is
// found in the others.
[[nodiscard]] std::string unknown_key_text(const KeyTable& table, const std::string& full_name);

}  // namespace contraflow::config
