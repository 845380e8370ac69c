#include "cli/option_values.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "contraflow/error.h"

namespace contraflow::cli {

namespace {

constexpr std::int64_t kMaxSteps = 1'000'000;  // their samples and kernel records are kept until the end

}  // namespace

std::optional<std::int64_t> parse_count(const std::string& text) {
    std::int64_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    const bool whole = error == std::errc{} && end == text.data() + text.size() && count >= 0;
    return whole ? std::optional(count) : std::nullopt;
}

std::size_t parse_count_option(const std::string& option, const std::string& text, std::int64_t min, std::int64_t max) {
    const auto count = parse_count(text);
    if (!count || *count < min || *count > max) {
        throw ConfigError(fmt::format("--{} {}: expected a whole number from {} to {}", option, text, min, max));
    }
    return static_cast<std::size_t>(*count);
}

std::size_t parse_steps(const std::string& text) {
    return parse_count_option("steps", text, 1, kMaxSteps);
}

bool parse_either(const std::string& option, const std::string& text, const char* first, const char* second) {
    if (text != first && text != second) {
        throw ConfigError(fmt::format("--{} {}: expected {} or {}", option, text, first, second));
    }
    return text == first;
}

void refuse_other_file(const std::string& option, const std::string& path, const std::string& what,
                       std::size_t start_bytes, const std::function<bool(const std::string&)>& starts_as_such) {
    std::ifstream file(path, std::ios::binary);
    if (!file || !std::filesystem::is_regular_file(path) || std::filesystem::file_size(path) == 0) {
        return;
    }
    std::string start(start_bytes, '\0');
    file.read(start.data(), static_cast<std::streamsize>(start_bytes));
    if (!starts_as_such(start)) {
        throw ConfigError(
            fmt::format("--{} {}: exists and is no {}; expected a new name or a {}", option, path, what, what));
    }
}

Dataset load_data(const LoadedConfig& design) {
    const DataConfig& data = design.config.data;
    try {
        return Dataset::load(design.config);
    } catch (const ConfigError& error) {
        const auto is_folder = [](const std::filesystem::path& path) {
            std::error_code ignored;
            return std::filesystem::is_directory(path, ignored);
        };
        const std::filesystem::path base = data.path;
        const std::string first_value = fmt::format("data.first = {} ", data.first);
        std::vector<std::string> lines;
        for (const std::string& line : error.lines()) {
            if (line.compare(0, first_value.size(), first_value) == 0) {
                lines.push_back(design.prefix("data.first") +
                                line.substr(first_value.size() - 1 - fmt::formatted_size("{}", data.first)));
            } else if (data.path.empty() || !is_folder(base / "train")) {
                lines.push_back(design.prefix("data.path") + line);
            } else if (!is_folder(base / data.split)) {
                lines.push_back(design.prefix("data.split") + line);
            } else {
                lines.push_back(line);
            }
        }
        throw ConfigError(lines);
    }
}

}  // namespace contraflow::cli
