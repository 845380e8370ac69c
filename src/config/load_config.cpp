#include "contraflow/load_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "config/ini_file.h"
#include "config/key_table.h"
#include "config/project_files.h"
#include "config/validate.h"
#include "config/values.h"
#include "contraflow/error.h"

namespace contraflow {

namespace fs = std::filesystem;

using config::Assignment;
using config::Conflict;
using config::Key;
using config::KeyTable;

using Problems = std::vector<std::string>;

// What INI files say, by the table of keys they were read with and by path.
class config::ParsedFiles {
public:
    // Reads a file that is not known yet. Throws ConfigError if it is no text; what is wrong in it goes to `problems`.
    [[nodiscard]] const std::vector<Assignment>& get(const std::string& path, const KeyTable& table,
                                                     Problems& problems) {
        auto file = files_.find({&table, path});
        if (file == files_.end()) {
            auto read =
                std::make_shared<std::vector<Assignment>>(parse_ini(read_text_file(path), path, table, problems));
            file = files_.emplace(std::pair{&table, path}, std::move(read)).first;
        }
        return *file->second;
    }

private:
    std::map<std::pair<const KeyTable*, std::string>, std::shared_ptr<const std::vector<Assignment>>> files_;
};

namespace {

// What one source of assignments did to a configuration.
struct Applied {
    std::map<std::string, Assignment> last;  // per key
    std::set<std::string> bad;               // keys whose value was refused
};

void apply(const std::vector<Assignment>& assignments, const KeyTable& table, Config& config, Applied& applied,
           Problems& problems) {
    for (const Assignment& assignment : assignments) {
        const Key* key = config::find_key(table, assignment.key);
        applied.last[assignment.key] = assignment;
        try {
            key->set(config, assignment.value);
        } catch (const config::BadValue& bad) {
            problems.push_back(assignment.prefix() + bad.what() + "; " + key->expected());
            applied.bad.insert(assignment.key);
        }
    }
}

// A conflict is told at the first of its keys that was given; the others may be defaults. Silent when one of its keys
// had a bad value, which is the cause and has been told.
void tell(const std::vector<Conflict>& conflicts, const Applied& applied, const std::string& file, Problems& problems) {
    for (const Conflict& conflict : conflicts) {
        const auto given = [&](const std::string& key) { return applied.last.count(key) != 0; };
        if (std::any_of(conflict.keys.begin(), conflict.keys.end(),
                        [&](const std::string& key) { return applied.bad.count(key) != 0; })) {
            continue;
        }
        const std::string& subject = conflict.keys.front();
        const auto culprit = std::find_if(conflict.keys.begin(), conflict.keys.end(), given);
        if (culprit == conflict.keys.end()) {
            problems.push_back((file.empty() ? std::string() : file + ": ") + subject + ": " + conflict.text);
        } else if (*culprit == subject) {
            problems.push_back(applied.last.at(subject).prefix() + conflict.text);
        } else {
            problems.push_back(applied.last.at(*culprit).where + ": " + subject + ": " + conflict.text);
        }
    }
}

void require(const KeyTable& table, const Applied& applied, const std::string& file, Problems& problems) {
    for (const Key& key : table) {
        if (key.required && applied.last.count(key.full_name()) == 0) {
            problems.push_back(file + ": " + key.full_name() + ": is missing; " + key.expected());
        }
    }
}

// Reads a device or memory file into `config`.
void read_part(const std::string& path, const KeyTable& table, config::ParsedFiles& files, Config& config,
               Applied& applied, Problems& problems) {
    try {
        const std::size_t before = problems.size();
        apply(files.get(path, table, problems), table, config, applied, problems);
        if (problems.size() == before) {
            require(table, applied, path, problems);
        }
    } catch (const ConfigError& error) {
        problems.insert(problems.end(), error.lines().begin(), error.lines().end());
    }
}

// Folder of the file an assignment stands in; "" (the working directory) for the command line and for no assignment.
fs::path folder_of(const Applied& applied, const std::string& key, const std::string& file) {
    const auto found = applied.last.find(key);
    const bool in_file = found != applied.last.end() && found->second.line != 0;
    return in_file ? fs::path(file).parent_path() : fs::path();
}

std::vector<fs::path> with_config_folders(const fs::path& first) {
    std::vector<fs::path> bases = config::config_folders();
    bases.insert(bases.begin(), first);
    return bases;
}

std::string not_found_text(const std::string& name, const std::string& beside, const std::string& folder) {
    return fmt::format("no file \"{}\" {} or in the project's configs; expected a path or one of {}", name, beside,
                       fmt::join(config::list_config_files(folder), ", "));
}

// Reads the device and, unless dram.file names another, the memory it carries.
class Parts {
public:
    Parts(const std::string& file, config::ParsedFiles& files, Config& config, const Applied& applied,
          Problems& problems)
        : file_(file), files_(files), config_(config), applied_(applied), problems_(problems) {}

    void read() {
        const auto device = locate("device.file", config_.device.file, "devices");
        if (device) {
            read_device(*device);
        }
        if (!config_.dram.file.empty()) {
            const auto memory = locate("dram.file", config_.dram.file, "memories");
            if (memory) {
                read_memory(*memory);
            }
        } else if (device && !config_.device.memory_file.empty()) {
            const auto memory =
                config::find_file(config_.device.memory_file, with_config_folders(fs::path(*device).parent_path()));
            if (memory) {
                read_memory(*memory);
            } else {
                problems_.push_back(*device + ": device.memory: " +
                                    not_found_text(config_.device.memory_file, "beside the device", "memories"));
            }
        }
    }

