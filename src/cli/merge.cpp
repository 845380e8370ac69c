// contraflow merge: one database from those of a sweep's shards.
#include "sweep/merge.h"

#include <fmt/format.h>

#include <iostream>
#include <limits>

#include "cli/command_line.h"
#include "contraflow/error.h"

namespace contraflow::cli {

int merge_command(const Arguments& args) {
    Syntax syntax;
    syntax.usage = "merge --db FILE SHARD...";
    syntax.summary =
        "Joins the databases of a sweep's shards: FILE gets the rows that the undivided sweep would have. Exit status\n"
        "1 if points are missing; the sweep's command with --db FILE runs those.";
    syntax.max_positionals = std::numeric_limits<std::size_t>::max();
    syntax.options.add_options()("db", boost::program_options::value<std::string>()->value_name("FILE")->required(),
                                 "the database to write");
    const auto line = parse_command(args, syntax);
    if (!line) {
        return 0;
    }
    if (line->positionals.empty()) {
        throw ConfigError("no shards given; usage: contraflow " + syntax.usage);
    }
    const std::string path = line->values["db"].as<std::string>();
    const sweep::MergeSummary summary = sweep::merge(path, line->positionals);
    std::cout << fmt::format("{}: {} points, {} failed, {} missing\n", path, summary.points, summary.failed,
                             summary.missing);
    return summary.missing == 0 ? 0 : 1;
}

}  // namespace contraflow::cli
