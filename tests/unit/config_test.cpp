// Configuration: the key table, INI files, overrides, error texts, shapes, and the effective configuration.
#include <catch2/catch.hpp>

#include "config/effective.h"
#include "config/key_docs.h"
#include "config/key_table.h"
#include "config/nearest.h"
#include "config/project_files.h"
#include "contraflow/error.h"
#include "contraflow/load_config.h"
#include "support/temporary_folder.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

using namespace contraflow;

namespace {

using Overrides = std::vector<std::pair<std::string, std::string>>;
using Lines = std::vector<std::string>;

// The lines of the ConfigError that loading `text` as design.ini throws, each without the test's folder.
Lines problems(const std::string& text, const Overrides& overrides = {}) {
    const test::TemporaryFolder folder;
    const std::string path = folder.write("design.ini", text);
    try {
        (void)load_config(path, overrides);
    } catch (const ConfigError& error) {
        Lines lines = error.lines();
        const std::string prefix = folder.path().string() + "/";
        for (std::string& line : lines) {
            for (std::size_t at = line.find(prefix); at != std::string::npos; at = line.find(prefix)) {
                line.erase(at, prefix.size());
            }
        }
        return lines;
    }
    return {};
}

Config loaded(const std::string& text, const Overrides& overrides = {}) {
    const test::TemporaryFolder folder;
    return load_config(folder.write("design.ini", text), overrides).config;
}

// The only problem of a value given for `key`, on line 2 of design.ini.
std::string problem_of(const std::string& key, const std::string& value) {
    const std::size_t dot = key.find('.');
    const Lines lines = problems("[" + key.substr(0, dot) + "]\n" + key.substr(dot + 1) + " = " + value + "\n");
    return lines.size() == 1 ? lines.front() : std::to_string(lines.size()) + " problems";
}

std::string source_file(const std::string& name) {
    return std::string(CONTRAFLOW_SOURCE_DIR) + "/" + name;
}

std::string content_of(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
}

const std::string kValid = "[network]\nencoders = 2\n";

}  // namespace

