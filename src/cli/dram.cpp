// contraflow dram: replays a request trace on the DRAM alone.
#include <fmt/format.h>
#include <fmt/os.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "config/key_table.h"
#include "contraflow/error.h"
#include "dram_trace/replay.h"
#include "report/dram_report.h"
#include "report/table.h"

namespace contraflow::cli {

namespace po = boost::program_options;

namespace {

using Overrides = std::vector<std::pair<std::string, std::string>>;

// A CSV file that is opened before and written after the replay.
class CsvFile {
public:
    // Refuses to replace a file that the command uses otherwise.
    CsvFile(const CommandLine& line, const std::string& option, const std::vector<std::string>& others) {
        if (!line.has(option)) {
            return;
        }
        path_ = line.values[option].as<std::string>();
        for (const std::string& other : others) {
            std::error_code ignored;
            if (std::filesystem::equivalent(path_, other, ignored)) {
                throw ConfigError("--" + option + " " + path_ + ": is used by the same command; expected another file");
            }
        }
        file_.reset(std::fopen(path_.c_str(), "w"));
        if (!file_) {
            throw ConfigError("--" + option + " " + path_ + ": " + std::strerror(errno));
        }
    }

    [[nodiscard]] bool wanted() const { return file_ != nullptr; }
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] std::FILE* get() const { return file_.get(); }
    void close() {
        if (file_ && (std::ferror(file_.get()) != 0 || std::fclose(file_.release()) != 0)) {
            throw std::runtime_error(path_ + ": could not be written: " + std::strerror(errno));
        }
    }

private:
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::string path_;
    std::unique_ptr<std::FILE, Close> file_;
};

// There is no port in front of a replay's channels.
bool is_controller_key(const config::Key& key) {
    return key.section == "dram" && key.name != "file" && key.name != "port_queue";
}

DramConfig read_memory(const CommandLine& line, const std::string& memory) {
    (void)load_memory(memory);  // tells what is wrong with the file
    Overrides overrides{{"dram.file", memory}};
    for (const config::Key& key : config::design_keys()) {
        if (is_controller_key(key) && line.has(key.full_name())) {
            overrides.emplace_back(key.full_name(), line.values[key.full_name()].as<std::string>());
        }
    }
    if (line.has("mapping")) {
        overrides.emplace_back("dram.mapping", line.values["mapping"].as<std::string>());
    }
    return load_config("", overrides).config.dram;
}

void write_completions(const CsvFile& file, const std::vector<TraceRequest>& trace, const Replay& replay) {
    fmt::print(file.get(), "line,accepted,done\n");
    for (std::size_t i = 0; i < trace.size(); ++i) {
        fmt::print(file.get(), "{},{},{}\n", trace[i].line, replay.requests[i].accepted, replay.requests[i].done);
    }
}

// One line per command; what a command has not is -1.
class CommandWriter {
public:
    CommandWriter(const CsvFile& file, const DramConfig& config, const std::vector<TraceRequest>& trace)
        : file_(file), config_(config), trace_(trace) {
        fmt::print(file.get(), "cycle,cmd,rank,bg,bank,row,col,req{}\n", config.channels > 1 ? ",channel" : "");
    }

