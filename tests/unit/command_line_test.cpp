// The parsing that the subcommands share: own options, -c FILE, configuration keys.
#include <catch2/catch.hpp>

#include "cli/command_line.h"
#include "contraflow/error.h"
#include "support/temporary_folder.h"

using namespace contraflow;
using cli::Arguments;
using cli::parse_command;
using cli::Syntax;

namespace po = boost::program_options;

namespace {

Syntax syntax() {
    Syntax result;
    result.usage = "run -c FILE [options]";
    result.summary = "Runs.";
    result.options.add_options()("steps", po::value<int>()->default_value(1), "steps");
    result.options.add_options()("json", "JSON");
    result.takes_design = true;
    return result;
}

class Design {
public:
    Design() : path_(folder_.write("design.ini", "[engine]\nrows = 4\n")) {}
    [[nodiscard]] Arguments with(const Arguments& more) const {
        Arguments args{"-c", path_};
        args.insert(args.end(), more.begin(), more.end());
        return args;
    }
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    test::TemporaryFolder folder_;
    std::string path_;
};

std::vector<std::string> problems(const Arguments& args, const Syntax& of = syntax()) {
    try {
        (void)parse_command(args, of);
    } catch (const ConfigError& error) {
        return error.lines();
    }
    return {};
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a subcommand gets its options and the design with overrides") {
    const Design design;
    const auto line = parse_command(
        design.with({"--steps", "3", "--engine.cols=6", "--json", "--train.lr", "1e-2", "--tt.rank=8"}), syntax());
    REQUIRE(line);
    CHECK(line->values["steps"].as<int>() == 3);
    CHECK(line->has("json"));
    CHECK(line->design.config.engine.rows == 4);
    CHECK(line->design.config.engine.cols == 6);
    CHECK(line->design.config.train.lr == 1e-2);
    CHECK(line->design.config.tt.rank == 8);
    CHECK(line->design.file == design.path());
    CHECK(line->positionals.empty());
}

TEST_CASE("options may stand before and after the design, and --config is -c") {
    const Design design;
    const auto line = parse_command({"--engine.rows", "2", "--config=" + design.path()}, syntax());
    REQUIRE(line);
    CHECK(line->design.config.engine.rows == 2);
    CHECK(line->values["steps"].as<int>() == 1);
}

TEST_CASE("unknown options and keys are all told, with the nearest valid one") {
    const Design design;
    CHECK(problems(design.with({"--step=3"})) == Lines{"unknown option --step; did you mean --steps?"});
    CHECK(problems(design.with({"--engine.row=3", "--jsn"})) ==
          Lines{"--engine.row=3: unknown key engine.row; did you mean engine.rows?",
                "unknown option --jsn; did you mean --json?"});
    CHECK(problems(design.with({"--engine.row", "3"})) ==
          Lines{"--engine.row: unknown key engine.row; did you mean engine.rows?"});
    CHECK(problems(design.with({"--xyz"})) ==
          Lines{"unknown option --xyz; `contraflow run --help` lists the valid ones"});
    CHECK(problems(design.with({"-x"})) == Lines{"unknown option -x; `contraflow run --help` lists the valid ones"});
    // No guessing: a prefix of an option is not the option.
    CHECK(problems(design.with({"--js"})) == Lines{"unknown option --js; did you mean --json?"});
}

TEST_CASE("bad values name the option") {
    const Design design;
    CHECK(problems(design.with({"--engine.rows=0"})) ==
          Lines{"--engine.rows=0: 0 is too small; expected 1 to 4096 (PEs)"});
    CHECK(problems(design.with({"--train.lr", "-1"})) ==
          Lines{"--train.lr=-1: -1 is too small; expected 0 to 1000000"});
    REQUIRE(problems(design.with({"--steps", "three"})).size() == 1);
    CHECK(problems(design.with({"--steps", "three"})).front().find("'three'") != std::string::npos);
    CHECK(problems(design.with({"--steps", "three"})).front().find("--steps") != std::string::npos);
    CHECK(problems(design.with({"--steps", "1", "--steps", "2"})).front().find("--steps") != std::string::npos);
    CHECK(problems(design.with({"--steps"})).front().find("--steps") != std::string::npos);
    CHECK(problems(design.with({"--engine.rows"})).front().find("--engine.rows") != std::string::npos);
    CHECK(problems(design.with({"--engine.rows="})).front().find("--engine.rows") != std::string::npos);
}

TEST_CASE("a missing design and surplus arguments are refused") {
    const Design design;
    CHECK(problems({}) == Lines{"no design given; expected -c FILE, e.g. -c configs/u50-2enc.ini"});
    CHECK(problems({"x.ini"}) == Lines{"unexpected argument x.ini; did you mean -c x.ini?"});
    CHECK(problems(design.with({"x.ini"})) ==
          Lines{"unexpected argument x.ini; usage: contraflow run -c FILE [options]"});
    CHECK(problems({"-c", "/nowhere/x.ini"}) == Lines{"/nowhere/x.ini: no such file"});
}

TEST_CASE("positional arguments are kept where the command takes them") {
    const Design design;
    Syntax of = syntax();
    of.max_positionals = 2;
    const auto line = parse_command(design.with({"a.safetensors", "--json", "b.safetensors"}), of);
    REQUIRE(line);
    CHECK(line->positionals == Lines{"a.safetensors", "b.safetensors"});
    CHECK(problems(design.with({"a", "b", "c"}), of) ==
          Lines{"unexpected argument c; usage: contraflow run -c FILE [options]"});
}

TEST_CASE("a command without design takes no configuration keys") {
    Syntax of;
    of.usage = "keys";
    CHECK(problems({"--engine.rows=3"}, of) ==
          Lines{"unknown option --engine.rows; `contraflow keys --help` lists the valid ones"});
}
