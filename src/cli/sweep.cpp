// contraflow sweep: many points of one design, each in a process of its own, into a database.
#include "sweep/sweep.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/option_values.h"
#include "cli/program.h"
#include "contraflow/error.h"
#include "sweep/configuration.h"

namespace contraflow::cli {

namespace {

namespace po = boost::program_options;
using Clock = std::chrono::steady_clock;
using sweep::Counts;
using sweep::Points;
using sweep::Shard;

constexpr std::int64_t kMaxJobs = 1024;
constexpr std::int64_t kMaxLimitSeconds = 1'000'000;

std::size_t usable_cores() {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    return sched_getaffinity(0, sizeof cores, &cores) == 0 ? static_cast<std::size_t>(CPU_COUNT(&cores)) : 1;
}

Shard parse_shard(const std::string& text) {
    const std::size_t slash = text.find('/');
    const auto index = parse_count(text.substr(0, slash));
    const auto count = slash == std::string::npos ? std::nullopt : parse_count(text.substr(slash + 1));
    if (!index || !count || *index < 1 || *index > *count || *count > std::int64_t{sweep::kMaxPoints}) {
        throw ConfigError("--shard " + text + ": expected I/N, e.g. 1/4 for the first of four shares");
    }
    return {static_cast<std::size_t>(*index), static_cast<std::size_t>(*count)};
}

Points read_sweep_points(const CommandLine& line) {
    if (line.has("over") == line.has("points")) {
        throw ConfigError(line.has("over") ? "--over and --points both give the points; expected one of them"
                                           : "no points given; expected --over KEY=SPEC, e.g. --over tt.rank=4:24:4, "
                                             "or --points FILE.csv");
    }
    return line.has("over") ? sweep::cross_product(line.values["over"].as<std::vector<std::string>>())
                            : sweep::read_points(line.values["points"].as<std::string>());
}

// The data set is read once if no point changes which samples there are, or how they are encoded.
bool points_share_data(const Points& points) {
    static const std::vector<std::string> kEncoding{"network.seq_len", "network.vocab", "network.intents",
                                                    "network.slots", "train.seed"};
    return std::none_of(points.keys.begin(), points.keys.end(), [](const std::string& key) {
        return key.rfind("data.", 0) == 0 || std::find(kEncoding.begin(), kEncoding.end(), key) != kEncoding.end();
    });
}

std::string duration_text(double seconds) {
    const auto whole = static_cast<std::int64_t>(seconds + 0.5);
    return whole < 60     ? fmt::format("{} s", whole)
           : whole < 3600 ? fmt::format("{} min {:02} s", whole / 60, whole % 60)
                          : fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

// On a terminal one line that is drawn again and again, otherwise a line now and then.
class SweepProgress {
public:
    SweepProgress() : terminal_(isatty(STDERR_FILENO) == 1) {}
    ~SweepProgress() {
        if (terminal_) {
            std::cerr << "\r\x1b[K" << std::flush;
        }
    }
    SweepProgress(const SweepProgress&) = delete;
    SweepProgress& operator=(const SweepProgress&) = delete;

    void show(const Counts& counts) {
        const Clock::time_point now = Clock::now();
        const std::int64_t finished = counts.done + counts.failed;
        if (first_ < 0) {
            first_ = finished;
        }
        const bool is_end = finished == counts.total();
        const std::chrono::milliseconds interval{terminal_ ? 100 : 10'000};
        if (now - last_ < interval && !(is_end && terminal_)) {
            return;
        }
        last_ = now;
        const double elapsed = std::chrono::duration<double>(now - start_).count();
        const double rate = static_cast<double>(finished - first_) / std::max(elapsed, 1e-3);
        std::string text = fmt::format("{} of {} points", finished, counts.total());
        if (counts.failed > 0) {
            text += fmt::format(", {} failed", counts.failed);
        }
        if (finished > first_) {
            text += fmt::format(", {:.1f} points/s, {} left", rate,
                                duration_text(static_cast<double>(counts.total() - finished) / rate));
        }
        if (terminal_) {
            std::cerr << "\r\x1b[K" << bar(finished, counts.total()) << ' ' << text << std::flush;
        } else {
            std::cerr << "contraflow: " << text << std::endl;
        }
    }

private:
    static std::string bar(std::int64_t finished, std::int64_t total) {
        constexpr std::size_t kWidth = 24;
        const std::size_t full =
            total == 0 ? kWidth : static_cast<std::size_t>(finished) * kWidth / static_cast<std::size_t>(total);
        return '[' + std::string(full, '#') + std::string(kWidth - full, '.') + ']';
    }

    bool terminal_;
    std::int64_t first_ = -1;  // finished when the command began
    Clock::time_point start_ = Clock::now();
    Clock::time_point last_ = start_;
};

struct SweepOptions {
    Points points;
    std::string database;
    Shard shard;
    bool retry_failed = false;
    sweep::PointOptions point;
    sweep::WorkerOptions worker;
};

SweepOptions read_sweep_options(const CommandLine& line) {
    SweepOptions options;
    const auto text = [&](const char* name) { return line.values[name].as<std::string>(); };
    options.database = text("db");
    if (options.database.empty()) {
        throw ConfigError("--db: expected the name of a file");
    }
    options.shard = line.has("shard") ? parse_shard(text("shard")) : Shard{};
    options.retry_failed = line.has("retry-failed");
    options.point.steps = parse_steps(text("steps"));
    options.point.values = parse_either("values", text("values"), "on", "off");
    options.point.allow_overflow = line.has("allow-overflow");
    options.point.full_reports = line.has("full-reports");
    options.worker.jobs = line.has("jobs") ? parse_count_option("jobs", text("jobs"), 1, kMaxJobs) : usable_cores();
    options.worker.limit_seconds = static_cast<unsigned>(
        line.has("timeout") ? parse_count_option("timeout", text("timeout"), 1, kMaxLimitSeconds) : 0);
    options.points = read_sweep_points(line);
    return options;
}

Syntax sweep_syntax() {
    Syntax syntax;
    syntax.usage = "sweep -c FILE --over KEY=SPEC [--over ...] [options]";
    syntax.summary =
        "Runs the cross product of the keys' values, or the points of a CSV file, each in a process of its own, and\n"
        "keeps the results in an SQLite database (docs/sweep.md). SPEC is a list, 8,16,32, or a range, 4:24:4. The\n"
        "same command again goes on where it was stopped. Exit status 1 if a point failed; its row says why.";
    syntax.takes_design = true;
    const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
    auto add = syntax.options.add_options();
    add("over", po::value<std::vector<std::string>>()->composing()->value_name("KEY=SPEC"),
        "a key and its values; may be given several times, the last key varies fastest");
    add("points", text("CSV"), "instead: a line of key names, then one line of values per point");
    add("db", text("FILE")->default_value("sweep.sqlite"), "the database");
    add("jobs,j", text("N"), "points at once (default: the cores there are)");
    add("shard", text("I/N"), "only the I-th of N shares, into a database of its own; `contraflow merge` joins them");
    add("retry-failed", "run failed points again");
    add("timeout", text("SECONDS"), "a point that takes longer fails (default: no limit)");
    add("steps", text("N")->default_value("1"), "training steps of each point");
    add("values", text("on|off")->default_value("on"), "off: count cycles without computing the values");
    add("allow-overflow", "simulate points that do not fit the device");
    add("full-reports", "keep the reports' lists of kernels, tensors and memories, too (200 kB per point and more)");
    return syntax;
}

std::string summary_text(const std::string& database, const Counts& counts) {
    return fmt::format("{}: {} points, {} done, {} failed\n", database, counts.total(), counts.done, counts.failed);
}

}  // namespace

int sweep_command(const Arguments& args) {
    const auto line = parse_command(args, sweep_syntax());
    if (!line) {
        return 0;
    }
    const SweepOptions options = read_sweep_options(*line);
    sweep::PointContext context;
    context.design = line->design;
    context.options = options.point;
    if (points_share_data(options.points)) {
        context.data = load_data(line->design);
    }
    const std::string configuration = sweep::configuration_text(line->design.config);
    const sweep::SweepIdentity identity{kVersion, configuration,
                                        sweep::configuration_hash(configuration, line->design.config),
                                        options.point.json(), options.points.keys};
    sweep::Database database = sweep::Database::open_for_sweep(options.database, identity, options.points,
                                                               options.shard, options.retry_failed);
    try {
        SweepProgress progress;
        sweep::run_points(database, context, options.worker, [&](const Counts& counts) { progress.show(counts); });
    } catch (const sweep::Interrupted& stop) {
        std::cerr << "contraflow: stopped; the same command goes on from here: "
                  << summary_text(options.database, database.counts());
        constexpr int kSignalStatus = 128;  // as shells report it
        return kSignalStatus + stop.signal;
    }
    const Counts counts = database.counts();
    std::cout << summary_text(options.database, counts);
    return counts.failed == 0 ? 0 : 1;
}

}  // namespace contraflow::cli
