#include "trace/gtkwave_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>

namespace contraflow {

namespace {

// Bits of the flags in front of signals (GTKWave's analyzer.h).
constexpr unsigned kHex = 0x2, kDecimal = 0x4, kBinary = 0x8, kRightJustified = 0x20, kBlank = 0x200,
                   kAnalogStep = 0x8000, kAnalogExtension = 0x20000, kFullScale = 0x80000, kClosed = 0x400000,
                   kGroupBegin = 0x800000, kGroupEnd = 0x1000000;
constexpr unsigned kAnalog = kHex | kRightJustified | kAnalogStep | kFullScale;
constexpr std::size_t kMaxMarkers = 26;
constexpr int kAnalogRows = 2;  // beside the signal's own
constexpr int kWidth = 1400, kHeight = 900, kNameWidth = 260, kTreeWidth = 200;
constexpr double kWavePixels = 0.8 * (kWidth - kNameWidth - kTreeWidth);

bool is_address(const std::string& name) {
    return name.size() > 5 && name.compare(name.size() - 5, 5, "_addr") == 0;
}

std::string scope_of(const std::string& name) {
    return name.substr(0, name.rfind('.'));
}

class Writer {
public:
    void show(const TracedSignal& signal) {
        const std::string range =
            signal.kind == TracedSignal::Kind::Number ? fmt::format("[{}:0]", signal.width - 1) : "";
        flags(flags_of(signal));
        line(signal.name + range);
        if (signal.kind == TracedSignal::Kind::Real) {
            flags(kAnalogExtension);
            for (int i = 0; i < kAnalogRows; ++i) {
                line("-");
            }
        }
    }
    void begin_group(const std::string& name, bool closed) {
        flags(kGroupBegin | kBlank | (closed ? kClosed : 0));
        line("-" + name);
    }
    void end_group(const std::string& name) {
        flags(kGroupEnd | kBlank);
        line("-" + name);
    }
    void line(const std::string& text) { text_ += text + '\n'; }
    [[nodiscard]] const std::string& text() const { return text_; }

private:
    static unsigned flags_of(const TracedSignal& signal) {
        switch (signal.kind) {
            case TracedSignal::Kind::Bit:
                return kRightJustified | kBinary;
            case TracedSignal::Kind::Number:
                return kRightJustified | (is_address(signal.name) && signal.width == 40 ? kHex : kDecimal);
            case TracedSignal::Kind::Real:
                return kAnalog;
            case TracedSignal::Kind::Text:
                break;
        }
        return kHex;
    }
    void flags(unsigned value) {
        if (value != flags_) {
            flags_ = value;
            line(fmt::format("@{:x}", value));
        }
    }

    unsigned flags_ = 0;
    std::string text_;
};

std::string title(const std::string& scope) {
    return scope == "top" ? "clock" : scope.substr(scope.find('.') + 1);
}

}  // namespace

void write_gtkwave_file(const std::string& path, const GtkwaveView& view) {
    Writer writer;
    writer.line("[*] contraflow trace: open with gtkwave " + path);
    writer.line(fmt::format("[dumpfile] \"{}\"", std::filesystem::absolute(view.dump).lexically_normal().string()));
    writer.line(fmt::format("[savefile] \"{}\"", std::filesystem::absolute(path).lexically_normal().string()));
    writer.line(fmt::format("[timestart] {}", view.begin));
    writer.line(fmt::format("[size] {} {}", kWidth, kHeight));
    const double per_pixel = static_cast<double>(std::max<std::uint64_t>(view.end - view.begin, 1)) / kWavePixels;
    std::string times;
    for (std::size_t i = 0; i < kMaxMarkers; ++i) {
        times += i < view.markers.size() ? fmt::format(" {}", view.markers[i].time) : " -1";
    }
    writer.line(fmt::format("*{:.6f} {}{}", -std::log2(per_pixel), view.begin, times));
    for (std::size_t i = 0; i < std::min(view.markers.size(), kMaxMarkers); ++i) {
        writer.line(fmt::format("[markername] {}{}", static_cast<char>('A' + i), view.markers[i].name));
    }
    writer.line("[treeopen] top.");
    writer.line(fmt::format("[sst_width] {}", kTreeWidth));
    writer.line(fmt::format("[signals_width] {}", kNameWidth));
    writer.line("[sst_expanded] 1");
    // One group per scope in order of appearance; banks are many, so that memories start closed.
    std::vector<std::string> scopes;
    std::map<std::string, std::vector<const TracedSignal*>> by_scope;
    for (const TracedSignal& signal : view.signals) {
        auto& list = by_scope[scope_of(signal.name)];
        if (list.empty()) {
            scopes.push_back(scope_of(signal.name));
        }
        list.push_back(&signal);
    }
    for (const std::string& scope : scopes) {
        const auto dots = std::count(scope.begin(), scope.end(), '.');
        const bool many = by_scope[scope].size() > 20;
        if (scope != "top") {
            writer.begin_group(title(scope), many || (dots == 1 && scope == "top.interconnect"));
        }
        for (const TracedSignal* signal : by_scope[scope]) {
            writer.show(*signal);
        }
        if (scope != "top") {
            writer.end_group(title(scope));
        }
    }
    writer.line("[pattern_trace] 1");
    writer.line("[pattern_trace] 0");
    std::ofstream file(path, std::ios::binary);
    file << writer.text();
    file.close();
    if (!file) {
        throw std::runtime_error(path + ": could not be written");
    }
}

}  // namespace contraflow
