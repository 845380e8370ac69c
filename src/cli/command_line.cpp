#include "cli/command_line.h"

#include <algorithm>
#include <iostream>
#include <utility>

#include "config/key_table.h"
#include "config/nearest.h"
#include "contraflow/error.h"

namespace contraflow::cli {

namespace po = boost::program_options;

namespace {

constexpr int kStyle = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;

bool is_key(const std::string& name) {
    return config::find_key(config::design_keys(), name) != nullptr;
}

std::vector<std::string> option_names(const po::options_description& options, bool with_keys) {
    std::vector<std::string> names;
    for (const auto& option : options.options()) {
        names.push_back(option->long_name());
    }
    if (with_keys) {
        for (const config::Key& key : config::design_keys()) {
            names.push_back(key.full_name());
        }
    }
    return names;
}

// `given` as typed, e.g. "--steps=3" or "-x".
std::string unknown_option_text(const std::string& given, const po::options_description& options,
                                const Syntax& syntax) {
    const std::string option = given.substr(0, given.find('='));
    const std::string name = option.substr(std::min(option.find_first_not_of('-'), option.size()));
    if (name.find('.') != std::string::npos && syntax.takes_design) {
        return given + ": " + unknown_key_text(name);
    }
    const std::vector<std::string> names = option_names(options, syntax.takes_design);
    std::string meant = config::nearest(name, names);
    if (meant.empty() && !name.empty()) {  // cut short rather than mistyped
        const auto longer = std::find_if(names.begin(), names.end(), [&](const std::string& full) {
            return full.compare(0, name.size(), name) == 0;
        });
        meant = longer == names.end() ? "" : *longer;
    }
    const std::string command = syntax.usage.substr(0, syntax.usage.find(' '));
    return "unknown option " + option +
           (meant.empty() ? "; `contraflow " + command + " --help` lists the valid ones"
                          : "; did you mean --" + meant + "?");
}

void print_help(const Syntax& syntax, const po::options_description& options) {
    std::cout << "Usage: contraflow " << syntax.usage << "\n\n" << syntax.summary << "\n\n" << options;
    if (syntax.takes_design) {
        std::cout << "\nEvery configuration key can be given as --section.key=value and wins over FILE;\n"
                     "`contraflow keys` lists them.\n";
    }
}

}  // namespace

std::optional<CommandLine> parse_command(const Arguments& args, const Syntax& syntax) {
    po::options_description own;
    own.add(syntax.options);
    po::options_description common("Common options");
    if (syntax.takes_design) {
        common.add_options()("config,c", po::value<std::string>()->value_name("FILE"),
                             "design, an INI file (required)");
    }
    common.add_options()("help,h", "print this text");
    own.add(common);

    po::options_description keys;
    if (syntax.takes_design) {
        for (const config::Key& key : config::design_keys()) {
            keys.add_options()(key.full_name().c_str(), po::value<std::string>());
        }
    }
    po::options_description all;
    all.add(own).add(keys);

    CommandLine line;
    std::vector<std::pair<std::string, std::string>> overrides;
    std::vector<std::string> problems;
    try {
        const po::parsed_options parsed =
            po::command_line_parser(args).options(all).style(kStyle).allow_unregistered().run();
        po::parsed_options for_command(&own, parsed.m_options_prefix);
        for (const po::option& option : parsed.options) {
            if (option.unregistered) {
                problems.push_back(unknown_option_text(option.original_tokens.front(), own, syntax));
            } else if (option.position_key >= 0) {
                line.positionals.insert(line.positionals.end(), option.value.begin(), option.value.end());
            } else if (syntax.takes_design && is_key(option.string_key)) {
                overrides.emplace_back(option.string_key, option.value.front());
            } else {
                for_command.options.push_back(option);
            }
        }
        // Help is given whatever else is wrong.
        const auto is_help = [](const po::option& option) { return option.string_key == "help"; };
        if (std::any_of(for_command.options.begin(), for_command.options.end(), is_help)) {
            print_help(syntax, own);
            return std::nullopt;
        }
        if (!problems.empty()) {
            throw ConfigError(std::move(problems));
        }
        po::store(for_command, line.values);
        po::notify(line.values);
    } catch (const po::error& error) {
        throw ConfigError(error.what());
    }

    if (line.positionals.size() > syntax.max_positionals) {
        const std::string& surplus = line.positionals[syntax.max_positionals];
        throw ConfigError("unexpected argument " + surplus +
                          (syntax.takes_design && !line.has("config") ? "; did you mean -c " + surplus + "?"
                                                                      : "; usage: contraflow " + syntax.usage));
    }
    if (syntax.takes_design) {
        if (!line.has("config")) {
            throw ConfigError("no design given; expected -c FILE, e.g. -c configs/u50-2enc.ini");
        }
        line.design = load_config(line.values["config"].as<std::string>(), overrides);
    }
    return line;
}

}  // namespace contraflow::cli
