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

#include "process/child_process.h"

namespace contraflow::sweep {

namespace {

using Clock = std::chrono::steady_clock;

// A kill loses what is not saved and what is running: at most half a second of results, and fewer than 100 points.
constexpr std::chrono::milliseconds kSaveInterval{500};
constexpr std::size_t kMaxUnsaved = 64;
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
    struct Running {
        Claim claim;
        std::unique_ptr<ChildProcess> process;
    };

    [[nodiscard]] bool needs_exchange() const {
        const bool save =
            !finished_.empty() && (finished_.size() >= kMaxUnsaved || Clock::now() - last_exchange_ >= kSaveInterval ||
                                   (running_.empty() && queue_.empty()));
        return save || (may_have_more_ && queue_.size() + running_.size() < options_.jobs);
    }

    // As many points as are likely to be finished until the next save, so that each save costs little.
    [[nodiscard]] std::size_t points_wanted() const {
        const double seconds = std::chrono::duration<double>(kSaveInterval).count();
        const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
        const auto likely = static_cast<std::size_t>(static_cast<double>(num_finished_) / (elapsed + 1e-3) * seconds);
        return std::clamp(likely, options_.jobs, std::max(options_.jobs, kMaxUnsaved));
    }

    void exchange() {
        const std::size_t busy = queue_.size() + running_.size();
        const std::size_t wanted = points_wanted();
        const std::size_t want = wanted > busy ? wanted - busy : 0;
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

    void start_points() {
        while (running_.size() < options_.jobs && !queue_.empty()) {
            const Claim claim = queue_.front();
            queue_.pop_front();
            const auto work = [&] {
                std::signal(SIGINT, SIG_IGN);  // the parent decides
                std::signal(SIGTERM, SIG_IGN);
                return pack(run_point(context_, claim));
            };
            running_.push_back({claim, std::make_unique<ChildProcess>(work, options_.limit_seconds)});
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
            if (files[i].revents != 0 && point->process->receive()) {
                finish(*point);
                point = running_.erase(point);
            } else {
                ++point;
            }
        }
    }

    void finish(Running& point) {
        try {
            finished_.push_back(unpack(point.process->result()));
        } catch (const ChildError& error) {
            finished_.push_back(failed_point(context_, point.claim, error.what()));
        }
        ++num_finished_;
        ++(finished_.back().status == Status::Done ? counts_.done : counts_.failed);
        --counts_.running;
        progress_(counts_);
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
