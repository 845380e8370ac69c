// Runs a function in a child process and returns its numbers: SystemC elaborates once per process, so a test that needs
// several machines runs each in a child of its own. Call before anything is elaborated in the parent.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace contraflow::test {

// Throws std::runtime_error with the child's message if it throws, crashes or is killed.
inline std::vector<std::uint64_t> run_isolated(const std::function<std::vector<std::uint64_t>()>& function) {
    int ends[2];
    if (pipe(ends) != 0) {
        throw std::runtime_error("no pipe");
    }
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        int status = 0;
        std::string message;
        std::vector<std::uint64_t> numbers;
        try {
            numbers = function();
        } catch (const std::exception& error) {
            message = error.what();
            status = 1;
        }
        const char* bytes = status == 0 ? reinterpret_cast<const char*>(numbers.data()) : message.data();
        std::size_t left = status == 0 ? numbers.size() * sizeof(std::uint64_t) : message.size();
        while (left > 0) {
            const ssize_t written = write(ends[1], bytes, left);
            if (written <= 0) {
                break;
            }
            bytes += written;
            left -= static_cast<std::size_t>(written);
        }
        close(ends[1]);
        _exit(status);
    }
    close(ends[1]);
    std::string bytes;
    char buffer[4096];
    for (ssize_t count = 0; (count = read(ends[0], buffer, sizeof buffer)) > 0;) {
        bytes.append(buffer, static_cast<std::size_t>(count));
    }
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status)) {
        throw std::runtime_error("the child process was killed by signal " + std::to_string(WTERMSIG(status)));
    }
    if (WEXITSTATUS(status) != 0) {
        throw std::runtime_error(bytes);
    }
    std::vector<std::uint64_t> numbers(bytes.size() / sizeof(std::uint64_t));
    bytes.copy(reinterpret_cast<char*>(numbers.data()), numbers.size() * sizeof(std::uint64_t));
    return numbers;
}

}  // namespace contraflow::test