TEST_CASE("defaults are those of the structs and make a valid configuration") {
    const Config config = load_config("").config;
    CHECK(config.network.encoders == NetworkConfig{}.encoders);
    CHECK(config.engine.rows == EngineConfig{}.rows);
    CHECK(config.tt.out_modes == std::vector<int>{12, 8, 8});
    CHECK(config.device.bram36 == 1344);
    CHECK(config.device.available_bram36 == 1163);
    CHECK(config.device.available_urams == 636);
    CHECK(config.dram.bus_bits * config.dram.clock_hz * 2 / 8 == 14'375'000'000);
    CHECK(config.dram.channels == 1);
}

TEST_CASE("every key of the table reads back its own default") {
    std::set<std::string> names;
    for (const config::Key& key : config::design_keys()) {
        CAPTURE(key.full_name());
        Config config;
        CHECK_NOTHROW(key.set(config, key.default_text));
        CHECK(key.text(config) == key.default_text);
        CHECK_FALSE(key.meaning.empty());
        CHECK_FALSE(key.range.empty());
        CHECK(names.insert(key.full_name()).second);
    }
}

TEST_CASE("a key's binding changes exactly its own value") {
    const auto other_value = [](const config::Key& key) -> std::string {
        if (key.type == "switch") {
            return key.default_text == "on" ? "off" : "on";
        }
        if (key.type == "word") {
            const std::string last = key.range.substr(key.range.rfind(' ') + 1);
            return last != key.default_text ? last : key.range.substr(0, key.range.find_first_of(", "));
        }
        if (key.type == "list") {
            return "2,3,5";
        }
        if (key.type == "whole number") {
            if (key.name == "ports") {
                return "1";
            }
            return key.default_text == "4" ? "8" : (key.name == "fabric_hz" ? "2000000" : "4");
        }
        if (key.type == "number") {
            return key.default_text == "0.5" ? "0.25" : "0.5";
        }
        if (key.type == "rules") {
            return key.name == "mapping" ? "*.fwd.T:cols/1x4x2" : "*.core.*:bram";
        }
        return "other";
    };
    for (const config::Key& key : config::design_keys()) {
        CAPTURE(key.full_name());
        std::string value = other_value(key);
        if (key.name == "beat_bytes") {
            value = "64";
        }
        if (key.name == "policy") {
            value = "serial";
        }
        if (key.name == "interleave_bytes") {
            value = "1024";
        }
        if (key.full_name() == "dram.mapping") {
            value = "A";
        }
        Config config;
        REQUIRE_NOTHROW(key.set(config, value));
        for (const config::Key& other : config::design_keys()) {
            CAPTURE(other.full_name());
            CHECK((other.text(config) == other.default_text) == (other.full_name() != key.full_name()));
        }
    }
}

TEST_CASE("docs/keys.md is what the key table generates") {
    CHECK(content_of(source_file("docs/keys.md")) == keys_markdown());
}

TEST_CASE("the keys that scripts rely on exist and are listed") {
    const std::string text = keys_text();
    for (const char* key :
         {"network.encoders",   "network.flow",         "network.seq_len",     "network.vocab",     "network.d_model",
          "network.d_ff",       "network.heads",        "network.intents",     "network.slots",     "tt.rank",
          "tt.ranks",           "tt.out_modes",         "tt.in_modes",         "tt.ffn_modes",      "ttm.rank",
          "ttm.vocab_modes",    "ttm.hidden_modes",     "engine.count",        "engine.rows",       "engine.cols",
          "clock.fabric_hz",    "device.file",          "dram.file",           "dram.channels",     "vector.count",
          "vector.lanes",       "vector.special_lanes", "engine.partial_sums", "memory.parameters", "memory.gradients",
          "memory.activations", "memory.scratch",       "memory.layout",       "schedule.policy",   "schedule.split",
          "train.lr",           "train.seed",           "data.path",           "data.split",        "data.first",
          "data.shuffle"}) {
        CAPTURE(key);
        CHECK(config::find_key(config::design_keys(), key) != nullptr);
        CHECK(text.find(std::string("\n") + key + " ") != std::string::npos);
    }
}

TEST_CASE("sections, comments, blanks and values are read") {
    const Config config = loaded(
        "# a comment\n"
        "; another\n"
        "\n"
        "[ network ]\n"
        "  encoders=4   # four\n"
        "flow\t=\tmm ; dense\n"
        "[tt]\n"
        "out_modes = 8, 12 ,8\n"
        "[schedule]\n"
        "split = off\n"
        "policy = serial\n"
        "[train]\n"
        "lr = 1e-3\n"
        "seed = 18446744073709551615\n");
    CHECK(config.network.encoders == 4);
    CHECK(config.network.flow == Flow::Mm);
    CHECK(config.tt.out_modes == std::vector<int>{8, 12, 8});
    CHECK_FALSE(config.schedule_split);
    CHECK(config.schedule_policy == SchedulePolicy::Serial);
    CHECK(config.train.lr == 1e-3);
    CHECK(config.train.seed == 18446744073709551615ULL);
}

TEST_CASE("switches take on, off, true, false, 1 and 0") {
    for (const char* word : {"on", "true", "1"}) {
        CHECK(loaded("[data]\nshuffle = " + std::string(word) + "\n").data.shuffle);
    }
    for (const char* word : {"off", "false", "0"}) {
        CHECK_FALSE(loaded("[schedule]\nsplit = " + std::string(word) + "\n").schedule_split);
    }
    CHECK(problem_of("data.shuffle", "yes") ==
          "design.ini:2: data.shuffle: \"yes\" is neither on nor off; expected on or off");
}

TEST_CASE("Windows line ends, a byte-order mark, long lines and a missing last newline just work") {
    const Config config =
        loaded("\xEF\xBB\xBF[network]\r\nencoders = 6\r\n# " + std::string(100'000, 'x') + "\r\n[engine]\r\nrows = 4");
    CHECK(config.network.encoders == 6);
    CHECK(config.engine.rows == 4);
    CHECK(problems("[engine]\r\nrows = 0\r\n") ==
          Lines{"design.ini:2: engine.rows: 0 is too small; expected 1 to 4096 (PEs)"});
}

TEST_CASE("a comment may hold UTF-8 text") {
    CHECK(loaded("# \xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\n" + kValid).network.encoders == 2);
}

TEST_CASE("a command-line override wins over the file, the last of several counts") {
    CHECK(loaded("[engine]\nrows = 4\n", {{"engine.rows", "16"}}).engine.rows == 16);
    CHECK(loaded("[engine]\nrows = 4\n", {{"engine.rows", "16"}, {"engine.rows", "2"}}).engine.rows == 2);
}

TEST_CASE("tt.rank given later overrides tt.ranks, tt.ranks given later stands") {
    CHECK(loaded("[tt]\nranks = 1,2,3,4,5\nrank = 7\n").tt_model().ranks ==
          std::vector<std::int64_t>{1, 7, 7, 7, 7, 7, 1});
    CHECK(loaded("[tt]\nrank = 7\nranks = 1,2,3,4,5\n").tt_model().ranks ==
          std::vector<std::int64_t>{1, 1, 2, 3, 4, 5, 1});
    CHECK(loaded("[tt]\nranks = 1,2,3,4,5\n", {{"tt.rank", "9"}}).tt_model().ranks ==
          std::vector<std::int64_t>{1, 9, 9, 9, 9, 9, 1});
}

TEST_CASE("a value that is no whole number is refused with file, line, key and what would be right") {
    CHECK(problem_of("engine.rows", "abc") ==
          "design.ini:2: engine.rows: \"abc\" is not a whole number; expected 1 to 4096 (PEs)");
    CHECK(problem_of("engine.rows", "8x") ==
          "design.ini:2: engine.rows: \"8x\" has text after the number; expected 1 to 4096 (PEs)");
    CHECK(problem_of("engine.rows", "8 x") ==
          "design.ini:2: engine.rows: \"8 x\" has text after the number; expected 1 to 4096 (PEs)");
    CHECK(problem_of("engine.rows", "8.5") ==
          "design.ini:2: engine.rows: \"8.5\" is not a whole number; expected 1 to 4096 (PEs)");
    CHECK(problem_of("engine.rows", "0x8") ==
          "design.ini:2: engine.rows: \"0x8\" has text after the number; expected 1 to 4096 (PEs)");
    CHECK(problem_of("engine.rows", "") == "design.ini:2: engine.rows: has no value; expected 1 to 4096 (PEs)");
}

TEST_CASE("zero, negative, too large and overflowing sizes are refused") {
    CHECK(problem_of("engine.count", "0") == "design.ini:2: engine.count: 0 is too small; expected 1 to 256 (engines)");
    CHECK(problem_of("engine.cols", "-3") == "design.ini:2: engine.cols: -3 is too small; expected 1 to 4096 (PEs)");
    CHECK(problem_of("engine.cols", "4097") ==
          "design.ini:2: engine.cols: 4097 is too large; expected 1 to 4096 (PEs)");
    CHECK(problem_of("engine.cols", "4294967297") ==
          "design.ini:2: engine.cols: 4294967297 is too large; expected 1 to 4096 (PEs)");
    CHECK(problem_of("engine.cols", "99999999999999999999999") ==
          "design.ini:2: engine.cols: \"99999999999999999999999\" is too large; expected 1 to 4096 (PEs)");
    CHECK(problem_of("train.seed", "18446744073709551616") ==
          "design.ini:2: train.seed: \"18446744073709551616\" is too large; expected 0 to 18446744073709551615");
    CHECK(problem_of("train.seed", "-1") ==
          "design.ini:2: train.seed: \"-1\" is too small; expected 0 to 18446744073709551615");
    CHECK(problem_of("tt.rank", "0") == "design.ini:2: tt.rank: 0 is too small; expected 1 to 4096");
    CHECK(problem_of("memory.ports", "3") == "design.ini:2: memory.ports: 3 is too large; expected 1 to 2 (ports)");
    CHECK(problem_of("dma.beat_bytes", "24") ==
          "design.ini:2: dma.beat_bytes: 24 is not a power of two; expected a power of two, 4 to 128 (bytes)");
}

TEST_CASE("numbers must be finite and in range") {
    CHECK(problem_of("train.lr", "nan") ==
          "design.ini:2: train.lr: \"nan\" is not a finite number; expected 0 to 1000000");
    CHECK(problem_of("train.lr", "inf") ==
          "design.ini:2: train.lr: \"inf\" is not a finite number; expected 0 to 1000000");
    CHECK(problem_of("train.lr", "-0.1") == "design.ini:2: train.lr: -0.1 is too small; expected 0 to 1000000");
    CHECK(problem_of("train.lr", "1e999") ==
          "design.ini:2: train.lr: \"1e999\" does not fit a number; expected 0 to 1000000");
    CHECK(problem_of("train.lr", "0.1 per step") ==
          "design.ini:2: train.lr: \"0.1 per step\" has text after the number; expected 0 to 1000000");
    CHECK(problem_of("train.lr", "0,1") ==
          "design.ini:2: train.lr: \"0,1\" has text after the number; expected 0 to 1000000");
}

TEST_CASE("a word outside the list is answered with the list") {
    CHECK(problem_of("network.flow", "bbt") ==
          "design.ini:2: network.flow: \"bbt\" is unknown; expected btt, tt or mm");
    CHECK(problem_of("memory.gradients", "ddr") ==
          "design.ini:2: memory.gradients: \"ddr\" is unknown; expected auto, bram, uram, lutram or dram");
}

TEST_CASE("lists refuse empty places, bad elements and wrong lengths") {
    const std::string expected = "; expected 1 to 8 whole numbers of 1 to 65536, comma-separated";
    CHECK(problem_of("tt.out_modes", "12,,8") == "design.ini:2: tt.out_modes: \"12,,8\" has an empty place" + expected);
    CHECK(problem_of("tt.out_modes", "12,8,") == "design.ini:2: tt.out_modes: \"12,8,\" has an empty place" + expected);
    CHECK(problem_of("tt.out_modes", "12 8 8") ==
          "design.ini:2: tt.out_modes: \"12 8 8\" has text after the number" + expected);
    CHECK(problem_of("tt.out_modes", "768,0") == "design.ini:2: tt.out_modes: 0 is too small" + expected);
    CHECK(problem_of("tt.out_modes", "3,2,2,2,2,2,2,2,2") == "design.ini:2: tt.out_modes: has 9 numbers" + expected);
    CHECK(problem_of("tt.out_modes", "") == "design.ini:2: tt.out_modes: has 0 numbers" + expected);
    CHECK(problem_of("ttm.vocab_modes", "1000") ==
          "design.ini:2: ttm.vocab_modes: has 1 numbers; expected 2 to 8 whole numbers of 1 to 65536, comma-separated");
}

TEST_CASE("an unknown key is answered with the nearest one") {
    CHECK(problem_of("engine.row", "8") == "design.ini:2: unknown key engine.row; did you mean engine.rows?");
    CHECK(problem_of("network.encoder_blocks", "2") ==
          "design.ini:2: unknown key network.encoder_blocks; `contraflow keys` lists the valid ones");
    CHECK(problem_of("engine.lanes", "8") == "design.ini:2: unknown key engine.lanes; did you mean vector.lanes?");
    CHECK(problem_of("network.zebra", "8") ==
          "design.ini:2: unknown key network.zebra; `contraflow keys` lists the valid ones");
    CHECK(problems("rows = 8\n") == Lines{"design.ini:1: unknown key rows; did you mean engine.rows?"});
    CHECK(problems("engine.rows = 0\n") ==
          Lines{"design.ini:1: engine.rows: 0 is too small; expected 1 to 4096 (PEs)"});
    CHECK(problems(kValid, {{"engine.row", "8"}}) ==
          Lines{"--engine.row=8: unknown key engine.row; did you mean engine.rows?"});
}

TEST_CASE("an unknown section is told once, with the nearest one") {
    CHECK(problems("[engin]\nrows = 8\ncols = 8\n") ==
          Lines{"design.ini:1: unknown section [engin]; did you mean [engine]?"});
    CHECK(problems("[xyz]\n").front().find("design.ini:1: unknown section [xyz]; expected one of [network], [tt], ") ==
          0);
}

TEST_CASE("a doubled key names both lines") {
    CHECK(problems("[engine]\nrows = 8\n\n[vector]\nlanes = 8\n[engine]\nrows = 4\n") ==
          Lines{"design.ini:7: engine.rows is given twice, first in line 2"});
}

TEST_CASE("a line that is no assignment is refused") {
    CHECK(problems("[engine]\nrows 8\n= 3\n[vector\n") ==
          Lines{"design.ini:2: \"rows 8\" is no assignment; expected key = value",
                "design.ini:3: \"= 3\" is no assignment; expected key = value",
                "design.ini:4: [vector has no closing bracket; expected [section]"});
}

TEST_CASE("a file that cannot be a configuration is refused for its reason") {
    const test::TemporaryFolder folder;
    const auto problem = [](const std::string& path) -> std::string {
        try {
            (void)load_config(path);
        } catch (const ConfigError& error) {
            return error.lines().size() == 1 ? error.lines().front() : "several problems";
        }
        return "none";
    };
    const std::string missing = folder.file("missing.ini");
    CHECK(problem(missing) == missing + ": no such file");
    CHECK(problem(folder.path().string()) == folder.path().string() + ": is a directory; expected an INI file");
    const std::string empty = folder.write("empty.ini", "");
    CHECK(problem(empty) == empty + ": is empty; expected an INI file");
    const std::string only_mark = folder.write("mark.ini", "\xEF\xBB\xBF");
    CHECK(problem(only_mark) == only_mark + ": is empty; expected an INI file");
    const std::string nul = folder.write("nul.ini", kValid + std::string(1, '\0'));
    CHECK(problem(nul) == nul + ":3: holds a NUL byte; expected a text file");
    const std::string latin1 = folder.write("latin1.ini", "[network]\n# gr\xFC\xDF\n");
    CHECK(problem(latin1) == latin1 + ":2: is not UTF-8; expected a text file");
    const std::string cut = folder.write("cut.ini", "[network]\n# \xE2\x82");
    CHECK(problem(cut) == cut + ":2: is not UTF-8; expected a text file");
    const std::string huge = folder.write("huge.ini", std::string((1U << 20U) + 1, '#'));
    CHECK(problem(huge) == huge + ": is larger than 1048576 bytes; expected an INI file");
}

TEST_CASE("all problems of file and command line are told at once") {
    const Lines lines = problems("[engine]\nrows = 0\ncol = 3\n[network]\nflow = x\n", {{"vector.lanes", "none"}});
    REQUIRE(lines.size() == 4);
    CHECK(lines[0] == "design.ini:3: unknown key engine.col; did you mean engine.cols?");
    CHECK(lines[1] == "design.ini:2: engine.rows: 0 is too small; expected 1 to 4096 (PEs)");
    CHECK(lines[2] == "design.ini:5: network.flow: \"x\" is unknown; expected btt, tt or mm");
    CHECK(lines[3] == "--vector.lanes=none: \"none\" is not a whole number; expected 1 to 4096 (lanes)");
}

TEST_CASE("modes must multiply to the widths they stand for, all conflicts at once") {
    CHECK(
        problems("[network]\nd_model = 770\nvocab = 999\nheads = 11\n") ==
        Lines{"design.ini:2: tt.out_modes: 12 x 8 x 8 = 768 is not network.d_model = 770; expected modes whose product "
              "is 770",
              "design.ini:2: tt.in_modes: 8 x 8 x 12 = 768 is not network.d_model = 770; expected modes whose product "
              "is 770",
              "design.ini:2: tt.ffn_modes: is missing, and network.d_ff = 768 differs from network.d_model = 770; "
              "expected modes whose product is 768",
              "design.ini:3: ttm.vocab_modes: 10 x 10 x 10 = 1000 is not network.vocab = 999; expected modes whose "
              "product is 999",
              "design.ini:2: ttm.hidden_modes: 12 x 8 x 8 = 768 is not network.d_model = 770; expected modes whose "
              "product is 770"});
    CHECK(problem_of("tt.out_modes", "12,8,7") ==
          "design.ini:2: tt.out_modes: 12 x 8 x 7 = 672 is not network.d_model = 768; expected modes whose product is "
          "768");
    CHECK(problem_of("tt.in_modes", "65536,65536,65536,65536,3") != "0 problems");
}

TEST_CASE("heads must divide the width") {
    CHECK(problem_of("network.heads", "7") ==
          "design.ini:2: network.heads: 7 heads do not divide network.d_model = 768; expected a divisor of it");
    CHECK(problems(kValid, {{"network.heads", "7"}}) ==
          Lines{"--network.heads=7: 7 heads do not divide network.d_model = 768; expected a divisor of it"});
}

TEST_CASE("there is one rank per bond") {
    CHECK(problem_of("tt.ranks", "12,12,12,12") ==
          "design.ini:2: tt.ranks: has 4 ranks; expected 5, one per bond of 3 output and 3 input cores");
    CHECK(problem_of("tt.ranks", "12,12,0,12,12") ==
          "design.ini:2: tt.ranks: 0 is too small; expected 0 to 15 whole numbers of 1 to 4096, comma-separated");
    CHECK(
        problems("[network]\nd_ff = 3072\n[tt]\nffn_modes = 48,64\nranks = 1,2,3,4,5\n") ==
        Lines{
            "design.ini:4: tt.ffn_modes: has 2 modes, so that the feed-forward linears have other bonds than tt.ranks; "
            "expected as many as tt.out_modes and tt.in_modes (3 and 3), or tt.rank instead of tt.ranks"});
}

TEST_CASE("a feed-forward width of its own needs its modes") {
    CHECK(
        problem_of("network.d_ff", "3072") ==
        "design.ini:2: tt.ffn_modes: is missing, and network.d_ff = 3072 differs from network.d_model = 768; expected "
        "modes whose product is 3072");
    CHECK(
        problems("[network]\nd_ff = 3072\n[tt]\nffn_modes = 12,16,8\n") ==
        Lines{"design.ini:4: tt.ffn_modes: 12 x 16 x 8 = 1536 is not network.d_ff = 3072; expected modes whose product "
              "is 3072"});
}

TEST_CASE("the embedding table has as many hidden modes as vocabulary modes") {
    CHECK(problem_of("ttm.hidden_modes", "32,24") ==
          "design.ini:2: ttm.hidden_modes: has 2 modes and ttm.vocab_modes 3; expected as many, one of each per core");
}

TEST_CASE("tensor-train keys are not looked at under the dense flow") {
    CHECK(problems("[network]\nflow = mm\nd_model = 770\nheads = 10\nd_ff = 100\nvocab = 999\n").empty());
}

TEST_CASE("machine limits that tie keys together are checked") {
    CHECK(
        problems("[dma]\nburst_beats = 256\nbeat_bytes = 64\n") ==
        Lines{
            "design.ini:2: dma.burst_beats: 256 beats of 64 bytes are 16384 bytes; expected at most 4096, the boundary "
            "an AXI burst may not cross"});
    CHECK(problems("[engine]\ncount = 256\nrows = 4096\ncols = 4096\n") ==
          Lines{"design.ini:2: engine.count: 256 x 4096 x 4096 PEs are 4294967296; expected at most 1048576 in all"});
}

TEST_CASE("a network that would exhaust the host is refused") {
    const Lines lines = problems("[network]\nseq_len = 4096\nheads = 768\nencoders = 64\n");
    REQUIRE(lines.size() == 1);
    CHECK(lines.front().find("design.ini:2: network.seq_len: the network's tensors need about ") == 0);
    // The key behind the largest part is named, and cores count with their ranks.
    CHECK(problems("[tt]\nrank = 4096\n").front().find("design.ini:2: tt.rank: the network's tensors need about ") ==
          0);
}

TEST_CASE("a good override does not hide a bad value in the file") {
    CHECK(problems("[engine]\nrows = x\n", {{"engine.rows", "8"}}) ==
          Lines{"design.ini:2: engine.rows: \"x\" is not a whole number; expected 1 to 4096 (PEs)"});
}

TEST_CASE("shapes of the linears follow modes and ranks, and fc2 reads the feed-forward modes reversed") {
    const Config config = loaded("[network]\nd_ff = 3072\n[tt]\nffn_modes = 12,16,16\nrank = 10\n");
    CHECK(config.tt_model().out_modes == std::vector<std::int64_t>{12, 8, 8});
    CHECK(config.tt_fc1().out_modes == std::vector<std::int64_t>{12, 16, 16});
    CHECK(config.tt_fc1().in_modes == std::vector<std::int64_t>{8, 8, 12});
    CHECK(config.tt_fc2().out_modes == std::vector<std::int64_t>{12, 8, 8});
    CHECK(config.tt_fc2().in_modes == std::vector<std::int64_t>{16, 16, 12});
    CHECK(config.tt_fc2().ranks == std::vector<std::int64_t>{1, 10, 10, 10, 10, 10, 1});
    CHECK(config.ttm_table().ranks == std::vector<std::int64_t>{1, 30, 30, 1});
    const Config square = loaded(kValid);
    CHECK(square.tt_fc1().out_modes == square.tt_model().out_modes);
    CHECK(square.tt_fc2().in_modes == square.tt_model().in_modes);
}

TEST_CASE("a device beside the design is found before the project's, and brings its memory") {
    const test::TemporaryFolder folder;
    const std::string u250 = content_of(source_file("configs/devices/u250.ini"));
    folder.write("devices/u50.ini", u250);
    const LoadedConfig loaded = load_config(folder.write("design.ini", "[device]\nfile = devices/u50.ini\n"));
    CHECK(loaded.config.device.luts == 1'728'000);
    CHECK(loaded.config.dram.clock_hz == 1'200'000'000);
    CHECK(loaded.config.dram.burst_length == 8);
}

TEST_CASE("dram.file overrides the memory of the device") {
    const Config config = loaded("[dram]\nfile = memories/ddr3-1600.ini\nchannels = 2\n");
    CHECK(config.dram.clock_hz == 800'000'000);
    CHECK(config.dram.channels == 2);
    CHECK(config.device.luts == 871'680);
}

TEST_CASE("further overrides win over a design's own, and its files are not read again") {
    const test::TemporaryFolder folder;
    const std::string file = folder.write("design.ini", "[device]\nfile = d.ini\n[tt]\nrank = 6\n");
    const std::string u250 = content_of(source_file("configs/devices/u250.ini"));
    folder.write("d.ini", u250);
    const LoadedConfig design = load_config(file, {{"engine.rows", "5"}, {"engine.cols", "7"}});
    folder.write("design.ini", "no assignment\n");
    folder.write("d.ini", "");
    const LoadedConfig further = with_overrides(design, {{"engine.rows", "9"}});
    CHECK(further.config.tt.rank == 6);
    CHECK(further.config.engine.rows == 9);
    CHECK(further.config.engine.cols == 7);
    CHECK(further.config.device.luts == 1'728'000);
    CHECK(further.prefix("engine.rows") == "--engine.rows=9: ");
    CHECK_THROWS_AS(with_overrides(design, {{"device.file", file}}), ConfigError);
    CHECK_THROWS_AS(load_config(file), ConfigError);
}

TEST_CASE("a device or memory that is not there is answered with the ones that are") {
    CHECK(
        problem_of("device.file", "devices/u51.ini") ==
        "design.ini:2: device.file: no file \"devices/u51.ini\" beside the design or in the project's configs; "
        "expected "
        "a path or one of devices/kv260.ini, devices/u250.ini, devices/u280.ini, devices/u50.ini, devices/zcu102.ini");
    CHECK(problems(kValid, {{"dram.file", "hbm"}})
              .front()
              .find("--dram.file=hbm: no file \"hbm\" in the working directory or in the project's configs; expected a "
                    "path or "
                    "one of memories/ddr3-1600.ini, ") == 0);
}

TEST_CASE("problems in a device file name the device file") {
    const test::TemporaryFolder folder;
    const auto lines_of = [&](const std::string& device) {
        folder.write("d.ini", device);
        try {
            (void)load_config(folder.write("design.ini", "[device]\nfile = d.ini\n"));
        } catch (const ConfigError& error) {
            return error.lines();
        }
        return Lines{};
    };
    const std::string u50 = content_of(source_file("configs/devices/u50.ini"));
    const auto changed = [&](const std::string& from, const std::string& to) {
        std::string text = u50;
        return text.replace(text.find(from), from.size(), to);
    };
    const std::string at = folder.file("d.ini");
    CHECK(lines_of(changed("luts = 871680", "lut = 871680")) ==
          Lines{at + ":7: unknown key device.lut; did you mean device.luts?"});
    CHECK(lines_of(changed("urams = 640 ", "#")) ==
          Lines{at + ": device.urams: is missing; expected 0 to 100000000 (blocks)"});
    CHECK(lines_of(changed("available_luts = 743898", "available_luts = 871681")) ==
          Lines{at + ":12: device.available_luts: 871681 is more than the chip has; expected at most luts = 871680"});
    CHECK(lines_of(changed("memories/hbm2-u50.ini", "memories/hbm9.ini"))
              .front()
              .find(at + ": device.memory: no file \"memories/hbm9.ini\" beside the device") == 0);
    CHECK(lines_of("").front() == at + ": is empty; expected an INI file");
}

TEST_CASE("problems in a memory file name the memory file") {
    const test::TemporaryFolder folder;
    std::string text = content_of(source_file("configs/memories/ddr4-2400.ini"));
    text.replace(text.find("nCCD_L = 6"), 10, "nCCD_L = 3");
    text.replace(text.find("nREFI = 9360"), 12, "nREFI = 400");
    const std::string memory = folder.write("m.ini", text);
    try {
        (void)load_config(folder.write("design.ini", "[dram]\nfile = m.ini\n"));
        FAIL("accepted");
    } catch (const ConfigError& error) {
        CHECK(error.lines() ==
              Lines{memory + ":28: dram.nCCD_L: 3 is shorter than nCCD_S = 4; expected at least as much",
                    memory + ":41: dram.nREFI: 400 leaves no time for accesses between refreshes; expected more than "
                             "nRPab + nRFC + nRCD + the longest recovery = 497"});
    }
}

TEST_CASE("a data set is looked up beside the design, then in the project") {
    const test::TemporaryFolder folder;
    std::filesystem::create_directories(folder.path() / "set");
    const std::string design = folder.write("design.ini", "[data]\npath = set\n");
    CHECK(load_config(design).config.data.path == folder.file("set"));
    // One that exists nowhere is left to the reader of the data, with the place it was named at.
    const LoadedConfig missing = load_config(folder.write("design.ini", "[data]\npath = nowhere\n"));
    CHECK(missing.config.data.path == folder.file("nowhere"));
    CHECK(missing.prefix("data.path") == design + ":2: data.path: ");
    CHECK(missing.prefix("data.split") == design + ": data.split: ");
}

TEST_CASE("all designs, devices and memories of the project load") {
    int designs = 0;
    for (const auto& entry : std::filesystem::directory_iterator(source_file("configs"))) {
        if (entry.path().extension() == ".ini") {
            CAPTURE(entry.path());
            CHECK_NOTHROW(load_config(entry.path().string()));
            ++designs;
        }
    }
    CHECK(designs >= 4);
    CHECK(config::list_config_files("devices").size() >= 5);
    for (const std::string& device : config::list_config_files("devices")) {
        CAPTURE(device);
        CHECK_NOTHROW(load_device(device));
    }
    CHECK(config::list_config_files("memories").size() >= 5);
    for (const std::string& memory : config::list_config_files("memories")) {
        CAPTURE(memory);
        CHECK_NOTHROW(load_memory(memory));
    }
}

TEST_CASE("the start design equals the defaults") {
    const Config design = load_config(source_file("configs/u50-2enc.ini")).config;
    CHECK(config_json(design) == config_json(load_config("").config));
}

TEST_CASE("the effective configuration reads back to itself") {
    const test::TemporaryFolder folder;
    for (const Overrides& overrides :
         {Overrides{},
          Overrides{{"tt.ranks", "1,2,3,4,5"}, {"train.lr", "0.1"}, {"dram.channels", "3"}, {"schedule.split", "off"}},
          Overrides{{"device.file", "devices/zcu102.ini"}, {"network.d_ff", "3072"}, {"tt.ffn_modes", "12,16,16"}}}) {
        const Config config = load_config(source_file("configs/u50-4enc.ini"), overrides).config;
        const std::string text = effective_ini(config);
        const Config again = load_config(folder.write("effective.ini", text)).config;
        CHECK(effective_ini(again) == text);
        CHECK(config_json(again) == config_json(config));
        CHECK(again.dram.clock_hz == config.dram.clock_hz);
    }
}

TEST_CASE("the effective configuration finds files outside the project again") {
    const test::TemporaryFolder folder;
    folder.write("parts/mine.ini", content_of(source_file("configs/devices/kv260.ini")));
    const Config config = load_config(folder.write("design.ini", "[device]\nfile = parts/mine.ini\n")).config;
    const test::TemporaryFolder elsewhere;
    const Config again = load_config(elsewhere.write("effective.ini", effective_ini(config))).config;
    CHECK(again.device.luts == 117'120);
}

TEST_CASE("the configuration as JSON has numbers, lists and words in sections, and no run mode") {
    const nlohmann::json json = config_json(load_config("").config);
    CHECK(json["network"]["encoders"] == 2);
    CHECK(json["network"]["flow"] == "btt");
    CHECK(json["tt"]["out_modes"] == nlohmann::json::array({12, 8, 8}));
    CHECK(json["tt"]["ranks"] == nlohmann::json::array());
    CHECK(json["schedule"]["split"] == true);
    CHECK(json["train"]["lr"] == 0.005);
    CHECK(json["device"]["file"] == "devices/u50.ini");
    CHECK(json["dram"]["file"] == "memories/hbm2-u50.ini");
    CHECK_FALSE(json.contains("mode"));
}

TEST_CASE("edit distance counts insertions, deletions, replacements and swaps") {
    CHECK(config::edit_distance("", "") == 0);
    CHECK(config::edit_distance("rows", "rows") == 0);
    CHECK(config::edit_distance("row", "rows") == 1);
    CHECK(config::edit_distance("rowss", "rows") == 1);
    CHECK(config::edit_distance("rpws", "rows") == 1);
    CHECK(config::edit_distance("orws", "rows") == 1);
    CHECK(config::edit_distance("kitten", "sitting") == 3);
    CHECK(config::edit_distance("", "abc") == 3);
    CHECK(config::nearest("xyz", {"rows", "cols"}).empty());
    CHECK(config::nearest("colums", {"rows", "columns"}) == "columns");
}
