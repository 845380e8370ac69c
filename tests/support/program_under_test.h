// The program as a user meets it: command line in, exit status and output out. The test's target defines
// CONTRAFLOW_PROGRAM.
#pragma once

#include <sys/wait.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace contraflow::test {

struct Outcome {
    int status = -1;
    std::string out, err;

    [[nodiscard]] nlohmann::json report() const {
        INFO(err);
        REQUIRE(status == 0);
        return nlohmann::json::parse(out);
    }
};

// Runs a shell command.
inline Outcome run_shell(const std::string& command) {
    const TemporaryFolder temp;
    const int status =
        std::system(("{ " + command + "\n} >" + temp.file("out") + " 2>" + temp.file("err") + " </dev/null").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_bytes(temp.file("out")), read_bytes(temp.file("err"))};
}

// Runs the program with these arguments, in a shell's syntax.
inline Outcome contraflow_program(const std::string& arguments) {
    return run_shell(std::string(CONTRAFLOW_PROGRAM) + " " + arguments);
}

// The user's mistake: status 2, nothing on stdout, one line on stderr that holds all of `texts`.
inline void check_refused(const std::string& arguments, const std::vector<std::string>& texts) {
    const Outcome outcome = contraflow_program(arguments);
    INFO("contraflow " << arguments << "\n" << outcome.err);
    CHECK(outcome.status == 2);
    CHECK(outcome.out.empty());
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    CHECK(outcome.err.rfind("contraflow: ", 0) == 0);
    for (const std::string& text : texts) {
        INFO("expected: " << text);
        CHECK(outcome.err.find(text) != std::string::npos);
    }
}

}  // namespace contraflow::test
