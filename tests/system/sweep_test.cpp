// contraflow sweep, merge, export and pareto from outside: the rows do not depend on how the sweep came to its end.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "support/program_under_test.h"
#include "support/temporary_folder.h"

using contraflow::test::check_refused;
using contraflow::test::contraflow_program;
using contraflow::test::Outcome;
using contraflow::test::read_bytes;
using contraflow::test::run_shell;
using contraflow::test::TemporaryFolder;
using nlohmann::json;

namespace {

namespace fs = std::filesystem;

const std::string kSource = CONTRAFLOW_SOURCE_DIR;
const std::string kTiny = " -c " + kSource + "/configs/tiny.ini ";
// 24 points; rank 7 does not exist for a bond, so that some fail.
const std::string kPoints = " --over schedule.policy=overlap,serial --over engine.rows=1:4:1 --over engine.cols=2,3,4 ";

std::string database(const std::string& path) {
    return " --db '" + path + "' ";
}

// All there is of the rows, apart from the host's numbers.
std::string rows(const std::string& path) {
    const Outcome outcome = contraflow_program("export --json" + database(path));
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
    return outcome.out;
}

std::size_t count_of(const std::string& path, const std::string& status) {
    const json all = json::parse(rows(path));
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [&](const json& row) { return row["status"] == status; }));
}

void sweep(const std::string& arguments, int expected_status = 0) {
    const Outcome outcome = contraflow_program("sweep" + kTiny + arguments);
    INFO("sweep" << arguments << "\n" << outcome.err);
    REQUIRE(outcome.status == expected_status);
}

// The program in a process that the test can send signals to.
class Background {
public:
    explicit Background(const std::string& arguments) {
        child_ = fork();
        REQUIRE(child_ >= 0);
        if (child_ == 0) {
            const std::string command =
                "exec " + std::string(CONTRAFLOW_PROGRAM) + " " + arguments + " >/dev/null 2>&1 </dev/null";
            execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
            _exit(127);
        }
    }
    ~Background() {
        if (child_ > 0) {
            signal(SIGKILL);
            wait();
        }
    }
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;

    void signal(int number) const { kill(child_, number); }
    // To its own children.
    void signal_children(int number) const {
        const std::string pid = std::to_string(child_);
        std::ifstream children("/proc/" + pid + "/task/" + pid + "/children");
        for (pid_t child = 0; children >> child;) {
            kill(child, number);
        }
    }
    int wait() {
        int status = 0;
        waitpid(child_, &status, 0);
        child_ = -1;
        return status;
    }

private:
    pid_t child_ = -1;
};

