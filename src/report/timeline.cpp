#include "report/timeline.h"

#include <fmt/format.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

#include "step/extent.h"

namespace contraflow {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kProcess = 0;
constexpr double kMicrosecondsPerSecond = 1e6;

class Timeline {
public:
    Timeline(const RunReport& report, const Step& step) : report_(report), step_(step) {
        add_track("steps");
        engines_ = add_tracks("engine", report.config.engine.count);
        vector_units_ = add_tracks("vector", report.config.vector.count);
        dma_ = add_track("dma");
        channels_ = add_tracks("dram", report.config.dram.channels);
    }

    [[nodiscard]] std::string text() {
        for (std::size_t i = 0; i < report_.outcomes.size(); ++i) {
            const StepOutcome& outcome = report_.outcomes[i];
            add_slice(kSteps, fmt::format("step {}", i), "step", outcome.start, outcome.end,
                      {{"start", outcome.start}, {"end", outcome.end}});
        }
        for (const KernelReport& kernel : report_.kernels) {
            add(kernel);
        }
        Json json;
        json["displayTimeUnit"] = "ns";
        json["otherData"] = {{"clock_hz", report_.config.fabric_hz}};
        json["traceEvents"] = std::move(events_);
        return json.dump() + "\n";
    }

private:
    static constexpr int kSteps = 0;

    int add_track(const std::string& name) {
        const int track = tracks_++;
        for (const auto& [what, value] : {std::pair<const char*, Json>{"thread_name", {{"name", name}}},
                                          std::pair<const char*, Json>{"thread_sort_index", {{"sort_index", track}}}}) {
            events_.push_back({{"ph", "M"}, {"pid", kProcess}, {"tid", track}, {"name", what}, {"args", value}});
        }
        return track;
    }
    int add_tracks(const std::string& name, int count) {
        const int first = tracks_;
        for (int i = 0; i < count; ++i) {
            add_track(name + std::to_string(i));
        }
        return first;
    }

    void add(const KernelReport& kernel) {
        const Extent extent = extent_of(step_.kernels[kernel.kernel]);
        Json args = {{"step", kernel.step},           {"phase", to_string(kernel.phase)},
                     {"operation", extent.operation}, {"shape", shape_text(extent)},
                     {"macs", kernel.macs},           {"units", kernel.units},
                     {"start", kernel.start},         {"end", kernel.end},
                     {"busy", kernel.cycles.busy}};
        for (const auto& [cause, cycles] : stalls_of(kernel.cycles)) {
            args[cause] = cycles;
        }
        const auto add_to = [&](int first, int count) {
            for (int i = 0; i < count; ++i) {
                add_slice(first + i, kernel.name, to_string(kernel.kernel_class), kernel.start, kernel.end, args);
            }
        };
        switch (kernel.unit_kind) {
            case UnitKind::Engine:
                add_to(engines_ + kernel.first_unit, kernel.units);
                break;
            case UnitKind::Vector:
                add_to(vector_units_ + kernel.first_unit, 1);
                break;
            case UnitKind::Dma:
                add_to(dma_, 1);
                add_to(channels_, report_.config.dram.channels);
                break;
        }
    }

    void add_slice(int track, const std::string& name, const char* category, std::uint64_t start, std::uint64_t end,
                   const Json& args) {
        const double period = kMicrosecondsPerSecond / static_cast<double>(report_.config.fabric_hz);
        events_.push_back({{"ph", "X"},
                           {"pid", kProcess},
                           {"tid", track},
                           {"ts", static_cast<double>(start) * period},
                           {"dur", static_cast<double>(end - start) * period},
                           {"name", name},
                           {"cat", category},
                           {"args", args}});
    }

    const RunReport& report_;
    const Step& step_;
    Json events_ = Json::array();
    int tracks_ = 0;
    int engines_ = 0, vector_units_ = 0, dma_ = 0, channels_ = 0;  // first track of each
};

}  // namespace

std::string timeline_json(const RunReport& report, const Step& step) {
    return Timeline(report, step).text();
}

}  // namespace contraflow
