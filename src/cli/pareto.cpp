// contraflow pareto: the points of a sweep that no other point beats.
#include "sweep/pareto.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "contraflow/error.h"
#include "report/table.h"
#include "sweep/database.h"
#include "sweep/numbers.h"

namespace contraflow::cli {

namespace {

namespace po = boost::program_options;
using sweep::Row;

struct Objective {
    std::string name;
    double sign = 1;  // -1: larger is better
};

struct Candidate {
    std::int64_t point = 0;
    std::string keys;
    std::vector<std::string> values;      // of the swept keys
    std::vector<nlohmann::json> numbers;  // per objective
    std::vector<double> costs;
};

std::vector<Objective> read_objectives(const CommandLine& line) {
    std::vector<Objective> objectives;
    for (const char* option : {"min", "max"}) {
        if (line.has(option)) {
            for (const std::string& name : line.values[option].as<std::vector<std::string>>()) {
                objectives.push_back({name, option == std::string("min") ? 1.0 : -1.0});
            }
        }
    }
    if (objectives.empty()) {
        throw ConfigError("no objective given; expected --min NAME or --max NAME, e.g. --min cycles.total");
    }
    return objectives;
}

// The finished points that have all of the objectives' numbers.
class Candidates {
public:
    Candidates(sweep::Database& database, const std::vector<Objective>& objectives)
        : objectives_(objectives), seen_(objectives.size(), false) {
        database.read([&](const Row& row) { add(row, database.identity().keys); });
        for (std::size_t i = 0; i < objectives.size(); ++i) {
            if (finished_ > 0 && !seen_[i]) {
                throw ConfigError(objectives[i].name + ": " + sweep::unknown_number_text(objectives[i].name, names_));
            }
        }
    }

    [[nodiscard]] std::vector<Candidate> front() const {
        std::vector<std::vector<double>> costs;
        for (const Candidate& candidate : all_) {
            costs.push_back(candidate.costs);
        }
        std::vector<Candidate> best;
        for (const std::size_t i : sweep::pareto_front(costs)) {
            best.push_back(all_[i]);
        }
        std::stable_sort(best.begin(), best.end(),
                         [](const Candidate& a, const Candidate& b) { return a.costs < b.costs; });
        return best;
    }
    [[nodiscard]] std::size_t left_out() const { return finished_ - all_.size(); }

private:
    void add(const Row& row, const std::vector<std::string>& keys) {
        if (row.status != sweep::to_string(sweep::Status::Done)) {
            return;
        }
        ++finished_;
        Candidate candidate{row.point, row.keys, sweep::key_values(row, keys), {}, {}};
        for (std::size_t i = 0; i < objectives_.size(); ++i) {
            nlohmann::json number = sweep::number_of(row, objectives_[i].name);
            if (number.is_number()) {
                seen_[i] = true;
                candidate.costs.push_back(objectives_[i].sign * number.get<double>());
                candidate.numbers.push_back(std::move(number));
            }
        }
        if (candidate.costs.size() == objectives_.size()) {
            all_.push_back(std::move(candidate));
        } else if (names_.empty()) {
            for (auto& number : sweep::numbers_of(row.report)) {
                names_.push_back(std::move(number.first));
            }
        }
    }

    const std::vector<Objective>& objectives_;
    std::vector<bool> seen_;
    std::vector<Candidate> all_;
    std::size_t finished_ = 0;
    std::vector<std::string> names_;  // of a point that lacks an objective
};

std::vector<std::string> head_of(const std::vector<std::string>& keys, const std::vector<Objective>& objectives) {
    std::vector<std::string> head{"point"};
    head.insert(head.end(), keys.begin(), keys.end());
    for (const Objective& objective : objectives) {
        head.push_back(objective.name);
    }
    return head;
}

std::vector<std::string> row_of(const Candidate& candidate) {
    std::vector<std::string> row{std::to_string(candidate.point)};
    row.insert(row.end(), candidate.values.begin(), candidate.values.end());
    for (const nlohmann::json& number : candidate.numbers) {
        row.push_back(number.dump());
    }
    return row;
}

void print_json(const std::vector<Candidate>& front, const std::vector<Objective>& objectives) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const Candidate& candidate : front) {
        nlohmann::ordered_json entry;
        entry["point"] = candidate.point;
        entry["keys"] = nlohmann::json::parse(candidate.keys);
        for (std::size_t i = 0; i < objectives.size(); ++i) {
            entry["numbers"][objectives[i].name] = candidate.numbers[i];
        }
        json.push_back(std::move(entry));
    }
    std::cout << json.dump(2) << '\n';
}

}  // namespace

int pareto_command(const Arguments& args) {
    Syntax syntax;
    syntax.usage = "pareto --db FILE --min NAME [--min NAME ...] [--max NAME ...] [--csv | --json]";
    syntax.summary =
        "Prints the finished points of a sweep that no other beats: none is at least as good in every number and "
        "better\nin one. Points with equal numbers stay together. NAME is a number of the report, e.g. cycles.total, "
        "or a key.";
    const auto names = [] { return po::value<std::vector<std::string>>()->composing()->value_name("NAME"); };
    syntax.options.add_options()("db", po::value<std::string>()->value_name("FILE")->required(), "the database");
    syntax.options.add_options()("min", names(), "smaller is better; may be repeated");
    syntax.options.add_options()("max", names(), "larger is better; may be repeated");
    syntax.options.add_options()("csv", "print CSV");
    syntax.options.add_options()("json", "print JSON");
    const auto line = parse_command(args, syntax);
    if (!line) {
        return 0;
    }
    if (line->has("json") && line->has("csv")) {
        throw ConfigError("--csv and --json: expected one of them");
    }
    const std::vector<Objective> objectives = read_objectives(*line);
    sweep::Database database = sweep::Database::open(line->values["db"].as<std::string>());
    const Candidates candidates(database, objectives);
    const std::vector<Candidate> front = candidates.front();
    if (candidates.left_out() > 0) {
        std::cerr << fmt::format("contraflow: {} finished points lack one of the numbers and are left out\n",
                                 candidates.left_out());
    }
    std::vector<std::vector<std::string>> rows{head_of(database.identity().keys, objectives)};
    for (const Candidate& candidate : front) {
        rows.push_back(row_of(candidate));
    }
    if (line->has("json")) {
        print_json(front, objectives);
    } else if (line->has("csv")) {
        for (const std::vector<std::string>& row : rows) {
            std::cout << sweep::csv_line(row);
        }
    } else {
        TextTable table(rows.front());
        for (std::size_t i = 1; i < rows.size(); ++i) {
            table.add(rows[i]);
        }
        std::cout << table.text();
    }
    return 0;
}

}  // namespace contraflow::cli
