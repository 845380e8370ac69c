#include "config/project_files.h"

#include <algorithm>
#include <system_error>

namespace contraflow::config {

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> find_project_roots() {
    std::vector<fs::path> roots;
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    if (!error) {
        roots.push_back(program.parent_path().parent_path() / "share" / "contraflow");
    }
    roots.emplace_back(CONTRAFLOW_PROJECT_DIR);
    roots.emplace_back(CONTRAFLOW_INSTALL_DATA_DIR);  // for a program elsewhere that embeds the library

    std::vector<fs::path> existing;
    for (const fs::path& root : roots) {
        if (fs::is_directory(root / "configs", error) &&
            std::find(existing.begin(), existing.end(), root) == existing.end()) {
            existing.push_back(root);
        }
    }
    return existing;
}

}  // namespace

const std::vector<fs::path>& project_roots() {
    static const std::vector<fs::path> roots = find_project_roots();
    return roots;
}

std::vector<fs::path> config_folders() {
    std::vector<fs::path> folders = project_roots();
    for (fs::path& folder : folders) {
        folder /= "configs";
    }
    return folders;
}

std::optional<std::string> find_file(const std::string& name, const std::vector<fs::path>& bases) {
    for (const fs::path& base : bases) {
        const fs::path candidate = base / name;  // an absolute name replaces the base
        std::error_code error;
        if (fs::exists(candidate, error)) {
            return candidate.lexically_normal().string();
        }
    }
    return std::nullopt;
}

std::vector<std::string> list_config_files(const std::string& folder) {
    std::vector<std::string> names;
    for (const fs::path& configs : config_folders()) {
        std::error_code error;
        for (const fs::directory_entry& entry : fs::directory_iterator(configs / folder, error)) {
            if (entry.path().extension() == ".ini") {
                names.push_back(folder + "/" + entry.path().filename().string());
            }
        }
        if (!names.empty()) {
            break;
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::string portable_path(const std::string& path, const std::vector<fs::path>& bases) {
    std::error_code error;
    const fs::path absolute = fs::weakly_canonical(fs::absolute(path, error), error);
    for (const fs::path& base : bases) {
        const fs::path relative = absolute.lexically_relative(fs::weakly_canonical(base, error));
        if (!relative.empty() && *relative.begin() != "..") {
            return relative.string();
        }
    }
    return absolute.string();
}

}  // namespace contraflow::config
