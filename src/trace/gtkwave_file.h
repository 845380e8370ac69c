// A GTKWave save file: which signals of a dump are shown, how, and where the markers stand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/vcd_file.h"

namespace contraflow {

struct GtkwaveMarker {
    std::uint64_t time = 0;
    std::string name;
};

struct GtkwaveView {
    std::string dump;                   // path of the VCD file
    std::vector<TracedSignal> signals;  // in the dump
    std::uint64_t begin = 0, end = 0;   // of the dump, in its units
    std::uint64_t shown = 0;            // from `begin` on, on the screen
    std::vector<GtkwaveMarker> markers;
    std::vector<std::string> focus;  // scopes that come first and open
};

// Throws std::runtime_error if the file cannot be written.
void write_gtkwave_file(const std::string& path, const GtkwaveView& view);

}  // namespace contraflow
