#include "config/ini_file.h"

#include <fmt/format.h>
#include <array>

#include <boost/program_options.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "config/nearest.h"
#include "config/values.h"
#include "contraflow/error.h"

namespace contraflow::config {

namespace po = boost::program_options;

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;
constexpr const char* kByteOrderMark = "\xEF\xBB\xBF";

int line_of(const std::string& text, std::size_t position) {
    return 1 + static_cast<int>(
                   std::count(text.begin(), text.begin() + static_cast<std::string::difference_type>(position), '\n'));
}

// Bytes of the UTF-8 character that begins at `position`, 0 if none does.
std::size_t utf8_length(const std::string& text, std::size_t position) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(position);
    std::size_t length = 0;
    unsigned code = 0;
    if (first < 0x80) {
        return 1;
    }
    if (first >= 0xC2 && first < 0xE0) {
        length = 2;
        code = first & 0x1FU;
    } else if (first >= 0xE0 && first < 0xF0) {
        length = 3;
        code = first & 0x0FU;
    } else if (first >= 0xF0 && first < 0xF5) {
        length = 4;
        code = first & 0x07U;
    } else {
        return 0;
    }
    if (position + length > text.size()) {
        return 0;
    }
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(position + i) & 0xC0U) != 0x80U) {
            return 0;
        }
        code = code << 6U | (byte(position + i) & 0x3FU);
    }
    const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    return overlong || surrogate || code > 0x10FFFF ? 0 : length;
}

void check_characters(const std::string& text, const std::string& path) {
    for (std::size_t i = 0; i < text.size();) {
        if (text[i] == '\0') {
            throw ConfigError(fmt::format("{}:{}: holds a NUL byte; expected a text file", path, line_of(text, i)));
        }
        const std::size_t length = utf8_length(text, i);
        if (length == 0) {
            throw ConfigError(fmt::format("{}:{}: is not UTF-8; expected a text file", path, line_of(text, i)));
        }
        i += length;
    }
}

// Without comment and white space at the ends. `;` begins a comment only after white space, `#` anywhere.
std::string without_comment(const std::string& line) {
    std::size_t end = std::min(line.find('#'), line.size());
    for (std::size_t i = 0; i < end; ++i) {
        if (line[i] == ';' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) {
            end = i;
        }
    }
    return trimmed(line.substr(0, end));
}

std::vector<std::string> sections_of(const KeyTable& table) {
    std::vector<std::string> sections;
    for (const Key& key : table) {
        if (sections.empty() || sections.back() != key.section) {
            sections.push_back(key.section);
        }
    }
    return sections;
}

std::string unknown_section_text(const std::vector<std::string>& sections, const std::string& section) {
    const std::string meant = nearest(section, sections);
    return "unknown section [" + section + "]; " +
           (meant.empty() ? "expected one of " + fmt::format("[{}]", fmt::join(sections, "], ["))
                          : "did you mean [" + meant + "]?");
}

}  // namespace

std::string Assignment::prefix() const {
    return line == 0 ? where + ": " : where + ": " + key + ": ";
}

std::string read_text_file(const std::string& path) {
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(path, error);
    if (!std::filesystem::exists(status)) {
        throw ConfigError(path + ": no such file");
    }
    if (std::filesystem::is_directory(status)) {
        throw ConfigError(path + ": is a directory; expected an INI file");
    }
    std::ifstream stream(path, std::ios::binary);
    if (!stream) {
        throw ConfigError(path + ": cannot be read: " + std::strerror(errno));
    }
    std::string text;
    std::array<char, 4096> block{};
    do {
        stream.read(block.data(), block.size());
        text.append(block.data(), static_cast<std::size_t>(stream.gcount()));
    } while (stream && text.size() <= kMaxFileBytes);
    if (text.size() > kMaxFileBytes) {
        throw ConfigError(fmt::format("{}: is larger than {} bytes; expected an INI file", path, kMaxFileBytes));
    }
    if (text.compare(0, std::strlen(kByteOrderMark), kByteOrderMark) == 0) {
        text.erase(0, std::strlen(kByteOrderMark));
    }
    if (text.empty()) {
        throw ConfigError(path + ": is empty; expected an INI file");
    }
    check_characters(text, path);
    return text;
}

std::vector<Assignment> parse_ini(const std::string& text, const std::string& path, const KeyTable& table,
                                  std::vector<std::string>& problems) {
    const std::vector<std::string> sections = sections_of(table);

    std::vector<Assignment> assignments;
    std::map<std::string, int> first_lines;
    std::string section;
    bool section_known = true;
    std::istringstream lines(text);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
        const std::string where = fmt::format("{}:{}", path, number);
        const std::string content = without_comment(line);
        if (content.empty()) {
            continue;
        }
        if (content.front() == '[') {
            if (content.back() != ']') {
                problems.push_back(where + ": " + content + " has no closing bracket; expected [section]");
                section_known = false;
                continue;
            }
            section = trimmed(content.substr(1, content.size() - 2));
            section_known = std::find(sections.begin(), sections.end(), section) != sections.end();
            if (!section_known) {
                problems.push_back(where + ": " + unknown_section_text(sections, section));
            }
            continue;
        }
        if (!section_known) {
            continue;  // the section's problem has been told; its keys would only repeat it
        }
        const std::size_t equals = content.find('=');
        const std::string name = trimmed(content.substr(0, equals));
        if (equals == std::string::npos || name.empty()) {
            problems.push_back(where + ": \"" + content.substr(0, 60) + "\" is no assignment; expected key = value");
            continue;
        }
        const std::string key = section.empty() ? name : section + "." + name;
        if (find_key(table, key) == nullptr) {
            problems.push_back(where + ": " + unknown_key_text(table, key));
            continue;
        }
        // Boost's parser reports no line numbers, so it gets one assignment at a time.
        po::options_description description;
        description.add_options()(key.c_str(), po::value<std::string>());
        try {
            std::istringstream assignment(key + " = " + content.substr(equals + 1));
            for (const auto& option : po::parse_config_file(assignment, description).options) {
                const auto [first, is_new] = first_lines.emplace(option.string_key, number);
                if (!is_new) {
                    problems.push_back(
                        fmt::format("{}: {} is given twice, first in line {}", where, key, first->second));
                    continue;
                }
                assignments.push_back({option.string_key, option.value.front(), where, number});
            }
        } catch (const po::error& error) {
            problems.push_back(where + ": " + error.what());
        }
    }
    return assignments;
}

}  // namespace contraflow::config
