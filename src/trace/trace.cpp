#include "trace/trace.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "config/nearest.h"
#include "contraflow/error.h"
#include "trace/gtkwave_file.h"

namespace contraflow {

namespace {

constexpr std::uint64_t kPsPerNs = 1000;
constexpr std::size_t kSuggestions = 3;
constexpr Cycle kShownCycles = 24;  // at first, in GTKWave: names are readable

bool matches(const std::string& pattern, const std::string& name) {
    return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

// Names that a mistyped pattern may mean: those it is the beginning or a part of, else the nearest ones.
std::vector<std::string> suggestions(const std::string& pattern, const std::vector<std::string>& names) {
    std::string word = pattern;
    word.erase(std::remove_if(word.begin(), word.end(), [](char c) { return c == '*' || c == '?'; }), word.end());
    std::vector<std::pair<std::size_t, std::string>> ranked;
    for (const std::string& name : names) {
        const std::size_t distance =
            name.find(word) != std::string::npos ? 0 : config::edit_distance(word.substr(0, name.size() + 1), name);
        ranked.emplace_back(distance, name);
    }
    std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::string> best;
    for (std::size_t i = 0; i < std::min(kSuggestions, ranked.size()); ++i) {
        best.push_back(ranked[i].second);
    }
    return best;
}

// A pattern of signals matches a whole name, a scope, or any part between dots: engine0, pe_0_0.acc, bram.bram3.
bool matches_part(const std::string& pattern, const std::string& name) {
    for (std::size_t begin = 0;; begin = name.find('.', begin) + 1) {
        for (std::size_t end = name.find('.', begin);; end = name.find('.', end + 1)) {
            const bool last = end == std::string::npos;
            if (matches(pattern, name.substr(begin, last ? end : end - begin))) {
                return true;
            }
            if (last) {
                break;
            }
        }
        if (name.find('.', begin) == std::string::npos) {
            return false;
        }
    }
}

void add_memories(const AccessTable& access, std::vector<bool>& memories) {
    if (access.present) {
        memories[index_of(access.ram)] = true;
    }
}

}  // namespace

// Wakes the trace at the first cycle of a range, which no kernel's start or end need fall on.
class Trace::Alarm : public Block {
public:
    Alarm(Trace& trace, ClockDomain& clock) : Block("trace_alarm", clock), trace_(trace) {}

private:
    void edge() override { trace_.open_if_wanted(cycle()); }
    [[nodiscard]] Cycle next_event() const override {
        const auto& cycles = trace_.options_.cycles;
        return cycles && cycles->first > cycle() ? cycles->first - cycle() : kNever;
    }
    void advance(Cycle) override {}
    [[nodiscard]] bool has_work() const override { return false; }

