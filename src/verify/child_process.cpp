#include "verify/child_process.h"

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

std::string read_all(int file) {
    std::string text;
    std::array<char, 1 << 16> buffer{};
    for (;;) {
        const ssize_t count = read(file, buffer.data(), buffer.size());
        if (count > 0) {
            text.append(buffer.data(), static_cast<std::size_t>(count));
        } else if (count == 0 || errno != EINTR) {
            return text;
        }
    }
}

[[noreturn]] void be_child(const std::function<std::string()>& work, unsigned limit_seconds, int out) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
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

std::string run_in_child(const std::function<std::string()>& work, unsigned limit_seconds) {
    std::cout.flush();
    std::cerr.flush();
    std::fflush(nullptr);  // else the child would print the buffered text again
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) {
        throw ChildError(fmt::format("no pipe to a child process: {}", std::strerror(errno)));
    }
    const pid_t child = fork();
    if (child < 0) {
        const int error = errno;
        close(ends[0]);
        close(ends[1]);
        throw ChildError(fmt::format("no child process: {}", std::strerror(error)));
    }
    if (child == 0) {
        close(ends[0]);
        be_child(work, limit_seconds, ends[1]);
    }
    close(ends[1]);
    const std::string answer = read_all(ends[0]);
    close(ends[0]);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
        throw ChildError(fmt::format("still running after {} s", limit_seconds));
    }
    if (WIFSIGNALED(status)) {
        throw ChildError(fmt::format("crashed: {}", strsignal(WTERMSIG(status))));
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || answer.empty()) {
        throw ChildError(fmt::format("ended with status {} and no result", WEXITSTATUS(status)));
    }
    if (answer.front() == kException) {
        throw ChildError(answer.substr(1));
    }
    return answer.substr(1);
}

}  // namespace contraflow
