// A piece of work in a process of its own: SystemC elaborates once per process, and a crash stays there.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

namespace contraflow {

// The child threw, crashed or ran out of time; the message says which.
class ChildError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// Forks, runs `work` in the child and returns what it returned. The child's standard output goes to standard error, so
// that nothing mixes with the caller's; it dies with the caller. `limit_seconds` of wall-clock time, 0: no limit.
// Throws ChildError with what() of an exception that left `work`, or with how the child ended.
// REQUIRES: no SystemC module exists yet in this process.
[[nodiscard]] std::string run_in_child(const std::function<std::string()>& work, unsigned limit_seconds = 0);

}  // namespace contraflow
