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
                   kGroupBegin = 0x800000, kGroupEnd = 0x1000000, kCollapsed = 0x1000;
constexpr unsigned kAnalog = kHex | kRightJustified | kAnalogStep | kFullScale;
constexpr std::size_t kMaxMarkers = 26;
constexpr int kAnalogRows = 2;  // beside the signal's own
constexpr int kWidth = 1400, kHeight = 900, kNameWidth = 320, kTreeWidth = 40;
constexpr double kWavePixels = 0.9 * (kWidth - kNameWidth);
constexpr double kFramePixels = 200;    // GTKWave's zoom z: this many pixels are 2^-z time units
constexpr std::size_t kOpenBanks = 16;  // memories of more banks start closed

bool ends_with(const std::string& name, const std::string& end) {
    return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

std::string scope_of(const std::string& name) {
    return name.substr(0, name.rfind('.'));
}

class Writer {
public:
    void show(const TracedSignal& signal) {
        if (ends_with(signal.name, ".activity")) {
            line("[color] 3");
        } else if (ends_with(signal.name, "_en")) {
            line("[color] 2");
        }
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
    void show_all(const std::vector<const TracedSignal*>& signals) {
        for (const TracedSignal* signal : signals) {
            show(*signal);
        }
    }
    void begin_group(const std::string& name, bool closed) {
        closed_.push_back(closed);
        flags(kGroupBegin | kBlank | (closed ? kClosed : 0));
        line("-" + name);
    }
    void end_group(const std::string& name) {
        flags(kGroupEnd | kBlank | (closed_.back() ? kClosed | kCollapsed : 0));
        closed_.pop_back();
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
                return kRightJustified | (ends_with(signal.name, ".dram_addr") ? kHex : kDecimal);
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
    std::vector<bool> closed_;  // the groups that are begun
    std::string text_;
};

std::string title(const std::string& scope) {
    return scope.substr(scope.find('.') + 1);
}

bool is_memory(const std::vector<const TracedSignal*>& signals) {
    return std::any_of(signals.begin(), signals.end(),
                       [](const TracedSignal* signal) { return ends_with(signal->name, "_en"); });
}

// A memory: who has its ports, then the enables of all banks side by side, port by port; the rest on demand.
void show_memory(Writer& writer, const std::string& name, const std::vector<const TracedSignal*>& signals,
                 bool closed) {
    std::vector<const TracedSignal*> owners;
    std::map<std::string, std::vector<const TracedSignal*>> enables, others;  // by port
    for (const TracedSignal* signal : signals) {
        const std::string base = signal->name.substr(signal->name.rfind('.') + 1);
        const std::size_t underscore = base.find('_');
        if (base.rfind("bank", 0) != 0 || underscore == std::string::npos) {
            owners.push_back(signal);
        } else {
            (ends_with(base, "_en") ? enables : others)[base.substr(underscore + 1, 1)].push_back(signal);
        }
    }
    writer.begin_group(name, closed);
    writer.show_all(owners);
    for (const auto& [port, list] : enables) {
        const std::string group = name + " port " + port + " enables";
        writer.begin_group(group, list.size() > kOpenBanks);
        writer.show_all(list);
        writer.end_group(group);
    }
    for (const auto& [port, list] : others) {
        const std::string group = name + " port " + port + " writes and rows";
        writer.begin_group(group, true);
        writer.show_all(list);
        writer.end_group(group);
    }
    writer.end_group(name);
}

}  // namespace

void write_gtkwave_file(const std::string& path, const GtkwaveView& view) {
    Writer writer;
    writer.line("[*] contraflow trace: open with gtkwave " + path);
    writer.line(fmt::format("[dumpfile] \"{}\"", std::filesystem::absolute(view.dump).lexically_normal().string()));
    writer.line(fmt::format("[savefile] \"{}\"", std::filesystem::absolute(path).lexically_normal().string()));
    writer.line(fmt::format("[timestart] {}", view.begin));
    writer.line(fmt::format("[size] {} {}", kWidth, kHeight));
    const double per_pixel = static_cast<double>(std::max<std::uint64_t>(view.shown, 1)) / kWavePixels;
    std::string times;
    for (std::size_t i = 0; i < kMaxMarkers; ++i) {
        times += i < view.markers.size() ? fmt::format(" {}", view.markers[i].time) : " -1";
    }
    writer.line(fmt::format("*{:.6f} {}{}", -std::log2(per_pixel * kFramePixels), view.begin, times));
    for (std::size_t i = 0; i < std::min(view.markers.size(), kMaxMarkers); ++i) {
        writer.line(fmt::format("[markername] {}{}", static_cast<char>('A' + i), view.markers[i].name));
    }
    writer.line("[treeopen] top.");
    writer.line(fmt::format("[sst_width] {}", kTreeWidth));
    writer.line(fmt::format("[signals_width] {}", kNameWidth));
    writer.line("[sst_expanded] 0");
    // One group per scope: the clock and those in focus open, then the others closed.
    std::vector<std::string> scopes;
    std::map<std::string, std::vector<const TracedSignal*>> by_scope;
    for (const TracedSignal& signal : view.signals) {
        auto& list = by_scope[scope_of(signal.name)];
        if (list.empty()) {
            scopes.push_back(scope_of(signal.name));
        }
        list.push_back(&signal);
    }
    // Of a kernel's run the sequencer shows little; without kernels everything is of interest alike.
    const auto rank = [&](const std::string& scope) {
        const auto in_focus = std::find_if(view.focus.begin(), view.focus.end(), [&](const std::string& focus) {
            return scope == focus || scope.rfind(focus + ".", 0) == 0;
        });
        return scope == "top" ? 0 : in_focus != view.focus.end() ? 1 + (in_focus - view.focus.begin()) : 1000;
    };
    std::stable_sort(scopes.begin(), scopes.end(),
                     [&](const std::string& a, const std::string& b) { return rank(a) < rank(b); });
    for (const std::string& scope : scopes) {
        if (scope == "top") {
            writer.show_all(by_scope[scope]);
        } else if (is_memory(by_scope[scope])) {
            show_memory(writer, title(scope), by_scope[scope], rank(scope) >= 1000);
        } else {
            writer.begin_group(title(scope), rank(scope) >= 1000 && !view.focus.empty());
            writer.show_all(by_scope[scope]);
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
