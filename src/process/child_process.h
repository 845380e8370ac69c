// A piece of work in a process of its own: SystemC elaborates once per process, and a crash stays there.
#pragma once

#include <sys/types.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace contraflow {

// The child threw, crashed or ran out of time; the message says which.
class ChildError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// A child at work beside its caller, who polls file(). The child's standard output goes to standard error, so that
// nothing mixes with the caller's; it dies with the caller, and is killed when this object goes.
class ChildProcess {
public:
    using Send = std::function<void(const std::string&)>;

    // Forks and runs `work` in the child, which may send messages before it returns. `limit_seconds` of wall-clock time
    // for each message and for the end, 0: no limit. Throws ChildError if there can be no child. REQUIRES: no SystemC
    // module exists yet in this process.
    explicit ChildProcess(const std::function<std::string(const Send&)>& work, unsigned limit_seconds = 0);
    ~ChildProcess();
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;

    // Readable whenever the child sent something or ended.
    [[nodiscard]] int file() const { return file_; }
    // Takes what can be read now, waiting for it if need be; true when that was the end.
    bool receive();
    // The messages that have come in whole since the last call.
    [[nodiscard]] std::vector<std::string> take_messages();
    // What `work` returned; waits for it. Throws ChildError with what() of an exception that left `work`, or with how
    // the child ended. Called once.
    [[nodiscard]] std::string result();

private:
    int wait();  // for the child's end; its status

    pid_t child_ = -1;  // -1: waited for
    int file_ = -1;
    unsigned limit_seconds_;
    std::string bytes_;  // received, and not taken yet
    bool ended_ = false;
};

// Runs `work` in a child and returns what it returned; throws as ChildProcess does.
[[nodiscard]] std::string run_in_child(const std::function<std::string()>& work, unsigned limit_seconds = 0);

}  // namespace contraflow
