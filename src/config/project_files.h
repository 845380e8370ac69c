// Where the files named in a configuration are found: devices, memories and data sets of the project or its
// installation.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace contraflow::config {

// Folders that hold configs/ and traces/: the source tree and the installation, as far as they exist.
[[nodiscard]] const std::vector<std::filesystem::path>& project_roots();

// The first of bases[i] / name that exists; an absolute name stands for itself.
[[nodiscard]] std::optional<std::string> find_file(const std::string& name,
                                                   const std::vector<std::filesystem::path>& bases);

// project_roots()[i] / "configs".
[[nodiscard]] std::vector<std::filesystem::path> config_folders();

// The .ini files in `folder` ("devices", "memories") of the first root that has it, sorted, as "devices/u50.ini".
[[nodiscard]] std::vector<std::string> list_config_files(const std::string& folder);

// `path` as another machine or folder can use it: relative to the base beneath which it lies, else absolute.
[[nodiscard]] std::string portable_path(const std::string& path, const std::vector<std::filesystem::path>& bases);

}  // namespace contraflow::config
