// The key table as text.
#pragma once

#include <string>

namespace contraflow {

[[nodiscard]] std::string keys_text();      // for a terminal: one line per key
[[nodiscard]] std::string keys_markdown();  // docs/keys.md

}  // namespace contraflow