void wait_until_some_are_done(const std::string& path, std::size_t wanted) {
    for (int i = 0; i < 1000; ++i) {
        const Outcome outcome = contraflow_program("export --json" + database(path));
        std::size_t done = 0;
        for (std::size_t at = outcome.out.find("\"done\""); at != std::string::npos;
             at = outcome.out.find("\"done\"", at + 1)) {
            ++done;
        }
        if (outcome.status == 0 && done >= wanted) {
            return;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    FAIL("no point gets done");
}

}  // namespace

TEST_CASE("one job and four jobs give the same rows, and a rerun changes nothing") {
    const TemporaryFolder temp;
    sweep(kPoints + "--jobs 1" + database(temp.file("one")));
    sweep(kPoints + "--jobs 4" + database(temp.file("four")));
    const std::string one = rows(temp.file("one"));
    CHECK(one == rows(temp.file("four")));
    CHECK(json::parse(one).size() == 24);

    const std::string bytes = read_bytes(temp.file("one"));
    sweep(kPoints + "--jobs 2" + database(temp.file("one")));
    CHECK(read_bytes(temp.file("one")) == bytes);
}

TEST_CASE("a row holds what a run of the same design reports") {
    const TemporaryFolder temp;
    sweep("--steps 2 --full-reports --over engine.cols=3 --over tt.rank=4,5" + database(temp.file("db")));
    const json row = json::parse(rows(temp.file("db")))[1];
    json report = contraflow_program("run" + kTiny + "--json --steps 2 --engine.cols=3 --tt.rank=5").report();
    CHECK(row["point"] == 1);
    CHECK(row["keys"] == json{{"engine.cols", 3}, {"tt.rank", 5}});
    CHECK(row["version"] == report["version"]);
    CHECK(row["config"] == report["config"]);
    for (const char* apart : {"config", "host", "schema", "version"}) {
        report.erase(apart);
    }
    json blocks;
    for (json block : report["blocks"]) {
        const std::string name = block["name"];
        block.erase("name");
        blocks[name] = block;
    }
    report["blocks"] = blocks;
    CHECK(row["report"] == report);
}

TEST_CASE("without full reports the long lists are left out, and cycles do not need values") {
    const TemporaryFolder temp;
    sweep("--over engine.cols=2,3" + database(temp.file("with")));
    sweep("--values off --over engine.cols=2,3" + database(temp.file("without")));
    json with = json::parse(rows(temp.file("with")))[0]["report"];
    json without = json::parse(rows(temp.file("without")))[0]["report"];
    CHECK(!with.contains("kernels"));
    CHECK(!with.contains("ram_accesses"));
    CHECK(!with["memory"].contains("tensors"));
    CHECK(with["loss"].size() == 1);
    CHECK(!without.contains("loss"));
    for (const char* differs : {"values", "loss", "intent_loss", "slot_loss"}) {
        with.erase(differs);
        without.erase(differs);
    }
    CHECK(with == without);
}

TEST_CASE("a sweep killed three times and resumed gives the rows of an undisturbed one") {
    const TemporaryFolder temp;
    const std::string slow = kPoints + "--steps 200 --jobs 2";
    sweep(slow + database(temp.file("undisturbed")));
    const std::string path = temp.file("killed");
    std::size_t before = 0;
    for (int i = 0; i < 3; ++i) {
        Background background("sweep" + kTiny + slow + database(path));
        wait_until_some_are_done(path, before + 1);
        background.signal(SIGKILL);
        CHECK(WIFSIGNALED(background.wait()));
        const std::size_t done = count_of(path, "done");
        CHECK(done > before);  // what was finished before stays finished
        CHECK(done < 24);
        before = done;
    }
    sweep(slow + database(path));
    CHECK(rows(path) == rows(temp.file("undisturbed")));
}

TEST_CASE("a sweep interrupted by a signal saves what is finished and says how to go on") {
    const TemporaryFolder temp;
    const std::string slow = kPoints + "--steps 200 --jobs 2" + database(temp.file("db"));
    Background background("sweep" + kTiny + slow);
    wait_until_some_are_done(temp.file("db"), 1);
    background.signal(SIGINT);
    const int status = background.wait();
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 128 + SIGINT);
    CHECK(count_of(temp.file("db"), "running") == 0);
    CHECK(count_of(temp.file("db"), "pending") > 0);
    CHECK(count_of(temp.file("db"), "done") > 0);
}

TEST_CASE("two processes share the points of one database") {
    const TemporaryFolder temp;
    const std::string slow = kPoints + "--steps 100 --jobs 1";
    sweep(slow + database(temp.file("alone")));
    const std::string path = temp.file("shared");
    Background other("sweep" + kTiny + slow + database(path));
    sweep(slow + database(path));
    CHECK(count_of(path, "done") == 24);  // also those of the other process
    const int status = other.wait();
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(rows(path) == rows(temp.file("alone")));
}

TEST_CASE("points of a process that was killed are taken over by one that still runs") {
    const TemporaryFolder temp;
    const std::string slow = kPoints + "--steps 200 --jobs 2" + database(temp.file("db"));
    Background doomed("sweep" + kTiny + slow);
    wait_until_some_are_done(temp.file("db"), 1);
    Background other("sweep" + kTiny + slow);
    doomed.signal(SIGKILL);
    doomed.wait();
    const int status = other.wait();
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(count_of(temp.file("db"), "done") == 24);
}

TEST_CASE("a later command with more values adds the new points, in the order of a fresh sweep") {
    const TemporaryFolder temp;
    const std::string path = temp.file("db");
    sweep("--over engine.rows=2,4 --over engine.cols=2" + database(path));
    const json before = json::parse(rows(path));
    sweep("--over engine.rows=1,2,4 --over engine.cols=2,3" + database(path));
    sweep("--over engine.rows=1,2,4 --over engine.cols=2,3" + database(temp.file("fresh")));
    CHECK(rows(path) == rows(temp.file("fresh")));
    CHECK(json::parse(rows(path))[2]["report"] == before[0]["report"]);

    // Points that the latest command does not name stay, behind those that it does.
    sweep("--over engine.rows=4 --over engine.cols=3" + database(path));
    const json kept = json::parse(rows(path));
    REQUIRE(kept.size() == 6);
    CHECK(kept[0]["keys"] == json{{"engine.cols", 3}, {"engine.rows", 4}});
    CHECK(kept[1]["keys"] == json{{"engine.cols", 2}, {"engine.rows", 1}});
}

