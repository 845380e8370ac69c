// Joining the databases of a sweep's shards.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace contraflow::sweep {

struct MergeSummary {
    std::size_t points = 0;   // of the whole sweep
    std::size_t missing = 0;  // that no shard holds, or that are not finished
    std::size_t failed = 0;
};

// Writes the database `path`, which must not exist, with the rows of all shards: the same rows as those of the sweep
// undivided. Unfinished points are pending in it; the sweep's command with this database runs them. Throws ConfigError
// if the shards are not of one sweep or one is given twice; then nothing is written.
MergeSummary merge(const std::string& path, const std::vector<std::string>& shards);

}  // namespace contraflow::sweep
