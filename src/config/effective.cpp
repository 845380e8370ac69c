#include "config/effective.h"

#include <fmt/format.h>

#include "config/key_table.h"
#include "config/project_files.h"

namespace contraflow {

namespace {

// Files and folders named so that they are found from any place: relative to the project where they are part of it.
Config with_portable_paths(Config config) {
    config.device.file = config::portable_path(config.device.file, config::config_folders());
    if (!config.dram.file.empty()) {
        config.dram.file = config::portable_path(config.dram.file, config::config_folders());
    }
    config.data.path = config::portable_path(config.data.path, config::project_roots());
    return config;
}

}  // namespace

std::string effective_ini(const Config& original) {
    const Config config = with_portable_paths(original);
    std::string text = "# Effective configuration: every key with the value the run used.\n";
    std::string section;
    for (const config::Key& key : config::design_keys()) {
        if (key.section != section) {
            section = key.section;
            text += "\n[" + section + "]\n";
        }
        const std::string value = key.text(config);
        text += key.name + (value.empty() ? " =" : " = " + value) + "\n";
    }
    return text;
}

nlohmann::json config_json(const Config& original) {
    const Config config = with_portable_paths(original);
    nlohmann::json json = nlohmann::json::object();
    for (const config::Key& key : config::design_keys()) {
        json[key.section][key.name] = key.json(config);
    }
    return json;
}

}  // namespace contraflow
