#include "sweep/sweep.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <vector>

#include "plan/known_contractions.h"
#include "process/child_process.h"
#include "simulate/elaboration.h"

namespace contraflow::sweep {

namespace {

using Clock = std::chrono::steady_clock;

// After which a child leaves its other points to the others. Long: after each fork, the pages that this process writes
// are copied.
constexpr std::chrono::milliseconds kChildTime{10'000};
// A kill loses what is not saved and what is running: at most half a second of results, and fewer than 100 points.
constexpr std::chrono::milliseconds kSaveInterval{500};
constexpr std::size_t kMaxUnsaved = 64;
constexpr std::size_t kMaxPointsOfChild = 1024;            // memory that SystemC does not give back must not add up
constexpr std::chrono::milliseconds kOthersInterval{200};  // between looks at what other processes have left

volatile std::sig_atomic_t caught_signal = 0;

// While this lives, SIGINT and SIGTERM are noted instead of ending the process.
class SignalGuard {
public:
    SignalGuard() {
        caught_signal = 0;
        struct sigaction action {};
        action.sa_handler = [](int signal) { caught_signal = signal; };
        sigaction(SIGINT, &action, &previous_int_);
        sigaction(SIGTERM, &action, &previous_term_);
    }
    ~SignalGuard() {
        sigaction(SIGINT, &previous_int_, nullptr);
        sigaction(SIGTERM, &previous_term_, nullptr);
    }
    SignalGuard(const SignalGuard&) = delete;
    SignalGuard& operator=(const SignalGuard&) = delete;

private:
    struct sigaction previous_int_ {};
    struct sigaction previous_term_ {};
};

class Worker {
public:
    Worker(Database& database, const PointContext& context, const WorkerOptions& options,
           const std::function<void(const Counts&)>& progress)
        : database_(database), context_(context), options_(options), progress_(progress) {}

    void run() {
        try {
            refresh_counts();
            while (caught_signal == 0) {
                if (needs_exchange()) {
                    exchange();
                }
                start_points();
                if (!running_.empty()) {
                    wait_for_points();
                } else if (queue_.empty() && finished_.empty() && !wait_for_others()) {
                    return;
                }
            }
        } catch (...) {
            running_.clear();
            throw;
        }
        running_.clear();
        queue_.clear();
        exchange_results();
        database_.release_claims();
        throw Interrupted(caught_signal);
    }

private:
    // A child and the points that it still has to do, in its order.
    struct Running {
        std::deque<Claim> claims;
        std::unique_ptr<ChildProcess> process;
    };

    [[nodiscard]] bool needs_exchange() const {
        const bool save =
            !finished_.empty() && (finished_.size() >= kMaxUnsaved || Clock::now() - last_exchange_ >= kSaveInterval ||
                                   (running_.empty() && queue_.empty()));
        return save || (may_have_more_ && queue_.empty() && running_.size() < options_.jobs);
    }

    // As many points as keep all children busy for their time, but at most half of those left, so that all of them end
    // at about the same time.
    [[nodiscard]] std::size_t points_wanted() const {
        const double seconds = std::chrono::duration<double>(kChildTime).count();
        const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
        const auto likely = static_cast<std::size_t>(static_cast<double>(num_finished_) / (elapsed + 1e-3) * seconds);
        const auto left = static_cast<std::size_t>(counts_.pending + counts_.running);
        return std::max(options_.jobs, std::min({likely, left / 2, options_.jobs * kMaxPointsOfChild}));
    }

    void exchange() {
        std::size_t busy = queue_.size();
        for (const Running& child : running_) {
            busy += child.claims.size();
        }
        const std::size_t wanted = points_wanted();
        const std::size_t idle = options_.jobs - running_.size();
        const std::size_t want = queue_.size() >= idle ? 0 : std::max(idle, wanted - std::min(wanted, busy));
        const std::vector<Claim> claims = database_.exchange(finished_, want);
        finished_.clear();
        queue_.insert(queue_.end(), claims.begin(), claims.end());
        may_have_more_ = claims.size() == want;
        last_exchange_ = Clock::now();
        refresh_counts();
    }

    void exchange_results() {
        (void)database_.exchange(finished_, 0);
        finished_.clear();
    }

    void refresh_counts() {
        counts_ = database_.counts();
        progress_(counts_);
    }

    // Short points go several to a child: a process costs more than they do.
    void start_points() {
        while (running_.size() < options_.jobs && !queue_.empty()) {
            const std::size_t share = (queue_.size() + options_.jobs - 1) / options_.jobs;
            const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(share);
            const std::deque<Claim> claims(queue_.begin(), end);
            queue_.erase(queue_.begin(), end);
            const auto work = [&](const ChildProcess::Send& send) {
                std::signal(SIGINT, SIG_IGN);  // the parent decides
                std::signal(SIGTERM, SIG_IGN);
                const Clock::time_point start = Clock::now();
                KnownContractions known;
                for (const Claim& claim : claims) {
                    send(pack(run_point(context_, claim, known)));
                    if (!forget_elaboration() || Clock::now() - start > kChildTime) {
                        break;  // the others go to whoever is free
                    }
                }
                return std::string();
            };
            running_.push_back({claims, std::make_unique<ChildProcess>(work, options_.limit_seconds)});
        }
    }

    void wait_for_points() {
        std::vector<pollfd> files;
        for (const Running& point : running_) {
            files.push_back({point.process->file(), POLLIN, 0});
        }
        if (poll(files.data(), files.size(), static_cast<int>(kSaveInterval.count())) <= 0) {
            progress_(counts_);
            return;
        }
        std::size_t i = 0;
        for (auto point = running_.begin(); point != running_.end(); ++i) {
            const bool ended = files[i].revents != 0 && point->process->receive();
            for (const std::string& message : point->process->take_messages()) {
                finish(*point, unpack(message));
            }
            if (ended) {
                end(*point);
                point = running_.erase(point);
            } else {
                ++point;
            }
        }
    }

    void finish(Running& child, PointResult result) {
        child.claims.pop_front();
        ++num_finished_;
        ++(result.status == Status::Done ? counts_.done : counts_.failed);
        --counts_.running;
        finished_.push_back(std::move(result));
        progress_(counts_);
    }

    // A child that failed failed at its next point; those behind it are still to do.
    void end(Running& child) {
        try {
            (void)child.process->result();
        } catch (const ChildError& error) {
            if (!child.claims.empty()) {
                finish(child, failed_point(context_, child.claims.front(), error.what()));
            }
        }
        queue_.insert(queue_.begin(), child.claims.begin(), child.claims.end());
    }

    // False when nothing is left, here or in other processes.
    bool wait_for_others() {
        refresh_counts();
        if (counts_.pending == 0 && counts_.running == 0) {
            return false;
        }
        if (counts_.pending == 0) {
            usleep(static_cast<useconds_t>(std::chrono::microseconds(kOthersInterval).count()));
            database_.take_over_abandoned();
        }
        may_have_more_ = true;
        return true;
    }

    Database& database_;
    const PointContext& context_;
    const WorkerOptions& options_;
    const std::function<void(const Counts&)>& progress_;
    Clock::time_point start_ = Clock::now();
    Clock::time_point last_exchange_ = start_;
    std::deque<Claim> queue_;
    std::list<Running> running_;
    std::vector<PointResult> finished_;
    std::size_t num_finished_ = 0;
    bool may_have_more_ = true;
    Counts counts_;
};

}  // namespace

void run_points(Database& database, const PointContext& context, const WorkerOptions& options,
                const std::function<void(const Counts&)>& progress) {
    const SignalGuard guard;
    Worker(database, context, options, progress).run();
}

}  // namespace contraflow::sweep
