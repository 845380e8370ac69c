// DRAM request traces: one request of one burst per line, `cycle R|W 0xaddress`, in order of time; blank lines and
// lines that begin with # are skipped. Plain text or gzip.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/cycle.h"

namespace contraflow {

struct TraceRequest {
    Cycle cycle = 0;  // the request may enter then or later
    std::uint64_t address = 0;
    std::uint32_t line = 0;  // of the trace, from 0
    bool write = false;
};

// Throws ConfigError that names file, line (from 1) and what is wrong with it, also for an address at or beyond
// `capacity_bytes` of the memory called `memory_name`.
[[nodiscard]] std::vector<TraceRequest> read_request_trace(const std::string& path, std::uint64_t capacity_bytes,
                                                           const std::string& memory_name);

}  // namespace contraflow