    void read_device(const std::string& path) {
        Applied applied;
        const std::size_t before = problems_.size();
        read_part(path, config::device_keys(), files_, config_, applied, problems_);
        if (problems_.size() == before) {
            tell(config::find_device_conflicts(config_.device), applied, path, problems_);
        }
        config_.device.file = path;
    }

    void read_memory(const std::string& path) {
        Applied applied;
        const std::size_t before = problems_.size();
        read_part(path, config::memory_keys(), files_, config_, applied, problems_);
        if (problems_.size() == before) {
            tell(config::find_memory_conflicts(config_.dram), applied, path, problems_);
        }
        config_.dram.file = path;
    }

private:
    std::optional<std::string> locate(const std::string& key, const std::string& name, const std::string& folder) {
        auto path = config::find_file(name, with_config_folders(folder_of(applied_, key, file_)));
        if (!path) {
            const auto given = applied_.last.find(key);
            const bool in_file = given != applied_.last.end() && given->second.line != 0;
            problems_.push_back(
                (given == applied_.last.end() ? key + ": " : given->second.prefix()) +
                not_found_text(name, in_file ? "beside the design" : "in the working directory", folder));
        }
        return path;
    }

    const std::string& file_;
    config::ParsedFiles& files_;
    Config& config_;
    const Applied& applied_;
    Problems& problems_;
};

// A data set that exists nowhere keeps its first candidate, which the reader's message then names.
std::string locate_data(const std::string& name, const Applied& applied, const std::string& file) {
    std::vector<fs::path> bases{folder_of(applied, "data.path", file), fs::path()};
    const std::vector<fs::path>& roots = config::project_roots();
    bases.insert(bases.end(), roots.begin(), roots.end());
    const auto found = config::find_file(name, bases);
    return found ? *found : (bases.front() / name).lexically_normal().string();
}

std::vector<Assignment> read_overrides(const Overrides& overrides, Problems& problems) {
    std::vector<Assignment> assignments;
    for (const auto& [key, value] : overrides) {
        const std::string where = "--" + key + "=" + value;
        if (config::find_key(config::design_keys(), key) == nullptr) {
            problems.push_back(where + ": " + unknown_key_text(key));
        } else {
            assignments.push_back({key, config::trimmed(value), where, 0});
        }
    }
    return assignments;
}

void throw_if_any(Problems problems) {
    if (!problems.empty()) {
        throw ConfigError(std::move(problems));
    }
}

LoadedConfig load(const std::string& ini_path, const Overrides& overrides,
                  const std::shared_ptr<config::ParsedFiles>& files) {
    LoadedConfig loaded;
    loaded.file = ini_path;
    loaded.overrides = overrides;
    loaded.files = files;
    Config& config = loaded.config;
    Problems problems;
    Applied applied;
    const KeyTable& table = config::design_keys();
    if (!ini_path.empty()) {
        apply(files->get(ini_path, table, problems), table, config, applied, problems);
    }
    // A good override cures a bad value in the file only in effect: the file's problem is told all the same.
    apply(read_overrides(overrides, problems), table, config, applied, problems);

    Parts(ini_path, *files, config, applied, problems).read();
    config.data.path = locate_data(config.data.path, applied, ini_path);
    tell(config::find_conflicts(config), applied, ini_path, problems);
    throw_if_any(std::move(problems));
    for (const auto& [key, assignment] : applied.last) {
        loaded.origins[key] = assignment.prefix();
    }
    return loaded;
}

}  // namespace

std::string LoadedConfig::prefix(const std::string& key) const {
    const auto origin = origins.find(key);
    return origin != origins.end() ? origin->second : (file.empty() ? "" : file + ": ") + key + ": ";
}

LoadedConfig load_config(const std::string& ini_path, const Overrides& overrides) {
    return load(ini_path, overrides, std::make_shared<config::ParsedFiles>());
}

LoadedConfig with_overrides(const LoadedConfig& design, const Overrides& further) {
    Overrides overrides = design.overrides;
    overrides.insert(overrides.end(), further.begin(), further.end());
    return load(design.file, overrides,
                design.files == nullptr ? std::make_shared<config::ParsedFiles>()
                                        : std::make_shared<config::ParsedFiles>(*design.files));
}

ConfigError located(const ConfigError& error, const LoadedConfig& design) {
    std::vector<std::string> lines;
    for (const std::string& line : error.lines()) {
        const std::size_t colon = line.find(": ");
        const std::string key = line.substr(0, colon);
        const bool names_key = colon != std::string::npos && config::find_key(config::design_keys(), key) != nullptr;
        lines.push_back(names_key ? design.prefix(key) + line.substr(colon + 2) : line);
    }
    return ConfigError(lines);
}

DeviceConfig load_device(const std::string& file) {
    const auto path = config::find_file(file, with_config_folders({}));
    if (!path) {
        throw ConfigError(not_found_text(file, "in the working directory", "devices"));
    }
    Config config;
    Problems problems;
    const Applied none;
    config::ParsedFiles files;
    Parts("", files, config, none, problems).read_device(*path);
    throw_if_any(std::move(problems));
    return config.device;
}

DramConfig load_memory(const std::string& file) {
    const auto path = config::find_file(file, with_config_folders({}));
    if (!path) {
        throw ConfigError(not_found_text(file, "in the working directory", "memories"));
    }
    Config config;
    Problems problems;
    const Applied none;
    config::ParsedFiles files;
    Parts("", files, config, none, problems).read_memory(*path);
    throw_if_any(std::move(problems));
    return config.dram;
}

std::string unknown_key_text(const std::string& key) {
    return config::unknown_key_text(config::design_keys(), key);
}

}  // namespace contraflow
