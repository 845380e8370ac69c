#include "sequencer/sequencer.h"

#include <algorithm>

namespace contraflow {

namespace {

template <typename Port, typename Count>
void add_ports(std::vector<std::unique_ptr<Port>>& ports, const std::string& name, Count count) {
    for (Count i = 0; i < count; ++i) {
        ports.push_back(std::make_unique<Port>((name + "_" + std::to_string(i)).c_str()));
    }
}

}  // namespace

Sequencer::Sequencer(const sc_core::sc_module_name& name, ClockDomain& clock, const Config& config)
    : Block(name, clock),
      doorbell_in("doorbell_in"),
      done_out("done_out"),
      dma_out("dma_out"),
      dma_in("dma_in"),
      config_(config),
      doorbells_(*this),
      dma_done_(*this),
      dependents_(config.program->kernels.size()),
      record_of_(config.program->kernels.size()),
      engine_busy_(static_cast<std::size_t>(config.engines)),
      vector_busy_(static_cast<std::size_t>(config.vector_units)),
      totals_(config.program->kernels.size()) {
    doorbell_in.bind(doorbells_);
    dma_in.bind(dma_done_);
    add_ports(engine_out, "engine_out", config.engines);
    add_ports(engine_in, "engine_in", config.engines);
    add_ports(vector_out, "vector_out", config.vector_units);
    add_ports(vector_in, "vector_in", config.vector_units);
    for (auto& port : engine_in) {
        engine_done_.push_back(std::make_unique<DoneIn>(*this));
        port->bind(*engine_done_.back());
    }
    for (auto& port : vector_in) {
        vector_done_.push_back(std::make_unique<DoneIn>(*this));
        port->bind(*vector_done_.back());
    }
    const auto& kernels = config.program->kernels;
    for (std::uint32_t kernel = 0; kernel < kernels.size(); ++kernel) {
        for (const std::uint32_t dependence : kernels[kernel].dependences) {
            dependents_[dependence].push_back(kernel);
        }
    }
}

void Sequencer::edge() {
    // 1. Completions free units and dependences; the last one ends the step.
    const bool completed = take_completions();
    // 2. A doorbell starts a step.
    if (!active_) {
        if (!doorbells_.ready()) {
            ++(completed ? stats_.busy_cycles : stats_.idle_cycles);
            return;
        }
        start_step(doorbells_.take());
    }
    // 3. At most one kernel leaves.
    const bool issued = issue();
    ++(completed || issued ? stats_.busy_cycles : stats_.stall_dependence_cycles);
}

Cycle Sequencer::next_event() const {
    if (!active_ || ready_.empty() || blocked_) {
        return kNever;
    }
    return issue_allowed_ > cycle() ? issue_allowed_ - cycle() : 1;
}

void Sequencer::advance(Cycle n) {
    (active_ ? stats_.stall_dependence_cycles : stats_.idle_cycles) += n;
}

void Sequencer::start_step(const Doorbell& doorbell) {
    active_ = true;
    step_ = doorbell.step;
    if (steps_.size() > config_.kept_steps) {
        records_.resize(kept_records_);  // of the step before, which is no longer the last
    }
    steps_.push_back({cycle(), 0, {}});
    running_ = 0;
    completed_ = 0;
    issue_allowed_ = cycle() + static_cast<Cycle>(config_.sequencer.decode_cycles);
    blocked_ = false;
    ready_.clear();
    open_.clear();
    const auto& kernels = config_.program->kernels;
    for (std::uint32_t kernel = 0; kernel < kernels.size(); ++kernel) {
        open_.push_back(static_cast<std::uint32_t>(kernels[kernel].dependences.size()));
        if (open_.back() == 0) {
            insert_ready(kernel);
        }
    }
    ++stats_.num_steps;
}

bool Sequencer::take_completions() {
    bool any = false;
    const auto take = [&](DoneIn& mailbox) {
        while (mailbox.ready()) {
            complete(mailbox.take());
            any = true;
        }
    };
    for (auto& mailbox : engine_done_) {
        take(*mailbox);
    }
    for (auto& mailbox : vector_done_) {
        take(*mailbox);
    }
    take(dma_done_);
    return any;
}

void Sequencer::complete(const KernelDone& done) {
    blocked_ = false;
    KernelRecord& record = records_[record_of_[done.kernel]];
    record.end = cycle();
    record.cycles = done.cycles;
    record.macs = static_cast<std::uint64_t>(config_.program->kernels[done.kernel].macs);
    // The edge that posts the command lies before the unit's own account.
    record.cycles.pipeline += record.end - record.start - record.cycles.total();
    steps_.back().phase_end[static_cast<std::size_t>(config_.program->kernels[done.kernel].phase)] = cycle();
    KernelTotals& totals = totals_[done.kernel];
    ++totals.count;
    totals.cycles += record.end - record.start;
    totals.macs += record.macs;
    switch (config_.program->kernels[done.kernel].unit) {
        case UnitKind::Engine:
            for (int i = 0; i < record.gang_size; ++i) {
                engine_busy_[static_cast<std::size_t>(record.unit + i)] = false;
            }
            break;
        case UnitKind::Vector:
            vector_busy_[record.unit] = false;
            break;
        case UnitKind::Dma:
            dma_busy_ = false;
            break;
    }
    for (const std::uint32_t dependent : dependents_[done.kernel]) {
        if (--open_[dependent] == 0) {
            insert_ready(dependent);
        }
    }
    --running_;
    ++stats_.num_kernels;
    if (++completed_ == config_.program->kernels.size()) {
        active_ = false;
        steps_.back().end = cycle();
        if (steps_.size() <= config_.kept_steps) {
            kept_records_ = records_.size();
        }
        done_out->post(StepDone{step_});
    }
}

bool Sequencer::issue() {
    if (cycle() < issue_allowed_ || ready_.empty() || blocked_) {
        return false;
    }
    const bool issued = issue_best();
    blocked_ = !issued;  // until a completion frees something, looking again is of no use
    return issued;
}

bool Sequencer::issue_best() {
    if (config_.policy == SchedulePolicy::Serial) {
        // Program order: the next kernel is the lowest one, and only when nothing runs.
        const std::uint32_t kernel = *std::min_element(ready_.begin(), ready_.end());
        return running_ == 0 && issue_kernel(kernel, 1);
    }
    const int sharers = equally_urgent();
    for (const std::uint32_t kernel : ready_) {
        if (issue_kernel(kernel, sharers)) {
            return true;
        }
    }
    return false;
}

// How many ready contractions have the longest chain behind them: they share the engines.
int Sequencer::equally_urgent() const {
    int count = 0;
    std::uint64_t priority = 0;
    for (const std::uint32_t kernel : ready_) {
        const KernelCommand& command = config_.program->kernels[kernel];
        if (command.unit != UnitKind::Engine) {
            continue;
        }
        if (count > 0 && command.priority < priority) {
            break;
        }
        priority = command.priority;
        ++count;
    }
    return count;
}

bool Sequencer::issue_kernel(std::uint32_t kernel, int sharers) {
    const KernelCommand& command = config_.program->kernels[kernel];
    if (command.unit == UnitKind::Dma) {
        if (dma_busy_) {
            return false;
        }
        dma_busy_ = true;
        start_kernel(kernel, 0, 1);
        return true;
    }
    if (command.unit == UnitKind::Vector) {
        const auto free = std::find(vector_busy_.begin(), vector_busy_.end(), false);
        if (free == vector_busy_.end()) {
            return false;
        }
        *free = true;
        start_kernel(kernel, static_cast<int>(free - vector_busy_.begin()), 1);
        return true;
    }
    // The longest run of free engines, the first of equals.
    int best_first = 0;
    int best_length = 0;
    int total_free = 0;
    for (int first = 0; first < config_.engines;) {
        int length = 0;
        while (first + length < config_.engines && !engine_busy_[static_cast<std::size_t>(first + length)]) {
            ++length;
        }
        total_free += length;
        if (length > best_length) {
            best_first = first;
            best_length = length;
        }
        first += length + 1;
    }
    if (best_length == 0) {
        return false;
    }
    const int share = std::max(1, std::min(best_length, total_free / std::max(1, sharers)));
    const int gang = command.gang_for[static_cast<std::size_t>(share)];
    for (int i = 0; i < gang; ++i) {
        engine_busy_[static_cast<std::size_t>(best_first + i)] = true;
    }
    start_kernel(kernel, best_first, gang);
    return true;
}

void Sequencer::start_kernel(std::uint32_t kernel, int first_unit, int units) {
    const KernelCommand& command = config_.program->kernels[kernel];
    ready_.erase(std::find(ready_.begin(), ready_.end(), kernel));
    ++running_;
    issue_allowed_ = cycle() + static_cast<Cycle>(config_.sequencer.decode_cycles);
    KernelRecord record;
    record.step = step_;
    record.kernel = kernel;
    record.start = cycle();
    record.unit = static_cast<std::uint16_t>(first_unit);
    record.gang_size = static_cast<std::uint16_t>(units);
    record_of_[kernel] = records_.size();
    records_.push_back(record);
    ++stats_.num_issued;
    KernelStart start;
    start.kernel = kernel;
    start.command = command.command;
    start.gang_size = record.gang_size;
    start.gang_first = record.unit;
    switch (command.unit) {
        case UnitKind::Engine:
            for (int i = 0; i < units; ++i) {
                (*engine_out[static_cast<std::size_t>(first_unit + i)])->post(start);
            }
            break;
        case UnitKind::Vector:
            (*vector_out[static_cast<std::size_t>(first_unit)])->post(start);
            break;
        case UnitKind::Dma:
            dma_out->post(start);
            break;
    }
}

void Sequencer::insert_ready(std::uint32_t kernel) {
    const auto& kernels = config_.program->kernels;
    const auto before = [&](std::uint32_t a, std::uint32_t b) {
        return kernels[a].priority != kernels[b].priority ? kernels[a].priority > kernels[b].priority : a < b;
    };
    ready_.insert(std::upper_bound(ready_.begin(), ready_.end(), kernel, before), kernel);
}

std::string Sequencer::state_text() const {
    if (!active_) {
        return "idle";
    }
    return "step " + std::to_string(step_) + ": " + std::to_string(completed_) + "/" +
           std::to_string(config_.program->kernels.size()) + " kernels complete, " + std::to_string(running_) +
           " running, " + std::to_string(ready_.size()) + " ready";
}

}  // namespace contraflow
