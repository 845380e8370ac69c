#include "report/result_folder.h"

#include <stdlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "contraflow/error.h"

namespace contraflow {

namespace fs = std::filesystem;

namespace {

// The file that makes a folder a result: moved into place last, taken away first.
constexpr const char* kReport = "report.json";
constexpr std::array kResultFiles{kReport, "kernels.csv", "memory.csv", "memory_timeline.csv", "effective.ini"};

// A folder that is removed with all that is in it.
class TemporaryFolder {
public:
    // Throws std::system_error if `parent` does not take it.
    explicit TemporaryFolder(const fs::path& parent) {
        std::string pattern = (parent / ".contraflow.XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) {
            throw std::system_error(errno, std::generic_category());
        }
        path_ = pattern;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    [[nodiscard]] const fs::path& path() const { return path_; }

private:
    fs::path path_;
};

fs::path parent_of(const fs::path& path) {
    const fs::path parent = path.parent_path();
    return parent.empty() ? fs::path(".") : parent;
}

// The nearest folder above that exists: the one that must take a new entry.
fs::path existing_parent(const fs::path& path) {
    std::error_code error;
    fs::path parent = parent_of(path);
    while (!fs::exists(parent, error) && parent != parent_of(parent)) {
        parent = parent_of(parent);
    }
    return parent;
}

void check_takes_entries(const fs::path& folder, const std::string& option) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
        throw ConfigError(option + ": " + folder.string() + " is not a folder");
    }
    try {
        const TemporaryFolder probe(folder);
    } catch (const std::system_error& reason) {
        throw ConfigError(option + ": " + folder.string() + " cannot be written to: " + reason.code().message());
    }
}

}  // namespace

void write_file(const fs::path& path, const std::string& content) {
    errno = 0;
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << content;
    out.close();
    if (!out) {
        throw std::runtime_error(path.filename().string() + " cannot be written: " + std::strerror(errno));
    }
}

void check_writable_file(const fs::path& path, const std::string& option) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (fs::is_directory(status)) {
        throw ConfigError(option + ": is a folder, expected the name of a file");
    }
    if (fs::exists(status) && !fs::is_regular_file(status)) {
        throw ConfigError(option + ": is not a regular file");
    }
    if (path.filename().empty()) {
        throw ConfigError(option + ": expected the name of a file");
    }
    const fs::path target = fs::is_symlink(path, error) ? fs::canonical(path, error) : path;
    if (!fs::exists(parent_of(target), error)) {
        throw ConfigError(option + ": there is no folder " + parent_of(target).string());
    }
    check_takes_entries(parent_of(target), option);
}

ResultFolder::ResultFolder(fs::path path, bool force) : path_(std::move(path)) {
    const std::string option = "--out " + path_.string();
    if (path_.empty()) {
        throw ConfigError("--out: expected the name of a folder");
    }
    if (path_.filename().empty()) {
        path_ = path_.parent_path();  // results/ is results
    }
    std::error_code error;
    if (!fs::exists(path_, error)) {
        check_takes_entries(existing_parent(path_), option);
        return;
    }
    if (!fs::is_directory(path_, error)) {
        throw ConfigError(option + ": is a file, expected a folder");
    }
    for (const char* name : kResultFiles) {
        if (!force && fs::exists(path_ / name, error)) {
            throw ConfigError(option + ": holds a result already (" + name + "); --force replaces it");
        }
    }
    check_takes_entries(path_, option);
}

void ResultFolder::write(const std::map<std::string, std::string>& files) const {
    try {
        if (!fs::exists(path_)) {
            fs::create_directories(parent_of(path_));
            const TemporaryFolder temporary(parent_of(path_));
            const fs::path folder = temporary.path() / "result";
            fs::create_directory(folder);
            for (const auto& [name, content] : files) {
                write_file(folder / name, content);
            }
            fs::rename(folder, path_);
            return;
        }
        const TemporaryFolder temporary(path_);
        for (const auto& [name, content] : files) {
            write_file(temporary.path() / name, content);
        }
        fs::remove(path_ / kReport);
        for (const auto& file : files) {
            if (file.first != kReport) {
                fs::rename(temporary.path() / file.first, path_ / file.first);
            }
        }
        if (files.count(kReport) > 0) {
            fs::rename(temporary.path() / kReport, path_ / kReport);
        }
    } catch (const std::exception& reason) {
        throw std::runtime_error("--out " + path_.string() + ": " + reason.what());
    }
}

}  // namespace contraflow