TEST_CASE("a point that cannot be is a row with its reason, and is run again on demand only") {
    const TemporaryFolder temp;
    const std::string path = temp.file("db");
    std::string small = read_bytes(kSource + "/tests/system/small_device.ini");
    for (const char* block : {"bram36 = 8", "urams = 2"}) {
        for (std::size_t at = small.find(block); at != std::string::npos; at = small.find(block, at)) {
            small.replace(at, std::string(block).size(), std::string(block, std::strlen(block) - 1) + "1");
        }
    }
    const std::string device = temp.write("small.ini", small);
    const std::string points =
        "--values off --over network.heads=2,5 --over device.file=devices/u50.ini,'" + device + "' ";
    sweep(points + database(path), 1);
    const json all = json::parse(rows(path));
    REQUIRE(all.size() == 4);
    CHECK(all[0]["status"] == "done");
    CHECK(all[0]["reason"].is_null());
    CHECK(all[1]["status"] == "failed");  // does not fit
    CHECK(all[1]["reason"].get<std::string>().find("URAM") != std::string::npos);
    CHECK(all[1]["config"]["network"]["heads"] == 2);
    CHECK(all[2]["status"] == "failed");  // 5 heads of 24
    CHECK(all[2]["reason"].get<std::string>().find("network.heads") != std::string::npos);
    CHECK(all[2]["config"].is_null());
    CHECK(all[2]["report"].is_null());
    CHECK(contraflow_program("pareto --csv --min cycles.total" + database(path)).out ==
          "point,network.heads,device.file,cycles.total\n0,2,devices/u50.ini," +
              all[0]["report"]["cycles"]["total"].dump() + "\n");

    // The failure is kept, and told again, until the cause is gone and the user says so.
    fs::copy_file(kSource + "/configs/devices/u50.ini", device, fs::copy_options::overwrite_existing);
    sweep(points + database(path), 1);
    CHECK(count_of(path, "failed") == 3);
    sweep(points + "--retry-failed" + database(path), 1);
    CHECK(count_of(path, "failed") == 2);
    CHECK(json::parse(rows(path))[1]["status"] == "done");
}

TEST_CASE("a process that dies takes no more than the point with it that it was at") {
    const TemporaryFolder temp;
    const std::string path = temp.file("db");
    Background background("sweep" + kTiny + kPoints + "--steps 200 --jobs 1" + database(path));
    wait_until_some_are_done(path, 4);  // by now a process gets several points
    background.signal_children(SIGKILL);
    const int status = background.wait();
    REQUIRE(WIFEXITED(status));
    const std::size_t failed = count_of(path, "failed");
    CHECK(WEXITSTATUS(status) == (failed == 0 ? 0 : 1));
    CHECK(failed <= 1);  // none if the process had just ended
    CHECK(count_of(path, "done") == 24 - failed);
    for (const json& row : json::parse(rows(path))) {
        CHECK((row["status"] == "done" || row["reason"] == "crashed: Killed"));
    }
}

TEST_CASE("a point that takes too long is a row with its reason") {
    const TemporaryFolder temp;
    sweep("--timeout 1 --steps 100000 --over engine.cols=2" + database(temp.file("db")), 1);
    const json row = json::parse(rows(temp.file("db")))[0];
    CHECK(row["status"] == "failed");
    CHECK(row["reason"] == "still running after 1 s");
    CHECK(row["config"]["engine"]["cols"] == 2);
}

TEST_CASE("a database without room ends the sweep with status 1 and stays right") {
    const TemporaryFolder temp;
    const std::string command =
        std::string(CONTRAFLOW_PROGRAM) + " sweep" + kTiny + kPoints + "--values off" + database(temp.file("db"));
    const Outcome full = run_shell("ulimit -f 64; " + command);  // 32 kB
    INFO(full.err);
    CHECK(full.status == 1);
    CHECK(std::count(full.err.begin(), full.err.end(), '\n') == 1);
    CHECK(full.err.find("same command") != std::string::npos);
    sweep(kPoints + "--values off" + database(temp.file("db")));
    sweep(kPoints + "--values off" + database(temp.file("fresh")));
    CHECK(rows(temp.file("db")) == rows(temp.file("fresh")));
}

