#include "sweep/merge.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "contraflow/error.h"
#include "sweep/database.h"

namespace contraflow::sweep {

MergeSummary merge(const std::string& path, const std::vector<std::string>& shards) {
    if (std::filesystem::exists(path)) {
        throw ConfigError("--db " + path + ": exists; expected a new name");
    }
    std::vector<Database> sources;
    std::map<std::size_t, std::string> files;  // by index of the shard
    for (const std::string& shard : shards) {
        sources.push_back(Database::open(shard));
        sources.back().check_shard_of(sources.front());
        const auto [first, is_new] = files.emplace(sources.back().shard().index, shard);
        if (!is_new) {
            throw ConfigError(fmt::format("{} and {} are both shard {}; expected one of them", first->second, shard,
                                          sources.back().shard().text()));
        }
    }
    // Made under another name and moved: the database is complete or not there.
    const std::string unfinished = path + ".unfinished";
    std::filesystem::remove(unfinished);
    std::filesystem::remove(unfinished + "-journal");
    Counts counts;
    {
        Database target = Database::create_merged(unfinished, sources.front());
        for (Database& source : sources) {
            target.add_rows_of(source);
        }
        counts = target.counts();
    }
    std::filesystem::rename(unfinished, path);
    const std::size_t total = sources.front().total();
    return {total, total - static_cast<std::size_t>(counts.done + counts.failed),
            static_cast<std::size_t>(counts.failed)};
}

}  // namespace contraflow::sweep