    Trace& trace_;
};

Trace::Trace(Machine& machine, const Program& program, const Config& config, bool values, const TraceOptions& options)
    : machine_(machine),
      program_(program),
      options_(options),
      matches_(matching_kernels()),
      shown_memory_(memories_of_kernels()) {
    for (std::size_t i = 0; i < program.rams.size(); ++i) {
        memory_named_.emplace(program.rams[i].name, i);
    }
    try {
        file_ = std::make_unique<VcdFile>(options.vcd, options.max_bytes);
    } catch (const std::runtime_error& error) {
        throw ConfigError(fmt::format("--vcd {}; expected a file that can be written", error.what()));
    }
    std::vector<std::string> names;
    probes_ = std::make_unique<MachineProbes>(machine, program, config, values, *file_, [&](const std::string& name) {
        names.push_back(name);
        return wants_signal(name);
    });
    const auto refuse = [&](const std::string& problem) {
        file_.reset();
        std::filesystem::remove(options.vcd);
        throw ConfigError(problem);
    };
    if (file_->signals().empty()) {
        refuse(fmt::format("--scope {}: matches no signal; near it: {}", fmt::join(options.scope, " "),
                           fmt::join(suggestions(options.scope.front(), names), ", ")));
    }
    // Edges and the middle between them in whole ns, where nothing needs more.
    const std::uint64_t period = machine.clk.edge_ps(1);
    if (machine.clk.edge_ps(kPsPerNs) == period * kPsPerNs && period % (2 * kPsPerNs) == 0 && !probes_->dram_traced()) {
        file_->use_ns();
    }
    if (file_->header_bytes() > options.max_bytes) {
        refuse(fmt::format("--max-bytes {}: the header alone takes {} bytes; expected more, or a smaller --scope",
                           options.max_bytes, file_->header_bytes()));
    }
    summary_.signals = file_->signals().size();
    alarm_ = std::make_unique<Alarm>(*this, machine.clk);  // last: the clock keeps it
    file_->on_time_step = [this] { time_step(); };
    machine.sequencer->on_step = [this](std::uint32_t step) { note_step(step); };
    machine.sequencer->on_issue = [this](const KernelRecord& record) { note_issue(record); };
    machine.sequencer->on_done = [this](const KernelRecord& record) { note_done(record); };
}

Trace::~Trace() {
    machine_.sequencer->on_step = nullptr;
    machine_.sequencer->on_issue = nullptr;
    machine_.sequencer->on_done = nullptr;
    try {
        finish();
    } catch (const std::runtime_error&) {  // on the way out of an error, which is told instead
    }
}

std::vector<bool> Trace::matching_kernels() const {
    std::vector<bool> result;
    std::vector<std::string> names;
    for (const KernelCommand& kernel : program_.kernels) {
        names.push_back(kernel.name);
        result.push_back(options_.kernels.empty() || matches(options_.kernels, kernel.name));
    }
    if (std::find(result.begin(), result.end(), true) == result.end()) {
        throw ConfigError(fmt::format("--kernel {}: matches no kernel of the step; near it: {}", options_.kernels,
                                      fmt::join(suggestions(options_.kernels, names), ", ")));
    }
    return result;
}

// Memories that the matching kernels use.
std::vector<bool> Trace::memories_of_kernels() const {
    std::vector<bool> memories(program_.rams.size());
    for (std::size_t i = 0; i < program_.kernels.size(); ++i) {
        if (!matches_[i]) {
            continue;
        }
        const KernelCommand& kernel = program_.kernels[i];
        switch (kernel.unit) {
            case UnitKind::Engine: {
                const ContractionCommand& command = program_.contractions[kernel.command];
                for (const AccessTable* access :
                     {&command.a, &command.b, &command.out, &command.bias, &command.residual}) {
                    add_memories(*access, memories);
                }
                break;
            }
            case UnitKind::Vector:
                for (const VectorSegmentCommand& segment : program_.vectors[kernel.command].segments) {
                    for (const auto* operands : {&segment.in, &segment.out}) {
                        for (const AccessTable& access : *operands) {
                            add_memories(access, memories);
                        }
                    }
                }
                break;
            case UnitKind::Dma:
                add_memories(program_.transfers[kernel.command].chip, memories);
                break;
        }
    }
    return memories;
}

// By name alone. Without --scope: all but the PEs, of which one per engine stands for the others, and the memories and
// the DRAM if the chosen kernels do not use them.
bool Trace::wants_signal(const std::string& name) const {
    if (!options_.scope.empty()) {
        return std::any_of(options_.scope.begin(), options_.scope.end(),
                           [&](const std::string& pattern) { return matches_part(pattern, name); });
    }
    if (name.find(".pe_") != std::string::npos) {
        return name.find(".pe_0_0.") != std::string::npos;
    }
    if (name == "top.clk_mem" || name.rfind("top.dram.", 0) == 0) {
        return shows_dram();
    }
    // top.bram.bram3.bank0_a_en
    const std::size_t last = name.rfind('.');
    const std::size_t before = name.rfind('.', last - 1);
    const auto memory = memory_named_.find(name.substr(before + 1, last - before - 1));
    return memory == memory_named_.end() || shown_memory_[memory->second];
}

bool Trace::shows_dram() const {
    for (std::size_t i = 0; i < program_.kernels.size(); ++i) {
        if (matches_[i] && program_.kernels[i].unit == UnitKind::Dma) {
            return true;
        }
    }
    return false;
}

bool Trace::wanted(Cycle edge) const {
    const bool in_range = !options_.cycles || (options_.cycles->first <= edge && edge <= options_.cycles->last);
    return in_step_ && in_range && !file_->full() && (options_.kernels.empty() || running_ > 0);
}

void Trace::note_step(std::uint32_t step) {
    in_step_ = step == options_.step;
    open_if_wanted(machine_.sequencer->cycle());
    check_interrupt();
}

void Trace::note_issue(const KernelRecord& record) {
    if (in_step_ && matches_[record.kernel] && !options_.kernels.empty()) {
        ++running_;
        kernels_.push_back({record.kernel, record.start, 0, record.unit});
        open_if_wanted(record.start);
    }
    check_interrupt();
}

void Trace::note_done(const KernelRecord& record) {
    for (TracedKernel& kernel : kernels_) {
        if (kernel.kernel == record.kernel && kernel.end == 0) {
            kernel.end = record.end;
            --running_;
        }
    }
    check_interrupt();
}

void Trace::check_interrupt() {
    if (options_.interrupted && !summary_.interrupted && options_.interrupted()) {
        summary_.interrupted = true;
        machine_.stop();
    }
}

void Trace::open_if_wanted(Cycle edge) {
    if (!open_ && wanted(edge)) {
        open_ = true;
        sampled_ = false;
        machine_.clk.open_window();
        machine_.clk_mem.open_window();
    }
}

// SystemC's time is about to move on.
void Trace::time_step() {
    if (!open_) {
        return;
    }
    const ClockDomain& clk = machine_.clk;
    const ClockDomain& clk_mem = machine_.clk_mem;
    const bool fabric = clk.at_edge() && !(sampled_ && clk.cycle() == last_sample_);
    if (!sampled_ && !fabric) {
        return;  // on the way to the window's first edge
    }
    const bool dram = probes_->dram_traced() && sampled_ && clk_mem.at_edge() && clk_mem.cycle() != last_dram_sample_;
    if (fabric || dram) {
        sample(fabric, dram);
    }
    if (fabric && !wanted(clk.cycle() + 1)) {
        close_window();
    }
    check_interrupt();
}

void Trace::sample(bool fabric, bool dram) {
    const std::uint64_t now = sc_core::sc_time_stamp().value();
    const auto middle = [now](const ClockDomain& clock) { return now + (clock.edge_ps(clock.cycle() + 1) - now) / 2; };
    let_fall(now);
    if (dram) {
        last_dram_sample_ = machine_.clk_mem.cycle();
        probes_->clk_mem = true;
        clk_mem_falls_ = middle(machine_.clk_mem);
        probes_->update_dram();
    }
    if (fabric) {
        machine_.clk.enter_window();
        machine_.clk_mem.enter_window();
        last_sample_ = machine_.clk.cycle();
        probes_->clk = true;
        clk_falls_ = middle(machine_.clk);
        probes_->update();
    }
    if (sampled_) {
        file_->sample(now);
    } else {
        sampled_ = true;
        probes_->follow_dram(true);
        last_dram_sample_ = machine_.clk_mem.cycle();
        file_->begin(now);
        ++summary_.windows;
    }
    probes_->settle();
    if (fabric && !file_->full()) {
        summary_.first_cycle = summary_.cycles == 0 ? last_sample_ : summary_.first_cycle;
        summary_.last_cycle = last_sample_;
        ++summary_.cycles;
    }
}

// Falling edges up to a time, in order.
void Trace::let_fall(std::uint64_t until) {
    const auto fall = [&](std::optional<std::uint64_t>& at, bool& clk) {
        if (at && *at <= until) {
            clk = false;
            file_->set(clk, *at);
            at.reset();
        }
    };
    if (clk_falls_ && clk_mem_falls_ && *clk_falls_ < *clk_mem_falls_) {
        fall(clk_falls_, probes_->clk);
    }
    fall(clk_mem_falls_, probes_->clk_mem);
    fall(clk_falls_, probes_->clk);
}

void Trace::close_window() {
    if (sampled_) {
        const std::uint64_t end = machine_.clk.edge_ps(last_sample_ + 1);
        let_fall(end);
        file_->end(end);
        probes_->follow_dram(false);
    }
    open_ = false;
    machine_.clk.close_window();
    machine_.clk_mem.close_window();
}

TraceSummary Trace::finish() {
    if (finished_) {
        return summary_;
    }
    finished_ = true;
    if (open_) {
        close_window();
    }
    summary_.full = file_->full();
    file_->on_time_step = nullptr;
    file_->close();
    summary_.bytes = file_->bytes();
    if (summary_.cycles == 0 && !summary_.interrupted && !summary_.full) {
        std::filesystem::remove(options_.vcd);
        throw ConfigError(miss());
    }
    write_save_file();
    return summary_;
}

// Why no cycle was in the window.
std::string Trace::miss() const {
    const std::vector<StepRecord>& steps = machine_.sequencer->steps();
    if (steps.size() <= options_.step) {
        return fmt::format("--step {}: the run has {} steps", options_.step, steps.size());
    }
    if (!options_.cycles) {
        return fmt::format("--kernel {}: no such kernel ran", options_.kernels);
    }
    const std::string range = fmt::format("--cycles {}:{}", options_.cycles->first, options_.cycles->last);
    std::string runs;
    for (const TracedKernel& kernel : kernels_) {
        runs += fmt::format("{}{} from {} to {}", runs.empty() ? "" : ", ", program_.kernels[kernel.kernel].name,
                            kernel.start, kernel.end);
    }
    return fmt::format("{}: outside of {}", range,
                       runs.empty() ? fmt::format("step {}, which runs from cycle {} to {}", options_.step,
                                                  steps[options_.step].start, steps[options_.step].end)
                                    : runs);
}

// What explains the chosen kernels best: the first engine of each gang, the unit, the memories they use.
std::vector<std::string> Trace::focus() const {
    std::vector<std::string> scopes;
    const auto add = [&](const std::string& scope) {
        if (std::find(scopes.begin(), scopes.end(), scope) == scopes.end()) {
            scopes.push_back(scope);
        }
    };
    for (const TracedKernel& kernel : kernels_) {
        const UnitKind unit = program_.kernels[kernel.kernel].unit;
        if (unit == UnitKind::Dma) {
            add("top.dma");
        } else {
            add(fmt::format("top.{}{}", unit == UnitKind::Engine ? "engine" : "vector", kernel.unit));
        }
    }
    const auto add_memory = [&](std::size_t ram) {
        add(fmt::format("top.{}.{}", to_string(program_.rams[ram].kind), program_.rams[ram].name));
    };
    for (const TracedKernel& kernel : kernels_) {  // of a contraction, operands first
        if (program_.kernels[kernel.kernel].unit == UnitKind::Engine) {
            const ContractionCommand& command = program_.contractions[program_.kernels[kernel.kernel].command];
            add_memory(index_of(command.a.ram));
            add_memory(index_of(command.b.ram));
        }
    }
    for (std::size_t i = 0; i < program_.rams.size(); ++i) {
        if (shown_memory_[i]) {
            add_memory(i);
        }
    }
    return scopes;
}

void Trace::write_save_file() const {
    if (options_.gtkw.empty()) {
        return;
    }
    GtkwaveView view;
    view.dump = options_.vcd;
    view.signals = file_->signals();
    const auto time_of = [&](Cycle edge) { return machine_.clk.edge_ps(edge) / file_->unit_ps(); };
    view.begin = time_of(summary_.first_cycle);
    view.end = time_of(summary_.last_cycle + 1);
    view.shown = time_of(std::min(summary_.last_cycle + 1, summary_.first_cycle + kShownCycles)) - view.begin;
    for (const TracedKernel& kernel : kernels_) {
        const std::string& name = program_.kernels[kernel.kernel].name;
        view.markers.push_back({time_of(kernel.start), name});
        if (kernel.end != 0) {
            view.markers.push_back({time_of(kernel.end), name + " done"});
        }
    }
    view.focus = focus();
    if (kernels_.empty()) {
        view.markers = {{view.begin, "begin"}, {view.end, "end"}};
    }
    write_gtkwave_file(options_.gtkw, view);
}

}  // namespace contraflow