TEST_CASE("shards through GNU parallel merge to the rows of the undivided sweep") {
    const TemporaryFolder temp;
    sweep(kPoints + "--values off" + database(temp.file("whole")));
    const std::string script = kSource + "/configs/sweeps/parallel-shards.sh";
    const Outcome outcome = run_shell("CONTRAFLOW='" + std::string(CONTRAFLOW_PROGRAM) + "' SHARDS=5 '" + script +
                                      "' '" + temp.file("merged") + "' " + kTiny + kPoints + "--values off");
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.status == 0);
    CHECK(rows(temp.file("merged")) == rows(temp.file("whole")));
    // It is the undivided sweep's database: the same command finds all done.
    const std::string bytes = read_bytes(temp.file("merged"));
    sweep(kPoints + "--values off" + database(temp.file("merged")));
    CHECK(read_bytes(temp.file("merged")) == bytes);
}

TEST_CASE("a merge of some shards is finished by the sweep's command, and foreign shards are refused") {
    const TemporaryFolder temp;
    const std::string points = "--values off --over engine.rows=1:5:1 ";
    sweep(points + database(temp.file("whole")));
    sweep(points + "--shard 1/3" + database(temp.file("s1")));
    sweep(points + "--shard 3/3" + database(temp.file("s3")));
    const auto merge = [&](const std::string& shards) { return "merge" + database(temp.file("merged")) + shards; };
    const Outcome partial = contraflow_program(merge(temp.file("s1") + " " + temp.file("s3")));
    CHECK(partial.status == 1);
    CHECK(partial.out == temp.file("merged") + ": 5 points, 0 failed, 2 missing\n");
    sweep(points + database(temp.file("merged")));
    CHECK(rows(temp.file("merged")) == rows(temp.file("whole")));

    check_refused(merge(temp.file("s1")), {"exists"});
    fs::remove(temp.file("merged"));
    check_refused(merge(temp.file("s1") + " " + temp.file("s1")), {"both shard 1/3"});
    sweep("--values off --over engine.rows=1:6:1 --shard 2/3" + database(temp.file("other points")));
    check_refused(merge(temp.file("s1") + " '" + temp.file("other points") + "'"), {"other points"});
    sweep(points + "--steps 2 --shard 2/3" + database(temp.file("other steps")));
    check_refused(merge(temp.file("s1") + " '" + temp.file("other steps") + "'"), {"steps", "2", "1"});
    sweep(points + "--vector.lanes=2 --shard 2/3" + database(temp.file("other design")));
    check_refused(merge(temp.file("s1") + " '" + temp.file("other design") + "'"), {"vector.lanes"});
    CHECK(!fs::exists(temp.file("merged")));
    check_refused("merge" + database(temp.file("merged")) + kSource + "/README.md", {"README.md"});
    check_refused("merge" + database(temp.file("merged")), {"no shards"});
}

TEST_CASE("a database serves one sweep only") {
    const TemporaryFolder temp;
    const std::string db = database(temp.file("db"));
    sweep("--over engine.rows=1,2" + db);
    check_refused("sweep" + kTiny + "--over engine.rows=1,2 --steps 3" + db, {"steps", "another --db"});
    check_refused("sweep" + kTiny + "--over engine.rows=1,2 --vector.lanes=8" + db, {"vector.lanes is 4 there and 8"});
    check_refused("sweep" + kTiny + "--over engine.cols=1,2" + db, {"sweeps engine.rows, not engine.cols"});
    check_refused("sweep" + kTiny + "--over engine.rows=1,2 --shard 1/2" + db, {"shard 1/1"});
    temp.write("text", "no database, but long enough to look like something with a header of its own ............");
    check_refused("sweep" + kTiny + "--over engine.rows=1,2" + database(temp.file("text")), {"text: "});
    check_refused("sweep" + kTiny + "--over engine.rows=1,2" + database(temp.file("no/where")), {"no/where"});
    check_refused("export" + database(temp.file("text")), {"text: "});
    check_refused("export" + database(temp.file("missing")), {"no such file"});
    CHECK(!fs::exists(temp.file("missing")));
}

