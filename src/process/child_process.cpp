#include "process/child_process.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>

namespace contraflow {
namespace {

// First byte of what a child sends.
constexpr char kResult = 'r';
constexpr char kException = 'e';

void write_all(int file, const std::string& text) {
    std::size_t done = 0;
    while (done < text.size()) {
        const ssize_t count = write(file, text.data() + done, text.size() - done);
        if (count < 0 && errno != EINTR) {
            return;  // the caller is gone
        }
        done += count < 0 ? 0 : static_cast<std::size_t>(count);
    }
}

[[noreturn]] void be_child(const std::function<std::string()>& work, unsigned limit_seconds, int out, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {  // it died before the line above
        _exit(1);
    }
    std::signal(SIGALRM, SIG_DFL);
    alarm(limit_seconds);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    std::string answer;
    try {
        answer = kResult + work();
    } catch (const std::exception& error) {
        answer = std::string(1, kException) + error.what();
    } catch (...) {
        answer = std::string(1, kException) + "unknown exception";
    }
    std::cout.flush();
    std::fflush(nullptr);
    write_all(out, answer);
    _exit(0);  // no destructor of the caller's objects may run twice
}

}  // namespace

ChildProcess::ChildProcess(const std::function<std::string()>& work, unsigned limit_seconds)
    : limit_seconds_(limit_seconds) {
    std::cout.flush();
    std::cerr.flush();
    std::fflush(nullptr);  // else the child would print the buffered text again
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) {
        throw ChildError(fmt::format("no pipe to a child process: {}", std::strerror(errno)));
    }
    const pid_t parent = getpid();
    child_ = fork();
    if (child_ < 0) {
        const int error = errno;
        close(ends[0]);
        close(ends[1]);
        throw ChildError(fmt::format("no child process: {}", std::strerror(error)));
    }
    if (child_ == 0) {
        close(ends[0]);
        be_child(work, limit_seconds, ends[1], parent);
    }
    close(ends[1]);
    file_ = ends[0];
}

ChildProcess::~ChildProcess() {
    if (child_ > 0) {
        kill(child_, SIGKILL);
        wait();
    }
    close(file_);
}

bool ChildProcess::receive() {
    std::array<char, 1 << 16> buffer{};
    const ssize_t count = read(file_, buffer.data(), buffer.size());
    if (count > 0) {
        answer_.append(buffer.data(), static_cast<std::size_t>(count));
    } else if (count == 0 || errno != EINTR) {
        ended_ = true;
    }
    return ended_;
}

int ChildProcess::wait() {
    int status = 0;
    while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
    child_ = -1;
    return status;
}

std::string ChildProcess::result() {
    while (!ended_) {
        receive();
    }
    const int status = wait();
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
        throw ChildError(fmt::format("still running after {} s", limit_seconds_));
    }
    if (WIFSIGNALED(status)) {
        throw ChildError(fmt::format("crashed: {}", strsignal(WTERMSIG(status))));
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || answer_.empty()) {
        throw ChildError(fmt::format("ended with status {} and no result", WEXITSTATUS(status)));
    }
    if (answer_.front() == kException) {
        throw ChildError(answer_.substr(1));
    }
    return answer_.substr(1);
}

std::string run_in_child(const std::function<std::string()>& work, unsigned limit_seconds) {
    return ChildProcess(work, limit_seconds).result();
}

}  // namespace contraflow
