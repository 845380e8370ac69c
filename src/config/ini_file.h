// Reading INI text: sections, `key = value` lines, comments from # or ; on. Windows line ends and a byte-order mark are
// accepted.
#pragma once

#include <string>
#include <vector>

#include "config/key_table.h"

namespace contraflow::config {

// One assignment, with the place it came from.
struct Assignment {
    std::string key;    // section.name
    std::string value;  // without white space at its ends
    std::string where;  // "design.ini:12" or "--engine.rows=8"
    int line = 0;       // 0: command line

    // "design.ini:12: engine.rows: " or "--engine.rows=8: ", the beginning of a message about this assignment.
    [[nodiscard]] std::string prefix() const;
};

// The file's text without byte-order mark. Throws ConfigError when it is missing, not a file, empty, too large, holds a
// NUL byte or is not UTF-8.
[[nodiscard]] std::string read_text_file(const std::string& path);

// The assignments of `text` to keys of `table`, in order. What is no assignment, no known key, or given twice goes to
// `problems`, one line each, that starts with `path` and the line number.
[[nodiscard]] std::vector<Assignment> parse_ini(const std::string& text, const std::string& path, const KeyTable& table,
                                                std::vector<std::string>& problems);

}  // namespace contraflow::config
