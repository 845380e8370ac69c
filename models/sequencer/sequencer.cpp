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
      policy_(make_issue_policy(config.policy, config.look_ahead, *config.program)),
      record_of_(config.program->kernels.size()),
      totals_(config.program->kernels.size()) {
    units_.engines.resize(static_cast<std::size_t>(config.engines));
    units_.vector_units.resize(static_cast<std::size_t>(config.vector_units));
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
    completed_ = 0;
    issue_allowed_ = cycle() + static_cast<Cycle>(config_.sequencer.decode_cycles);
    blocked_ = false;
    open_.clear();
    complete_.assign(config_.program->kernels.size(), false);
    const auto& kernels = config_.program->kernels;
    for (std::uint32_t kernel = 0; kernel < kernels.size(); ++kernel) {
        open_.push_back(static_cast<std::uint32_t>(kernels[kernel].dependences.size()));
        if (open_.back() == 0) {
            insert_ready(kernel);
        }
    }
    ++stats_.num_steps;
    if (on_step) {
        on_step(step_);
    }
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
    occupy(record, false);
    complete_[done.kernel] = true;
    for (const std::uint32_t dependent : dependents_[done.kernel]) {
        if (--open_[dependent] == 0) {
            insert_ready(dependent);
        }
    }
    ++stats_.num_kernels;
    if (on_done) {
        on_done(record);
    }
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
    const std::optional<Issue> issue = policy_->choose(ready_, units_, cycle());
    blocked_ = !issue;  // until a completion changes something, asking again is of no use
    if (issue) {
        start_kernel(*issue);
    }
    return issue.has_value();
}

void Sequencer::start_kernel(const Issue& issue) {
    const std::uint32_t kernel = issue.kernel;
    const KernelCommand& command = config_.program->kernels[kernel];
    std::vector<std::uint32_t>& ready = ready_.of(command.unit);
    ready.erase(std::find(ready.begin(), ready.end(), kernel));
    issue_allowed_ = cycle() + static_cast<Cycle>(config_.sequencer.decode_cycles);
    KernelRecord record;
    record.step = step_;
    record.kernel = kernel;
    record.start = cycle();
    record.unit = static_cast<std::uint16_t>(issue.first_unit);
    record.gang_size = static_cast<std::uint16_t>(issue.units);
    occupy(record, true);
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
            for (int i = 0; i < issue.units; ++i) {
                (*engine_out[static_cast<std::size_t>(issue.first_unit + i)])->post(start);
            }
            break;
        case UnitKind::Vector:
            (*vector_out[static_cast<std::size_t>(issue.first_unit)])->post(start);
            break;
        case UnitKind::Dma:
            dma_out->post(start);
            break;
    }
    if (on_issue) {
        on_issue(record);
    }
}

// The units of a kernel that starts are taken, of one that completed free.
void Sequencer::occupy(const KernelRecord& record, bool busy) {
    const KernelCommand& command = config_.program->kernels[record.kernel];
    const UnitState state{busy, record.start + command.cycles[record.gang_size]};
    switch (command.unit) {
        case UnitKind::Engine:
            for (std::size_t i = 0; i < record.gang_size; ++i) {
                units_.engines[record.unit + i] = state;
            }
            break;
        case UnitKind::Vector:
            units_.vector_units[record.unit] = state;
            break;
        case UnitKind::Dma:
            units_.dma = state;
            break;
    }
    units_.running += busy ? 1 : std::size_t{0} - 1;
}

void Sequencer::insert_ready(std::uint32_t kernel) {
    const auto& kernels = config_.program->kernels;
    const auto before = [&](std::uint32_t a, std::uint32_t b) {
        return kernels[a].priority != kernels[b].priority ? kernels[a].priority > kernels[b].priority : a < b;
    };
    std::vector<std::uint32_t>& ready = ready_.of(kernels[kernel].unit);
    ready.insert(std::upper_bound(ready.begin(), ready.end(), kernel, before), kernel);
}

Sequencer::Observation Sequencer::observe() const {
    Observation seen;
    seen.step = step_;
    seen.completed = completed_;
    if (steps_.empty()) {
        return seen;
    }
    seen.ready = ready_.size();
    seen.running = units_.running;
    if (!records_.empty() && records_.back().step == step_) {
        seen.any_kernel = true;
        seen.kernel = records_.back().kernel;
        seen.issues = records_.back().start == cycle();
    }
    if (active_) {
        seen.waits_for = ready_.empty() ? Waits::Dependence : blocked_ ? Waits::Units : Waits::Decode;
    }
    return seen;
}

std::string Sequencer::state_text() const {
    if (!active_) {
        return "idle";
    }
    const auto& kernels = config_.program->kernels;
    std::string text = "step " + std::to_string(step_) + ": " + std::to_string(completed_) + "/" +
                       std::to_string(kernels.size()) + " kernels complete, " + std::to_string(units_.running) +
                       " running, " + std::to_string(ready_.size()) + " ready";
    // The first kernel in program order that waits for others, and for which.
    const auto waiting = std::find_if(open_.begin(), open_.end(), [](std::uint32_t open) { return open > 0; });
    if (waiting != open_.end()) {
        const KernelCommand& kernel = kernels[static_cast<std::size_t>(waiting - open_.begin())];
        text += ", " + kernel.name + " waits for";
        for (const std::uint32_t dependence : kernel.dependences) {
            text += complete_[dependence] ? "" : " " + kernels[dependence].name;
        }
    }
    return text;
}

}  // namespace contraflow
