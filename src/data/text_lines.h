// Reading text files line by line, with the checks every text format here shares.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace contraflow {

// Lines of a UTF-8 file without their line ends; CRLF and a byte-order mark are accepted, and so is a last line without
// an end. A file that cannot be read, is empty or holds a byte that is not UTF-8 text adds to `problems`, one line
// each.
[[nodiscard]] std::vector<std::string> read_text_lines(const std::string& path, std::vector<std::string>& problems);

// Pieces between spaces and tabs.
[[nodiscard]] std::vector<std::string> split_words(std::string_view line);

// Position of the first byte that is not part of well-formed UTF-8 text (a NUL counts as such); npos: all is well.
[[nodiscard]] std::size_t find_invalid_utf8(std::string_view text);

// Text fit for an error line: control characters and ill-formed bytes as \xNN, at most 80 bytes.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace contraflow