TEST_CASE("mistakes in a sweep's options are told before anything is made") {
    const TemporaryFolder temp;
    const std::string start = "sweep" + kTiny + database(temp.file("db"));
    check_refused(start, {"no points given"});
    check_refused(start + "--over engine.rows=1,x", {"--over engine.rows=1,x: ", "not a whole number", "1 to 4096"});
    check_refused(start + "--over engine.row=1", {"did you mean engine.rows?"});
    check_refused(start + "--over engine.rows", {"KEY=SPEC"});
    check_refused(start + "--over engine.rows=4:1:1", {"never ends"});
    check_refused(start + "--over engine.rows=2,4,02", {"2 is given twice"});
    check_refused(start + "--over engine.rows=1 --over engine.rows=2", {"engine.rows is given twice"});
    check_refused(start + "--over device.file=devices/nowhere.ini", {"devices/nowhere.ini", "devices/u50.ini"});
    check_refused(start + "--over engine.rows=1:4096:1 --over engine.cols=1:4096:1", {"more than 1000000 points"});
    check_refused(start + "--over engine.rows=1 --points x.csv", {"one of them"});
    check_refused(start + "--points " + temp.file("x.csv"), {"x.csv"});
    for (const char* shard : {"0/2", "3/2", "1", "1/0", "a/b", "-1/2", "1/2/3"}) {
        check_refused(start + "--over engine.rows=1 --shard " + shard, {"--shard", "expected I/N"});
    }
    check_refused(start + "--over engine.rows=1 --jobs 0", {"--jobs 0"});
    check_refused(start + "--over engine.rows=1 --steps 0", {"--steps 0"});
    check_refused(start + "--over engine.rows=1 --values maybe", {"on or off"});
    CHECK(!fs::exists(temp.file("db")));
}

TEST_CASE("points from a CSV file run in its order") {
    const TemporaryFolder temp;
    const std::string csv =
        temp.write("points.csv", "engine.rows,tt.out_modes\r\n4,\"2,3,4\"\r\n\r\n 2 , \"4,3,2\"\r\n");
    sweep("--points " + csv + database(temp.file("db")));
    const json all = json::parse(rows(temp.file("db")));
    REQUIRE(all.size() == 2);
    CHECK(all[0]["keys"] == json{{"engine.rows", 4}, {"tt.out_modes", {2, 3, 4}}});
    CHECK(all[1]["keys"] == json{{"engine.rows", 2}, {"tt.out_modes", {4, 3, 2}}});
    CHECK(all[1]["config"]["tt"]["out_modes"] == json{4, 3, 2});
    const Outcome outcome = contraflow_program("export --column cycles.total" + database(temp.file("db")));
    CHECK(outcome.out.rfind("point,engine.rows,tt.out_modes,status,reason,cycles.total\n0,4,\"2,3,4\",done,,", 0) == 0);

    const auto refused = [&](const std::string& content, const std::string& text) {
        check_refused("sweep" + kTiny + "--points " + temp.write("bad.csv", content) + database(temp.file("none")),
                      {"bad.csv", text});
    };
    refused("engine.rows\n", "has no points");
    refused("engine.rows,engine.row\n1,2\n", "did you mean engine.rows?");
    refused("engine.rows,engine.rows\n1,2\n", "given twice");
    refused("engine.rows\n1\n2,3\n", "bad.csv:3: has 2 fields");
    refused("engine.rows\n1\n0\n", "bad.csv:3: engine.rows=0: 0 is too small");
    refused("engine.rows\n1\n2\n01\n", "bad.csv:4: is the same point as line 2");
    refused("engine.rows\n\"1\n", "bad.csv:2: a quote is not closed");
}

TEST_CASE("the Pareto front is what brute force over the exported rows says") {
    const TemporaryFolder temp;
    const std::string db = database(temp.file("db"));
    sweep("--values off --over engine.rows=1:4:1 --over engine.cols=1:4:1 --over tt.rank=2,3,4" + db);
    const json all = json::parse(rows(temp.file("db")));
    std::vector<std::vector<double>> costs;
    for (const json& row : all) {
        costs.push_back({row["report"]["cycles"]["total"], row["report"]["resources"]["dsp"],
                         -row["report"]["utilisation"]["pe"].get<double>()});
    }
    json expected = json::array();
    for (std::size_t i = 0; i < costs.size(); ++i) {
        const bool beaten = std::any_of(costs.begin(), costs.end(), [&](const std::vector<double>& other) {
            bool better = false;
            for (std::size_t k = 0; k < other.size(); ++k) {
                if (other[k] > costs[i][k]) {
                    return false;
                }
                better = better || other[k] < costs[i][k];
            }
            return better;
        });
        if (!beaten) {
            expected.push_back(all[i]["point"]);
        }
    }
    REQUIRE(expected.size() > 2);
    REQUIRE(expected.size() < all.size());
    const Outcome outcome =
        contraflow_program("pareto --json --min cycles.total --min resources.dsp --max utilisation.pe" + db);
    json front = json::array();
    std::vector<std::uint64_t> cycles;
    for (const json& point : outcome.report()) {
        front.push_back(point["point"]);
        cycles.push_back(point["numbers"]["cycles.total"]);
    }
    CHECK(std::is_sorted(cycles.begin(), cycles.end()));
    std::sort(front.begin(), front.end());
    CHECK(front == expected);

    // Keys are numbers, too, and equal points stay together: the clock changes no cycle count.
    sweep("--values off --over clock.fabric_hz=100000000,200000000 " + database(temp.file("ties")));
    CHECK(contraflow_program("pareto --json --min cycles.total" + database(temp.file("ties"))).report().size() == 2);
    CHECK(contraflow_program("pareto --json --min cycles.total --max clock.fabric_hz" + database(temp.file("ties")))
              .report()
              .size() == 1);
    check_refused("pareto --min cycles.totl" + db, {"did you mean cycles.total?"});
    check_refused("pareto" + db, {"no objective"});
    check_refused("pareto --min cycles.total", {"--db"});
}

