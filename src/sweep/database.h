// The database of a sweep: one row per point, in SQLite. docs/sweep.md describes the tables.
//
// Every change is one transaction, so that the file is right at any moment whatever is killed. Several processes may
// work on one database: each claims the points it is about to run, and takes over those of a process that is gone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sweep/points.h"
#include "sweep/sqlite.h"

namespace contraflow::sweep {

// Share `index` (from 1) of `count` shares.
struct Shard {
    std::size_t index = 1, count = 1;

    [[nodiscard]] bool holds(std::size_t point) const { return point % count == index - 1; }
    [[nodiscard]] std::string text() const;
};

// What all points of a database have in common. Two commands, or two shards, with equal identities belong together.
struct SweepIdentity {
    std::string version;            // of the program
    std::string design;             // full configuration of the design without the points' keys, as JSON
    std::string design_hash;        // also covers the device and memory files
    std::string options;            // JSON: steps, values, ...
    std::vector<std::string> keys;  // in the order of the columns of an export
};

enum class Status { Pending, Running, Done, Failed };
[[nodiscard]] const char* to_string(Status status);

// A point that a process has claimed.
struct Claim {
    std::string keys;  // as in the table
    Overrides assignments;
};

struct PointResult {
    std::string keys;
    Status status = Status::Failed;
    std::string reason;       // of a failure
    std::string config;       // full configuration, JSON; empty if the keys make no design
    std::string config_hash;  // empty as well
    std::string report;       // JSON; empty for a failure
    double startup_seconds = 0, seconds = 0;
    std::int64_t peak_rss_bytes = 0;
};

struct Row {
    std::int64_t point = 0, turn = 0;
    std::string keys;
    std::string status, reason;
    std::string config, config_hash;
    std::string version;
    std::string report;
};

// Of the points of the latest command; those that an earlier command added are left out.
struct Counts {
    std::int64_t pending = 0, running = 0, done = 0, failed = 0;

    [[nodiscard]] std::int64_t total() const { return pending + running + done + failed; }
};

class Database {
public:
    // For a sweep: creates the file or checks that it holds a sweep of this identity; enters the points of `shard`,
    // keeps what is known of them, and takes back the claims of processes that are gone. `retry_failed`: failed points
    // become pending. Points of earlier commands that are not in `points` stay, behind those that are.
    static Database open_for_sweep(const std::string& path, const SweepIdentity& identity, const Points& points,
                                   Shard shard, bool retry_failed);
    static Database open(const std::string& path);  // to read

    // Writes a database for all rows of the sweep that `shard` is a share of.
    static Database create_merged(const std::string& path, const Database& shard);
    void add_rows_of(Database& shard);
    // Throws ConfigError unless this is a shard of the same sweep as `other`.
    void check_shard_of(const Database& other) const;

    // One transaction: saves the results, whose claims end, and claims up to `want` pending points, by turns.
    std::vector<Claim> exchange(const std::vector<PointResult>& results, std::size_t want);
    void release_claims();       // of this process: its points become pending
    void take_over_abandoned();  // points of processes that are gone become pending

    [[nodiscard]] Counts counts();
    [[nodiscard]] const SweepIdentity& identity() const { return identity_; }
    [[nodiscard]] const std::string& path() const { return connection_->path(); }
    [[nodiscard]] Shard shard() const { return shard_; }
    [[nodiscard]] std::size_t total() const { return total_; }  // points of the whole sweep, all shards

    void begin_reading();  // until this object goes, every read() sees the same rows
    // Calls `use` for every row in order of points.
    void read(const std::function<void(const Row&)>& use);

private:
    explicit Database(std::unique_ptr<Connection> connection);

    void create(const SweepIdentity& identity);
    void read_identity();
    void save(const std::vector<PointResult>& results);

    std::unique_ptr<Connection> connection_;
    SweepIdentity identity_;
    Shard shard_;
    std::size_t total_ = 0;
    std::string points_hash_;
};

}  // namespace contraflow::sweep
