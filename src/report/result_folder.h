// The folder a run writes its results to: complete, or not there.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace contraflow {

// Throws ConfigError unless a file can be written to (or replaced at) `path`. `option`: beginning of the message, e.g.
// "--save model.safetensors".
void check_writable_file(const std::filesystem::path& path, const std::string& option);

// Throws std::runtime_error if the file cannot be written.
void write_file(const std::filesystem::path& path, const std::string& content);

class ResultFolder {
public:
    // Throws ConfigError if files cannot be written there, or if it holds a result already and `force` is false.
    // Leaves nothing behind.
    ResultFolder(std::filesystem::path path, bool force);

    // Writes the files (name -> content) to a temporary folder and moves them into place when all are complete; the
    // folder is made if it does not exist. Throws std::runtime_error if that fails, and then removes what it wrote.
    void write(const std::map<std::string, std::string>& files) const;

private:
    std::filesystem::path path_;
};

}  // namespace contraflow