TEST_CASE("nothing depends on the locale, on the working folder, or on blanks and umlauts in paths") {
    const TemporaryFolder temp;
    REQUIRE(run_shell("localedef -i de_DE -f UTF-8 '" + temp.file("de_DE.UTF-8") + "'").status <= 1);
    const std::string german = "LOCPATH='" + temp.path().string() + "' LC_ALL=de_DE.UTF-8 ";
    REQUIRE(run_shell(german + "locale decimal_point").out == ",\n");

    const fs::path folder = temp.path() / "Größe und Maß";
    fs::create_directories(folder / "Daten sätze");
    fs::copy(kSource + "/traces/atis_like", folder / "Daten sätze", fs::copy_options::recursive);
    fs::copy(kSource + "/configs/tiny.ini", folder / "kleiner Entwurf.ini");
    const std::string design =
        "'" + (folder / "kleiner Entwurf.ini").string() + "' --data.path='" + (folder / "Daten sätze").string() + "' ";
    const std::string relative = "'kleiner Entwurf.ini' --data.path='Daten sätze' ";
    const std::string there = "cd '" + folder.string() + "'; ";
    const std::string program = std::string(CONTRAFLOW_PROGRAM) + " ";
    const std::string points = "--over engine.rows=2,4 --over network.heads=2,5 --over train.lr=0.05:0.15:0.05 ";

    for (const std::string& arguments : {"check --json -c " + design, "kernels -c " + design, std::string("keys")}) {
        INFO(arguments);
        const Outcome plain = run_shell(program + arguments);
        CHECK(plain.status == 0);
        CHECK(plain.out == run_shell(german + program + arguments).out);
        CHECK(plain.out == run_shell("cd /; " + program + arguments).out);
    }
    const auto run_report = [&](const std::string& before, const std::string& of) {
        json report = run_shell(before + program + "run --json -c " + of).report();
        report.erase("host");
        return report.dump();
    };
    CHECK(run_report("", design) == run_report(there + german, relative));

    REQUIRE(run_shell(program + "sweep -c " + design + points + database(temp.file("plain"))).status == 1);
    REQUIRE(run_shell(there + german + program + "sweep -c " + relative + points + "--db 'Ergebnis ß'").status == 1);
    CHECK(rows(temp.file("plain")) == rows((folder / "Ergebnis ß").string()));
    for (const char* command : {"export --csv", "export --json", "pareto --min cycles.total --max loss[0]"}) {
        const std::string all = command + database(temp.file("plain"));
        CHECK(run_shell(program + all).out == run_shell(german + program + all).out);
    }
    const auto traced = [&](const std::string& before, const std::string& of, const fs::path& vcd) {
        CHECK(run_shell(before + program + "trace --kernel 'encoder.0.attn.q.fwd*' -c " + of + "--vcd '" +
                        vcd.string() + "' --gtkw '" + (folder / "Wellen ü.gtkw").string() + "'")
                  .status == 0);
        return read_bytes((folder / "ä.vcd").string()) + read_bytes((folder / "Wellen ü.gtkw").string());
    };
    const std::string waves = traced("", design, folder / "ä.vcd");
    CHECK(waves.size() > 10'000);
    CHECK(waves == traced(there + german, relative, "ä.vcd"));
    REQUIRE(run_shell(there + program + "run -c " + relative + "--out 'Ergebnis ä' --save 'Gewichte ö'").status == 0);
    CHECK(fs::exists(folder / "Ergebnis ä" / "report.json"));
    CHECK(fs::exists(folder / "Gewichte ö"));
}