    void write(const ReplayedCommand& command) const {
        const DramChannel::IssuedCommand& issued = command.issued;
        const bool all_banks = issued.command == DramCommand::PreAll || issued.command == DramCommand::Ref;
        const bool column = is_column_command(issued.command);
        const bool row = column || issued.command == DramCommand::Act;
        const auto banks = static_cast<std::size_t>(config_.banks);
        const auto groups = static_cast<std::size_t>(config_.bank_groups);
        const auto or_none = [](bool present, auto value) { return present ? static_cast<std::int64_t>(value) : -1; };
        fmt::print(file_.get(), "{},{},{},{},{},{},{},{}{}\n", issued.cycle, to_string(issued.command), issued.rank,
                   or_none(!all_banks, issued.bank / banks % groups), or_none(!all_banks, issued.bank % banks),
                   row ? static_cast<std::int64_t>(issued.request->row) : -1,
                   column ? static_cast<std::int64_t>(issued.request->column) : -1,
                   column ? static_cast<std::int64_t>(trace_[issued.request->id].line) : -1,
                   config_.channels > 1 ? fmt::format(",{}", command.channel) : "");
    }

private:
    const CsvFile& file_;
    const DramConfig& config_;
    const std::vector<TraceRequest>& trace_;
};

void print_json(const DramConfig& config, const Replay& replay) {
    nlohmann::ordered_json json;
    json["memory"] = config.name;
    json["requests"] = replay.requests.size();
    json["total_cycles"] = replay.total_cycles;
    json["seconds"] = static_cast<double>(replay.total_cycles) / static_cast<double>(config.clock_hz);
    json.update(dram_json(replay.sum(), config, replay.total_cycles, config.channels));
    json["channels"] = nlohmann::ordered_json::array();
    for (const DramStats& channel : replay.channels) {
        json["channels"].push_back(dram_json(channel, config, replay.total_cycles, 1));
    }
    std::cout << json.dump(2) << '\n';
}

void print_text(const DramConfig& config, const Replay& replay) {
    const DramStats sum = replay.sum();
    const Cycle cycles = replay.total_cycles;
    fmt::print("{}, {} channel{}\n{} requests in {} memory cycles ({}): {}, {} of the peak\n\n", config.name,
               config.channels, config.channels == 1 ? "" : "s", grouped(std::uint64_t{replay.requests.size()}),
               grouped(cycles), with_prefix(static_cast<double>(cycles) / static_cast<double>(config.clock_hz), "s"),
               with_prefix(dram_bandwidth(sum, config, cycles), "B/s"),
               percent(dram_share_of_peak(sum, cycles, config.channels)));
    TextTable table({"", "count"});
    table.add({"read", with_prefix(static_cast<double>(sum.read_bytes), "B")});
    table.add({"written", with_prefix(static_cast<double>(sum.written_bytes), "B")});
    table.add({"row hits", grouped(sum.row_hits)});
    table.add({"row misses", grouped(sum.row_misses)});
    table.add({"of them conflicts", grouped(sum.row_conflicts)});
    for (std::size_t i = 0; i < kNumDramCommands; ++i) {
        table.add({to_string(static_cast<DramCommand>(i)), grouped(sum.commands[i])});
    }
    table.add({"data bus busy, cycles", grouped(sum.busy_cycles)});
    table.add({"idle: refresh", grouped(sum.stall_refresh_cycles)});
    table.add({"idle: other timing", grouped(sum.stall_timing_cycles)});
    table.add({"queue full, cycles", grouped(sum.stall_full_cycles)});
    if (sum.reads > 0) {
        table.add({"read latency, mean cycles", fmt::format("{:.1f}", sum.latency.mean())});
        table.add({"of it queueing", fmt::format("{:.1f}", sum.mean_queueing())});
        table.add({"of it service", fmt::format("{:.1f}", sum.mean_service())});
        table.add({"half of the reads within", grouped(sum.latency.percentile(0.5))});
        table.add({"99 % of the reads within", grouped(sum.latency.percentile(0.99))});
        table.add({"all reads within", grouped(sum.latency.max())});
    }
    std::cout << table.text();
}

}  // namespace

int dram_command(const Arguments& args) {
    Syntax syntax;
    syntax.usage = "dram --memory FILE --trace FILE [options]";
    syntax.summary =
        "Replays a request trace on the DRAM alone: lines `cycle R|W 0xaddress`, one burst each, plain or gzip.";
    const auto file = [] { return po::value<std::string>()->value_name("FILE"); };
    syntax.options.add_options()("memory", file(), "memory file, e.g. configs/memories/ddr4-2400.ini (required)");
    syntax.options.add_options()("trace", file(), "request trace (required)");
    syntax.options.add_options()("mapping", po::value<std::string>()->value_name("A|B"), "short for --dram.mapping");
    syntax.options.add_options()("completions", file(), "write per request: line,accepted,done");
    syntax.options.add_options()("commands", file(), "write per command: cycle,cmd,rank,bg,bank,row,col,req");
    syntax.options.add_options()("json", "print JSON");
    for (const config::Key& key : config::design_keys()) {
        if (is_controller_key(key)) {
            syntax.options.add_options()(key.full_name().c_str(), po::value<std::string>(), key.meaning.c_str());
        }
    }
    const auto line = parse_command(args, syntax);
    if (!line) {
        return 0;
    }
    for (const char* option : {"memory", "trace"}) {
        if (!line->has(option)) {
            throw ConfigError(fmt::format("no --{} given; usage: contraflow {}", option, syntax.usage));
        }
    }
    const DramConfig config = read_memory(*line, line->values["memory"].as<std::string>());
    const auto trace_file = line->values["trace"].as<std::string>();
    const std::vector<TraceRequest> trace =
        read_request_trace(trace_file, static_cast<std::uint64_t>(config.capacity_bytes()), config.name);
    CsvFile completions(*line, "completions", {trace_file, config.file});
    CsvFile commands(*line, "commands", {trace_file, config.file, completions.path()});
    CommandObserver observer;
    if (commands.wanted()) {
        observer = [writer = CommandWriter(commands, config, trace)](const ReplayedCommand& command) {
            writer.write(command);
        };
    }
    const Replay replayed = replay(config, trace, observer);
    if (completions.wanted()) {
        write_completions(completions, trace, replayed);
    }
    completions.close();
    commands.close();
    line->has("json") ? print_json(config, replayed) : print_text(config, replayed);
    return 0;
}

}  // namespace contraflow::cli
