// Work in a process of its own: what it sends and how it ends.
#include "process/child_process.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

using namespace contraflow;
using Catch::Contains;

namespace {

[[noreturn]] void work_for_ever() {
    while (true) {
        pause();
    }
}

std::vector<std::string> messages_of(ChildProcess& child) {
    while (!child.receive()) {
    }
    return child.take_messages();
}

}  // namespace

TEST_CASE("a child returns what its work returns, of any length") {
    CHECK(run_in_child([] { return std::string(); }).empty());
    CHECK(run_in_child([] { return std::string("a\0b", 3); }) == std::string("a\0b", 3));
    CHECK(run_in_child([] { return std::string(1'000'000, 'x'); }) == std::string(1'000'000, 'x'));
}

TEST_CASE("a child that fails says how") {
    CHECK_THROWS_WITH(run_in_child([]() -> std::string { throw std::runtime_error("no luck"); }), "no luck");
    CHECK_THROWS_WITH(run_in_child([]() -> std::string { std::abort(); }), Contains("crashed"));
    CHECK_THROWS_WITH(run_in_child([]() -> std::string { _exit(3); }), Contains("status 3"));
    CHECK_THROWS_WITH(run_in_child([]() -> std::string { work_for_ever(); }, 1), Contains("still running after 1 s"));
}

TEST_CASE("messages of a child arrive one by one, also those before a crash") {
    ChildProcess child([](const ChildProcess::Send& send) -> std::string {
        send("one");
        send("");
        send(std::string(300'000, 'y'));
        std::abort();
    });
    CHECK(messages_of(child) == std::vector<std::string>{"one", "", std::string(300'000, 'y')});
    CHECK_THROWS_WITH(child.result(), Contains("crashed"));
}

TEST_CASE("the time limit holds for each message, not for all of them together") {
    ChildProcess child(
        [](const ChildProcess::Send& send) -> std::string {
            for (int i = 0; i < 4; ++i) {
                usleep(400'000);
                send(std::to_string(i));
            }
            work_for_ever();
        },
        1);
    CHECK(messages_of(child) == std::vector<std::string>{"0", "1", "2", "3"});
    CHECK_THROWS_WITH(child.result(), Contains("still running after 1 s"));
}

TEST_CASE("a result without a look at the messages before it") {
    ChildProcess child([](const ChildProcess::Send& send) {
        send("passed over");
        return std::string("end");
    });
    CHECK(child.result() == "end");
}
