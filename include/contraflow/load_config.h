// From an INI file and the command line to a validated configuration.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "contraflow/config.h"
#include "contraflow/error.h"

namespace contraflow {

namespace config {
class ParsedFiles;
}

using Overrides = std::vector<std::pair<std::string, std::string>>;  // section.key, value

struct LoadedConfig {
    Config config;
    std::string file;                                  // as given
    Overrides overrides;                               // as given
    std::map<std::string, std::string> origins;        // key -> "design.ini:12: data.path: " or "--data.path=x: "
    std::shared_ptr<const config::ParsedFiles> files;  // the design and the files it names, as they were read

    // The beginning of a message about `key`, e.g. data.path when the folder does not open.
    [[nodiscard]] std::string prefix(const std::string& key) const;
};

// Reads `ini_path` ("": only defaults), then the overrides in order (section.key, value), which win over the file, then
// the device and memory files they name. A relative path in the file is looked up beside it, one of an override in
// the working directory; device and memory files then in the project's or the installed configs/, a data set in the
// working directory and the project. config.data.path may name a folder that does not exist.
// Throws ConfigError with one line per problem, all of them.
[[nodiscard]] LoadedConfig load_config(const std::string& ini_path, const Overrides& overrides = {});

// The same design with further overrides. A file that it was read from is not read again, whatever it says by now.
[[nodiscard]] LoadedConfig with_overrides(const LoadedConfig& design, const Overrides& further);

// Planning knows keys, but not where they were given: the same error with the lines that begin with a key of the design
// ("memory.tensors: ...") beginning with its file and line, or its option, as well.
[[nodiscard]] ConfigError located(const ConfigError& error, const LoadedConfig& design);

// A device file alone, e.g. "devices/u50.ini" or a path, without its DRAM. Throws ConfigError.
[[nodiscard]] DeviceConfig load_device(const std::string& file);

// A memory file alone, e.g. "memories/hbm2-u50.ini" or a path. Throws ConfigError.
[[nodiscard]] DramConfig load_memory(const std::string& file);

// "unknown key engine.row; did you mean engine.rows?"
[[nodiscard]] std::string unknown_key_text(const std::string& key);

}  // namespace contraflow
