// contraflow keys: the key table.
#include <iostream>

#include "cli/command_line.h"
#include "config/key_docs.h"

namespace contraflow::cli {

int keys_command(const Arguments& args) {
    Syntax syntax;
    syntax.usage = "keys [--markdown]";
    syntax.summary = "Lists every configuration key with type, unit, default, meaning and allowed values.";
    syntax.options.add_options()("markdown", "as docs/keys.md");
    const auto line = parse_command(args, syntax);
    if (line) {
        std::cout << (line->has("markdown") ? keys_markdown() : keys_text());
    }
    return 0;
}

}  // namespace contraflow::cli
