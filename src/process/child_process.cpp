#include "process/child_process.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <system_error>
#include <thread>

namespace contraflow {
namespace {

// What a child sends: frames of kind, length and text.
enum class Frame : char { Message = 'm', Result = 'r', Exception = 'e' };
constexpr std::size_t kHeaderBytes = 1 + sizeof(std::uint64_t);

std::string frame(Frame kind, const std::string& text) {
    const std::uint64_t length = text.size();
    std::string bytes(1, static_cast<char>(kind));
    bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
    return bytes + text;
}

// Length of the frame that `bytes` begins with, header included; 0 if it is not there in whole.
std::size_t frame_bytes(const std::string& bytes) {
    if (bytes.size() < kHeaderBytes) {
        return 0;
    }
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data() + 1, sizeof length);
    return bytes.size() - kHeaderBytes < length ? 0 : kHeaderBytes + length;
}

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

// A child starts on pages shared with its parent and faults once for each that it writes, and once for each new one:
// some thousand times for a design, which takes as long as simulating a step. What the parent has freed lies all over
// its heap, and a child would take it page by page. So it works in a thread of its own, which gets a heap of its own,
// in huge pages where the system gives them. Nothing depends on the calls having an effect.
void work_on_fresh_heap(const std::function<void()>& work) {
    constexpr int kHeapBytes = 64 << 20;  // the most that the library gives at once; a page counts when it is written
    mallopt(M_MMAP_THRESHOLD, kHeapBytes / 2);  // the largest that it accepts
    mallopt(M_TRIM_THRESHOLD, 2 * kHeapBytes);
    mallopt(M_TOP_PAD, kHeapBytes);
    const auto on_fresh_heap = [&work] {
        constexpr auto kMask = ~(static_cast<std::uintptr_t>(kHeapBytes) - 1);
        void* volatile first = std::malloc(1);
        madvise(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(first) & kMask), kHeapBytes, MADV_HUGEPAGE);
        std::free(first);
        work();
    };
    try {
        std::thread(on_fresh_heap).join();
    } catch (const std::system_error&) {
        work();  // no thread to be had: on this heap
    }
}

[[noreturn]] void be_child(const std::function<std::string(const ChildProcess::Send&)>& work, unsigned limit_seconds,
                           int out, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {  // it died before the line above
        _exit(1);
    }
    std::signal(SIGALRM, SIG_DFL);
    alarm(limit_seconds);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    std::string end;
    work_on_fresh_heap([&] {
        try {
            end = frame(Frame::Result, work([&](const std::string& message) {
                            write_all(out, frame(Frame::Message, message));
                            alarm(limit_seconds);
                        }));
        } catch (const std::exception& error) {
            end = frame(Frame::Exception, error.what());
        } catch (...) {
            end = frame(Frame::Exception, "unknown exception");
        }
    });
    std::cout.flush();
    std::fflush(nullptr);
    write_all(out, end);
    _exit(0);  // no destructor of the caller's objects may run twice
}

}  // namespace

ChildProcess::ChildProcess(const std::function<std::string(const Send&)>& work, unsigned limit_seconds)
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
        bytes_.append(buffer.data(), static_cast<std::size_t>(count));
    } else if (count == 0 || errno != EINTR) {
        ended_ = true;
    }
    return ended_;
}

std::vector<std::string> ChildProcess::take_messages() {
    std::vector<std::string> messages;
    while (!bytes_.empty() && bytes_.front() == static_cast<char>(Frame::Message)) {
        const std::size_t bytes = frame_bytes(bytes_);
        if (bytes == 0) {
            break;
        }
        messages.push_back(bytes_.substr(kHeaderBytes, bytes - kHeaderBytes));
        bytes_.erase(0, bytes);
    }
    return messages;
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
    (void)take_messages();
    const int status = wait();
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
        throw ChildError(fmt::format("still running after {} s", limit_seconds_));
    }
    if (WIFSIGNALED(status)) {
        throw ChildError(fmt::format("crashed: {}", strsignal(WTERMSIG(status))));
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || frame_bytes(bytes_) == 0) {
        throw ChildError(fmt::format("ended with status {} and no result", WEXITSTATUS(status)));
    }
    const std::string text = bytes_.substr(kHeaderBytes);
    if (bytes_.front() == static_cast<char>(Frame::Exception)) {
        throw ChildError(text);
    }
    return text;
}

std::string run_in_child(const std::function<std::string()>& work, unsigned limit_seconds) {
    return ChildProcess([&](const ChildProcess::Send&) { return work(); }, limit_seconds).result();
}

}  // namespace contraflow
