// contraflow export: the rows of a sweep's database.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cli/command_line.h"
#include "contraflow/error.h"
#include "sweep/database.h"
#include "sweep/numbers.h"

namespace contraflow::cli {

namespace {

namespace po = boost::program_options;
using sweep::Database;
using sweep::Row;

// Names of all numbers, in the order in which the points bring them.
std::vector<std::string> number_names(Database& database) {
    std::vector<std::string> names;
    std::unordered_set<std::string> known;
    database.read([&](const Row& row) {
        for (const auto& number : sweep::numbers_of(row.report)) {
            if (known.insert(number.first).second) {
                names.push_back(number.first);
            }
        }
    });
    return names;
}

void print_csv(Database& database, const std::vector<std::string>& columns) {
    const std::vector<std::string>& keys = database.identity().keys;
    std::vector<std::string> head{"point"};
    head.insert(head.end(), keys.begin(), keys.end());
    head.insert(head.end(), {"status", "reason"});
    head.insert(head.end(), columns.begin(), columns.end());
    std::cout << sweep::csv_line(head);
    database.read([&](const Row& row) {
        std::vector<std::string> fields{std::to_string(row.point)};
        const std::vector<std::string> values = sweep::key_values(row, keys);
        fields.insert(fields.end(), values.begin(), values.end());
        fields.insert(fields.end(), {row.status, row.reason});
        std::unordered_map<std::string, std::string> numbers;
        for (const auto& [name, value] : sweep::numbers_of(row.report)) {
            numbers.emplace(name, value.dump());
        }
        for (const std::string& column : columns) {
            const auto found = numbers.find(column);
            fields.push_back(found == numbers.end() ? "" : found->second);
        }
        std::cout << sweep::csv_line(fields);
    });
}

// The columns that were asked for; each has to be a number of some point.
std::vector<std::string> chosen_columns(const CommandLine& line, const std::vector<std::string>& names) {
    if (!line.has("column")) {
        return names;
    }
    const auto chosen = line.values["column"].as<std::vector<std::string>>();
    for (const std::string& column : chosen) {
        if (std::find(names.begin(), names.end(), column) == names.end()) {
            throw ConfigError("--column " + column + ": " + sweep::unknown_number_text(column, names));
        }
    }
    return chosen;
}

void print_json(Database& database) {
    const char* separator = "[\n";
    database.read([&](const Row& row) {
        nlohmann::ordered_json json;
        json["point"] = row.point;
        json["keys"] = nlohmann::json::parse(row.keys);
        json["status"] = row.status;
        const auto text = [&](const char* name, const std::string& value) {
            json[name] = value.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
        };
        const auto object = [&](const char* name, const std::string& value) {
            json[name] = value.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json::parse(value);
        };
        text("reason", row.reason);
        text("version", row.version);
        text("config_hash", row.config_hash);
        object("config", row.config);
        object("report", row.report);
        std::cout << separator << json.dump();
        separator = ",\n";
    });
    std::cout << (separator[0] == '[' ? "[]\n" : "\n]\n");
}

}  // namespace

int export_command(const Arguments& args) {
    Syntax syntax;
    syntax.usage = "export --db FILE [--csv | --json] [--column NAME ...]";
    syntax.summary =
        "Writes the rows of a sweep's database in the order of its points: as CSV (the default), one column per key "
        "and\nper number of the reports, or as JSON with configurations and reports.";
    syntax.options.add_options()("db", po::value<std::string>()->value_name("FILE")->required(), "the database");
    syntax.options.add_options()("csv", "write CSV");
    syntax.options.add_options()("json", "write JSON");
    syntax.options.add_options()("column", po::value<std::vector<std::string>>()->composing()->value_name("NAME"),
                                 "of the numbers, only this one in the CSV, e.g. cycles.total; may be repeated");
    const auto line = parse_command(args, syntax);
    if (!line) {
        return 0;
    }
    if (line->has("json") && (line->has("csv") || line->has("column"))) {
        throw ConfigError("--json: takes neither --csv nor --column");
    }
    Database database = Database::open(line->values["db"].as<std::string>());
    database.begin_reading();
    if (line->has("json")) {
        print_json(database);
    } else {
        print_csv(database, chosen_columns(*line, number_names(database)));
    }
    return 0;
}

}  // namespace contraflow::cli
