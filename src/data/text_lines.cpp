#include "data/text_lines.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace contraflow {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Bytes of the well-formed UTF-8 sequence that `text` starts with, 0 if there is none. Overlong forms, surrogates and
// code points above U+10FFFF are not well-formed: the second byte's range excludes them.
std::size_t sequence_length(std::string_view text) {
    const auto byte = [text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
    const std::uint8_t lead = byte(0);
    if (lead < 0x80) {
        return lead == 0 ? 0 : 1;
    }
    std::size_t length = 0;
    std::uint8_t low = 0x80;
    std::uint8_t high = 0xBF;
    if (lead >= 0xC2 && lead <= 0xDF) {
        length = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
        length = 3;
        low = lead == 0xE0 ? 0xA0 : 0x80;
        high = lead == 0xED ? 0x9F : 0xBF;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        length = 4;
        low = lead == 0xF0 ? 0x90 : 0x80;
        high = lead == 0xF4 ? 0x8F : 0xBF;
    }
    if (length == 0 || text.size() < length || byte(1) < low || byte(1) > high) {
        return 0;
    }
    for (std::size_t i = 2; i < length; ++i) {
        if ((byte(i) & 0xC0U) != 0x80U) {
            return 0;
        }
    }
    return length;
}

// Whole file; adds to `problems` if it cannot be read.
std::string read_file(const std::string& path, std::vector<std::string>& problems) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (status.type() == std::filesystem::file_type::not_found) {
        problems.push_back(fmt::format("{}: no such file", path));
        return {};
    }
    if (std::filesystem::is_directory(status)) {
        problems.push_back(fmt::format("{}: is a directory, expected a text file", path));
        return {};
    }
    errno = 0;
    std::ifstream in(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (!in.is_open() || in.bad()) {
        problems.push_back(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
        return {};
    }
    if (text.empty() || text == kByteOrderMark) {
        problems.push_back(fmt::format("{}: is empty", path));
        return {};
    }
    return text;
}

}  // namespace

std::vector<std::string> read_text_lines(const std::string& path, std::vector<std::string>& problems) {
    const std::string text = read_file(path, problems);
    std::string_view rest = text;
    if (rest.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
        rest.remove_prefix(kByteOrderMark.size());
    }
    std::vector<std::string> lines;
    while (!rest.empty()) {
        const std::size_t end = rest.find('\n');
        std::string_view line = rest.substr(0, end);
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
        if (!line.empty() && line.back() == '\r') {
            line.remove_suffix(1);
        }
        lines.emplace_back(line);
        const std::size_t invalid = find_invalid_utf8(line);
        if (invalid != std::string_view::npos) {
            problems.push_back(fmt::format("{}:{}: byte {} of the line (0x{:02X}) is not UTF-8 text", path,
                                           lines.size(), invalid + 1, static_cast<std::uint8_t>(line[invalid])));
        }
    }
    return lines;
}

std::vector<std::string> split_words(std::string_view line) {
    constexpr std::string_view kBlanks = " \t\r\v\f";
    std::vector<std::string> words;
    std::size_t begin = line.find_first_not_of(kBlanks);
    while (begin != std::string_view::npos) {
        const std::size_t end = line.find_first_of(kBlanks, begin);
        words.emplace_back(line.substr(begin, end - begin));
        begin = line.find_first_not_of(kBlanks, end);
    }
    return words;
}

std::size_t find_invalid_utf8(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t length = sequence_length(text.substr(i));
        if (length == 0) {
            return i;
        }
        i += length;
    }
    return std::string_view::npos;
}

std::string printable(std::string_view text) {
    constexpr std::size_t kMaxBytes = 80;
    std::string out;
    while (!text.empty() && out.size() < kMaxBytes) {
        const std::size_t length = sequence_length(text);
        const auto lead = static_cast<std::uint8_t>(text.front());
        if (length == 0 || lead < 0x20 || lead == 0x7F) {
            out += fmt::format("\\x{:02X}", lead);
            text.remove_prefix(1);
        } else {
            out += text.substr(0, length);
            text.remove_prefix(length);
        }
    }
    return text.empty() ? out : out + "...";
}

}  // namespace contraflow
