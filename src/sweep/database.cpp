#include "sweep/database.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <unordered_map>

#include "contraflow/error.h"
#include "sweep/configuration.h"

namespace contraflow::sweep {

namespace {

constexpr const char* kFormat = "contraflow-sweep/2";
constexpr std::int64_t kApplicationId = 0x43467377;  // "CFsw"

constexpr const char* kSchema = R"sql(
    PRAGMA application_id = 1128690551;
    PRAGMA user_version = 2;
    CREATE TABLE sweep(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE points(
        point INTEGER NOT NULL,
        turn INTEGER NOT NULL,
        keys TEXT NOT NULL PRIMARY KEY,
        status TEXT NOT NULL CHECK(status IN ('pending', 'running', 'done', 'failed')),
        reason TEXT,
        config TEXT,
        config_hash TEXT,
        version TEXT,
        report TEXT);
    CREATE INDEX points_in_order ON points(point);
    CREATE INDEX points_by_status ON points(status, turn);
    CREATE TABLE claims(keys TEXT NOT NULL PRIMARY KEY, process TEXT NOT NULL);
    CREATE TABLE host(
        keys TEXT NOT NULL PRIMARY KEY,
        startup_seconds REAL NOT NULL,
        seconds REAL NOT NULL,
        peak_rss_bytes INTEGER NOT NULL);
    CREATE VIEW numbers(point, name, value) AS
        SELECT points.point, replace(substr(tree.fullkey, 3), '"', ''), tree.atom
        FROM points, json_tree(points.report) AS tree
        WHERE tree.type IN ('integer', 'real');
)sql";

// When the process started, in clock ticks since boot: with the pid, a name that no later process takes. "": no such
// process.
std::string start_of(const std::string& pid) {
    std::ifstream file("/proc/" + pid + "/stat");
    const std::string stat{std::istreambuf_iterator<char>(file), {}};
    std::size_t at = stat.rfind(')');   // the name before it may hold anything
    constexpr int kFieldsToStart = 20;  // proc(5): state is field 3, starttime field 22
    for (int i = 0; i < kFieldsToStart && at != std::string::npos; ++i) {
        at = stat.find(' ', at + 1);
    }
    return at == std::string::npos ? "" : stat.substr(at + 1, stat.find(' ', at + 1) - at - 1);
}

std::string this_process() {
    const std::string pid = std::to_string(getpid());
    return pid + " " + start_of(pid);
}

bool is_alive(const std::string& process) {
    const std::size_t blank = process.find(' ');
    const std::string start = start_of(process.substr(0, blank));
    return !start.empty() && start == process.substr(blank + 1);
}

std::string shard_text(Shard shard) {
    return fmt::format("{}/{}", shard.index, shard.count);
}

Shard parse_stored_shard(const std::string& text) {
    Shard shard;
    const std::size_t slash = text.find('/');
    shard.index = std::stoul(text.substr(0, slash));
    shard.count = std::stoul(text.substr(slash + 1));
    return shard;
}

std::map<std::string, std::string> read_entries(Connection& connection) {
    std::map<std::string, std::string> entries;
    Statement statement(connection, "SELECT name, value FROM sweep");
    while (statement.step()) {
        entries[statement.text(0)] = statement.text(1);
    }
    return entries;
}

void write_entry(Connection& connection, const std::string& name, const std::string& value) {
    Statement statement(connection,
                        "INSERT INTO sweep VALUES(?1, ?2) ON CONFLICT(name) DO UPDATE SET value = excluded.value "
                        "WHERE value != excluded.value");
    statement.bind(1, name).bind(2, value).run();
}

std::int64_t single_integer(Connection& connection, const char* sql) {
    Statement statement(connection, sql);
    return statement.step() ? statement.integer(0) : 0;
}

// Keys whose values differ between two configurations as JSON: "engine.rows 8, here 4".
std::string difference(const std::string& stored, const std::string& given) {
    const auto before = nlohmann::json::parse(stored).flatten();
    const auto now = nlohmann::json::parse(given).flatten();
    for (const auto& [name, value] : now.items()) {
        if (!before.contains(name) || before[name] != value) {
            std::string dotted = name.substr(1);
            std::replace(dotted.begin(), dotted.end(), '/', '.');
            return fmt::format("{} is {} there and {} here", dotted,
                               before.contains(name) ? before[name].dump() : "not set", value.dump());
        }
    }
    return "";
}

void check_same_sweep(const SweepIdentity& stored, const SweepIdentity& given, const std::string& path,
                      const std::string& remedy) {
    const auto refuse = [&](const std::string& what) { throw ConfigError(path + ": " + what + "; " + remedy); };
    if (stored.version != given.version) {
        refuse(fmt::format("was made by version {}, this is {}", stored.version, given.version));
    }
    std::vector<std::string> stored_keys = stored.keys;
    std::vector<std::string> given_keys = given.keys;
    std::sort(stored_keys.begin(), stored_keys.end());
    std::sort(given_keys.begin(), given_keys.end());
    if (stored_keys != given_keys) {
        refuse(fmt::format("sweeps {}, not {}", fmt::join(stored.keys, ", "), fmt::join(given.keys, ", ")));
    }
    if (stored.design != given.design) {
        refuse("sweeps another design: " + difference(stored.design, given.design));
    }
    if (stored.design_hash != given.design_hash) {
        refuse("sweeps another design: its device or memory file has changed");
    }
    if (stored.options != given.options) {
        refuse("was made with other options: " + difference(stored.options, given.options));
    }
}

// Enters what is new and moves what has another place now; a point that is not among `points` goes behind them.
void enter_points(Connection& connection, const Points& points, const std::vector<std::string>& keys, Shard shard) {
    struct Place {
        std::int64_t point = 0, turn = 0;
    };
    const std::vector<std::size_t> turns = turns_of(points);
    std::unordered_map<std::string, Place> missing;
    for (std::size_t i = 0; i < points.size(); ++i) {
        if (shard.holds(i)) {
            missing.emplace(keys[i], Place{static_cast<std::int64_t>(i), static_cast<std::int64_t>(turns[i])});
        }
    }
    std::vector<std::pair<std::string, Place>> moved;
    auto behind = static_cast<std::int64_t>(points.size());
    {
        Statement rows(connection, "SELECT keys, point, turn FROM points ORDER BY point");
        while (rows.step()) {
            const auto found = missing.find(rows.text(0));
            Place place;
            if (found == missing.end()) {
                place = {behind, behind};
                ++behind;
            } else {
                place = found->second;
                missing.erase(found);
            }
            if (place.point != rows.integer(1) || place.turn != rows.integer(2)) {
                moved.emplace_back(rows.text(0), place);
            }
        }
    }
    Statement move(connection, "UPDATE points SET point = ?2, turn = ?3 WHERE keys = ?1");
    for (const auto& [point_keys, place] : moved) {
        move.bind(1, point_keys).bind(2, place.point).bind(3, place.turn).run();
    }
    Statement add(connection, "INSERT INTO points(point, turn, keys, status) VALUES(?1, ?2, ?3, 'pending')");
    for (std::size_t i = 0; i < points.size(); ++i) {
        if (missing.count(keys[i]) != 0) {
            add.bind(1, static_cast<std::int64_t>(i))
                .bind(2, static_cast<std::int64_t>(turns[i]))
                .bind(3, keys[i])
                .run();
        }
    }
}

// Each point's keys as in the table.
std::vector<std::string> keys_of(const Points& points) {
    std::vector<std::string> keys;
    keys.reserve(points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
        keys.push_back(keys_json(points.assignments(i)));
    }
    return keys;
}

void bind_or_null(Statement& statement, int parameter, const std::string& text) {
    if (text.empty()) {
        statement.bind_null(parameter);
    } else {
        statement.bind(parameter, text);
    }
}

void free_claims(Connection& connection, const std::string& process) {
    Statement points(connection,
                     "UPDATE points SET status = 'pending' WHERE status = 'running' AND keys IN "
                     "(SELECT keys FROM claims WHERE process = ?1)");
    points.bind(1, process).run();
    Statement claims(connection, "DELETE FROM claims WHERE process = ?1");
    claims.bind(1, process).run();
}

void free_abandoned(Connection& connection) {
    std::vector<std::string> gone;
    {
        Statement processes(connection, "SELECT DISTINCT process FROM claims");
        while (processes.step()) {
            if (!is_alive(processes.text(0))) {
                gone.push_back(processes.text(0));
            }
        }
    }
    for (const std::string& process : gone) {
        free_claims(connection, process);
    }
}

}  // namespace

const char* to_string(Status status) {
    switch (status) {
        case Status::Pending:
            return "pending";
        case Status::Running:
            return "running";
        case Status::Done:
            return "done";
        case Status::Failed:
            return "failed";
    }
    return "";
}

std::string Shard::text() const {
    return shard_text(*this);
}

Database::Database(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}

// REQUIRES: a transaction that writes is open.
void Database::create(const SweepIdentity& identity) {
    if (single_integer(*connection_, "SELECT count(*) FROM sqlite_schema") != 0) {
        throw ConfigError(connection_->path() + ": is another program's database; expected a new name");
    }
    connection_->execute(kSchema);
    write_entry(*connection_, "format", kFormat);
    write_entry(*connection_, "version", identity.version);
    write_entry(*connection_, "design", identity.design);
    write_entry(*connection_, "design_hash", identity.design_hash);
    write_entry(*connection_, "options", identity.options);
    write_entry(*connection_, "keys", nlohmann::json(identity.keys).dump());
}

void Database::read_identity() {
    if (single_integer(*connection_, "PRAGMA application_id") != kApplicationId) {
        throw ConfigError(connection_->path() + ": is no sweep's database");
    }
    std::map<std::string, std::string> entries = read_entries(*connection_);
    if (entries["format"] != kFormat) {
        throw ConfigError(
            fmt::format("{}: is of format \"{}\", not {}; expected another database, or the program that made it",
                        connection_->path(), entries["format"], kFormat));
    }
    try {
        identity_ = {entries["version"], entries["design"], entries["design_hash"], entries["options"],
                     nlohmann::json::parse(entries["keys"]).get<std::vector<std::string>>()};
        shard_ = parse_stored_shard(entries["shard"]);
        total_ = std::stoul(entries["points"]);
        points_hash_ = entries["points_hash"];
    } catch (const std::exception&) {
        throw ConfigError(connection_->path() + ": is damaged: its table `sweep` lacks entries");
    }
}

Database Database::open_for_sweep(const std::string& path, const SweepIdentity& identity, const Points& points,
                                  Shard shard, bool retry_failed) {
    Database database(std::make_unique<Connection>(path, Connection::Access::Write));
    Connection& connection = *database.connection_;
    Transaction transaction(connection);
    const bool is_new = single_integer(connection, "PRAGMA application_id") != kApplicationId;
    if (is_new) {
        database.create(identity);
    } else {
        database.read_identity();
        check_same_sweep(database.identity_, identity, path, "expected the same, or another --db");
        if (database.shard_.index != shard.index || database.shard_.count != shard.count) {
            throw ConfigError(fmt::format("{}: holds shard {}, not {}; expected one database per shard", path,
                                          database.shard_.text(), shard.text()));
        }
    }
    write_entry(connection, "shard", shard.text());
    write_entry(connection, "points", std::to_string(points.size()));
    const std::vector<std::string> keys = keys_of(points);
    write_entry(connection, "points_hash", text_hash(fmt::format("{}", fmt::join(keys, "\n"))));
    enter_points(connection, points, keys, shard);
    free_abandoned(connection);
    if (retry_failed) {
        Statement retry(connection,
                        "UPDATE points SET status = 'pending', reason = NULL, config = NULL, config_hash = NULL, "
                        "version = NULL WHERE status = 'failed' AND point < ?1");
        retry.bind(1, static_cast<std::int64_t>(points.size())).run();
    }
    database.read_identity();
    transaction.commit();
    return database;
}

Database Database::open(const std::string& path) {
    if (!std::filesystem::exists(path)) {
        throw ConfigError(path + ": no such file");
    }
    Database database(std::make_unique<Connection>(path, Connection::Access::Read));
    database.read_identity();
    return database;
}

Database Database::create_merged(const std::string& path, const Database& shard) {
    Database database(std::make_unique<Connection>(path, Connection::Access::Write));
    Connection& connection = *database.connection_;
    Transaction transaction(connection);
    database.create(shard.identity_);
    write_entry(connection, "shard", Shard{}.text());
    write_entry(connection, "points", std::to_string(shard.total_));
    write_entry(connection, "points_hash", shard.points_hash_);
    database.read_identity();
    transaction.commit();
    return database;
}

void Database::add_rows_of(Database& shard) {
    Transaction transaction(*connection_);
    Statement add(*connection_,
                  "INSERT INTO points(point, turn, keys, status, reason, config, config_hash, version, report) "
                  "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
    shard.begin_reading();
    shard.read([&](const Row& row) {
        const bool finished = row.status == "done" || row.status == "failed";
        add.bind(1, row.point).bind(2, row.turn).bind(3, row.keys);
        add.bind(4, finished ? row.status : std::string("pending"));
        bind_or_null(add, 5, row.reason);
        bind_or_null(add, 6, row.config);
        bind_or_null(add, 7, row.config_hash);
        bind_or_null(add, 8, row.version);
        bind_or_null(add, 9, row.report);
        add.run();
    });
    Statement from(*shard.connection_, "SELECT keys, startup_seconds, seconds, peak_rss_bytes FROM host ORDER BY keys");
    Statement to(*connection_, "INSERT INTO host VALUES(?1, ?2, ?3, ?4)");
    while (from.step()) {
        to.bind(1, from.text(0)).bind(2, from.real(1)).bind(3, from.real(2)).bind(4, from.integer(3)).run();
    }
    transaction.commit();
}

void Database::check_shard_of(const Database& other) const {
    const std::string remedy = "expected shards of the same sweep as " + other.path();
    check_same_sweep(identity_, other.identity_, path(), remedy);
    if (total_ != other.total_ || points_hash_ != other.points_hash_) {
        throw ConfigError(
            fmt::format("{}: sweeps other points ({} in all, {} there); {}", path(), total_, other.total_, remedy));
    }
    if (shard_.count != other.shard_.count) {
        throw ConfigError(fmt::format("{}: holds shard {}, of another division; {}", path(), shard_.text(), remedy));
    }
}

void Database::begin_reading() {
    connection_->execute("BEGIN");
}

std::vector<Claim> Database::exchange(const std::vector<PointResult>& results, std::size_t want) {
    Transaction transaction(*connection_);
    save(results);
    std::vector<Claim> claims;
    {
        Statement pending(*connection_,
                          "SELECT keys FROM points WHERE status = 'pending' AND point < "
                          "(SELECT CAST(value AS INTEGER) FROM sweep WHERE name = 'points') ORDER BY turn LIMIT ?1");
        pending.bind(1, static_cast<std::int64_t>(want));
        while (pending.step()) {
            const std::string keys = pending.text(0);
            claims.push_back({keys, assignments_of(keys)});
        }
    }
    const std::string process = this_process();
    Statement run(*connection_, "UPDATE points SET status = 'running' WHERE keys = ?1");
    Statement claim(*connection_, "INSERT OR REPLACE INTO claims VALUES(?1, ?2)");
    for (const Claim& claimed : claims) {
        run.bind(1, claimed.keys).run();
        claim.bind(1, claimed.keys).bind(2, process).run();
    }
    transaction.commit();
    return claims;
}

void Database::save(const std::vector<PointResult>& results) {
    Statement point(*connection_,
                    "UPDATE points SET status = ?2, reason = ?3, config = ?4, config_hash = ?5, version = ?6, "
                    "report = ?7 WHERE keys = ?1");
    Statement claim(*connection_, "DELETE FROM claims WHERE keys = ?1");
    Statement host(*connection_, "INSERT OR REPLACE INTO host VALUES(?1, ?2, ?3, ?4)");
    for (const PointResult& result : results) {
        point.bind(1, result.keys).bind(2, std::string(to_string(result.status)));
        bind_or_null(point, 3, result.reason);
        bind_or_null(point, 4, result.config);
        bind_or_null(point, 5, result.config_hash);
        point.bind(6, identity_.version);
        bind_or_null(point, 7, result.report);
        point.run();
        claim.bind(1, result.keys).run();
        if (result.status == Status::Done) {
            host.bind(1, result.keys).bind(2, result.startup_seconds).bind(3, result.seconds);
            host.bind(4, result.peak_rss_bytes).run();
        }
    }
}

void Database::release_claims() {
    Transaction transaction(*connection_);
    free_claims(*connection_, this_process());
    transaction.commit();
}

void Database::take_over_abandoned() {
    Transaction transaction(*connection_);
    free_abandoned(*connection_);
    transaction.commit();
}

Counts Database::counts() {
    Counts counts;
    Statement statement(*connection_,
                        "SELECT status, count(*) FROM points WHERE point < "
                        "(SELECT CAST(value AS INTEGER) FROM sweep WHERE name = 'points') GROUP BY status");
    while (statement.step()) {
        const std::string status = statement.text(0);
        (status == "pending"   ? counts.pending
         : status == "running" ? counts.running
         : status == "done"    ? counts.done
                               : counts.failed) = statement.integer(1);
    }
    return counts;
}

void Database::read(const std::function<void(const Row&)>& use) {
    Statement rows(*connection_,
                   "SELECT point, turn, keys, status, reason, config, config_hash, version, report FROM points "
                   "ORDER BY point, keys");
    while (rows.step()) {
        use({rows.integer(0), rows.integer(1), rows.text(2), rows.text(3), rows.text(4), rows.text(5), rows.text(6),
             rows.text(7), rows.text(8)});
    }
}

}  // namespace contraflow::sweep
