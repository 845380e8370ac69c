// What to write of a run's waveforms (docs/waveforms.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace contraflow {

struct CycleRange {
    std::uint64_t first = 0, last = 0;  // both included; cycles as kernels.csv counts them
};

struct TraceOptions {
    std::string vcd;                   // file to write; replaced if it exists
    std::string gtkw;                  // GTKWave save file for it; empty: none
    std::string kernels;               // shell pattern of kernel names; empty: whatever runs
    std::optional<CycleRange> cycles;  // only these
    std::vector<std::string> scope;    // shell patterns of signals or scopes; empty: the usual ones
    std::uint32_t step = 0;            // of the run, counted from 0
    std::uint64_t max_bytes = std::numeric_limits<std::uint64_t>::max();  // of the file: the trace ends there
    std::function<bool()> interrupted;  // asked now and then; true ends the run in mid-step
};

struct TraceSummary {
    std::uint64_t first_cycle = 0, last_cycle = 0;  // written
    std::uint64_t cycles = 0;                       // written in all
    std::size_t windows = 0;                        // stretches of cycles without a gap
    std::size_t signals = 0;
    std::uint64_t bytes = 0;
    bool full = false;         // the file reached max_bytes
    bool interrupted = false;  // the run was ended
};

}  // namespace contraflow
