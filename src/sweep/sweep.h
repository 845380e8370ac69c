// Runs the points of a sweep, several at once.
#pragma once

#include <csignal>
#include <cstddef>
#include <functional>
#include <stdexcept>

#include "sweep/database.h"
#include "sweep/point.h"

namespace contraflow::sweep {

// SIGINT or SIGTERM ended the sweep; what was finished is saved.
class Interrupted : public std::runtime_error {
public:
    explicit Interrupted(int signal_number) : std::runtime_error("interrupted"), signal(signal_number) {}
    int signal;
};

struct WorkerOptions {
    std::size_t jobs = 1;        // child processes at once
    unsigned limit_seconds = 0;  // of wall-clock time per point, 0: none
};

// Runs all pending points of the database in child processes, and returns when no point of the sweep is
// pending or running, also those that other processes have claimed. Results are saved at least every half second and 64
// points. `progress` is called after every change and at least twice a second.
void run_points(Database& database, const PointContext& context, const WorkerOptions& options,
                const std::function<void(const Counts&)>& progress);

}  // namespace contraflow::sweep
