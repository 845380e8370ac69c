#include "sweep/configuration.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "config/effective.h"
#include "config/key_table.h"

namespace contraflow::sweep {

namespace {

std::string text_of(const nlohmann::json& value) {
    if (value.is_boolean()) {
        return value.get<bool>() ? "on" : "off";
    }
    if (value.is_array()) {
        std::string text;
        for (const nlohmann::json& entry : value) {
            text += (text.empty() ? "" : ",") + entry.dump();
        }
        return text;
    }
    return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string values_of(const config::KeyTable& table, const Config& config) {
    nlohmann::json json = nlohmann::json::object();
    for (const config::Key& key : table) {
        json[key.full_name()] = key.json(config);
    }
    return json.dump();
}

}  // namespace

std::string keys_json(const Overrides& assignments) {
    nlohmann::json json = nlohmann::json::object();
    Config scratch;
    for (const auto& [name, value] : assignments) {
        const config::Key* key = config::find_key(config::design_keys(), name);
        key->set(scratch, value);
        json[name] = key->json(scratch);
    }
    return json.dump();
}

Overrides assignments_of(const std::string& keys_json) {
    Overrides assignments;
    const nlohmann::json json = nlohmann::json::parse(keys_json);
    for (const auto& [name, value] : json.items()) {
        assignments.emplace_back(name, text_of(value));
    }
    return assignments;
}

std::string configuration_text(const Config& config) {
    return config_json(config).dump();
}

std::string text_hash(const std::string& text) {
    std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a, 64 bit
    for (const char c : text) {
        hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3U;
    }
    return fmt::format("{:016x}", hash);
}

std::string configuration_hash(const std::string& text, const Config& config) {
    return text_hash(text + values_of(config::device_keys(), config) + values_of(config::memory_keys(), config));
}

}  // namespace contraflow::sweep
