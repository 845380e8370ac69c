#include "vector/vector_unit.h"

#include <algorithm>
#include <cstring>

namespace contraflow {

VectorUnit::VectorUnit(const sc_core::sc_module_name& name, ClockDomain& clock, const Config& config)
    : Block(name, clock),
      start_in("start_in"),
      grant_in("grant_in"),
      request_out("request_out"),
      done_out("done_out"),
      config_(config),
      starts_(*this),
      grants_(*this),
      plans_(config.program->vectors.size()),
      function_(memory) {
    start_in.bind(starts_);
    grant_in.bind(grants_);
}

void VectorUnit::start_of_simulation() {
    memory.resolve(config_.program->rams);
}

void VectorUnit::edge() {
    now_ = cycle();
    // 1. A command starts a kernel.
    if (!s_.active) {
        if (!starts_.ready()) {
            ++stats_.idle_cycles;
            return;
        }
        start_kernel(starts_.take());
    }
    // 2. A grant starts a burst.
    take_grants();
    // 3. What the unit does by itself.
    run_edge();
}

// The unit's own doing at edge now_: everything but reading its mailboxes.
void VectorUnit::run_edge() {
    // 1. The burst's last beat enters the lanes.
    if (s_.streaming && now_ + 1 == s_.stream_end) {
        end_burst();
    }
    // 2. The next burst is asked for ahead of time.
    request_burst();
    // 3. Every edge is accounted for.
    count_edges(now_, now_ + 1);
    // 4. The last result is in memory.
    if (s_.complete && now_ == s_.done_at) {
        finish_kernel();
    }
}

// A burst that is not the last of its pass ends unseen: what follows was asked for before. All else has an output.
Cycle VectorUnit::next_event() const {
    if (!s_.active) {
        return kNever;
    }
    Cycle next = kNever;
    const auto consider = [&](Cycle at) {
        if (at > cycle()) {
            next = std::min(next, at - cycle());
        }
    };
    if (s_.streaming && (s_.burst_end == pass_rows() || !s_.requested)) {
        consider(s_.stream_end - 1);
    }
    if (s_.complete) {
        consider(s_.done_at);
    } else if (!s_.requested) {
        consider(s_.start_allowed > kGrantEdges ? s_.start_allowed - kGrantEdges : 0);
    }
    return next;
}

void VectorUnit::advance(Cycle n) {
    const Cycle end = cycle() + 1 + n;
    if (!s_.active) {
        stats_.idle_cycles += n;
        return;
    }
    Cycle from = cycle() + 1;
    if (s_.streaming && s_.stream_end - 1 >= from && s_.stream_end - 1 < end) {
        now_ = s_.stream_end - 1;
        run_edge();
        from = s_.stream_end;
    }
    count_edges(from, end);
}

void VectorUnit::start_kernel(const KernelStart& start) {
    command_ = &config_.program->vectors[start.command];
    s_ = State{};
    s_.active = true;
    s_.start = start;
    s_.stream_end = now_;
    s_.start_allowed = now_;
    kernel_cycles_ = UnitCycles{};
    tokens_.clear();
    ++stats_.num_kernels;
    begin_segment();
}

void VectorUnit::begin_segment() {
    const VectorSegmentCommand& segment = this->segment();
    s_.pass = 0;
    s_.group_begin = 0;
    s_.group_end = std::min<std::int64_t>(segment.rows, config_.vector.row_registers);
    s_.next_row = 0;
    s_.tokens_pending = plan().needs_tokens;
    if (config_.values) {
        function_.begin(segment);
    }
}

void VectorUnit::take_grants() {
    while (grants_.ready()) {
        (void)grants_.take();
        s_.requested = false;
        const VectorSegmentCommand& segment = this->segment();
        s_.stream_begin = now_;
        s_.token_burst = s_.tokens_pending;
        if (s_.tokens_pending) {
            s_.tokens_pending = false;
            const AccessTable& sample = config_.program->sample;
            const float* words = memory.words(sample.ram);
            tokens_.resize(static_cast<std::size_t>(segment.rows));
            for (std::int64_t i = 0; i < segment.rows; ++i) {
                std::memcpy(&tokens_[static_cast<std::size_t>(i)], words + sample.base + AccessTable::at(sample.col, i),
                            sizeof(std::int32_t));
            }
            function_.set_tokens(tokens_);
            memory.of(sample.ram).record_read(sample.ram, segment.rows, segment.rows, 0);
            stats_.num_words_read += static_cast<std::uint64_t>(segment.rows);
            s_.start_allowed = now_ + static_cast<Cycle>(segment.rows) +
                               static_cast<Cycle>(config_.program->rams[index_of(sample.ram)].read_latency_cycles);
            continue;
        }
        s_.streaming = true;
        s_.burst_segment = s_.segment;
        s_.burst_pass = s_.pass;
        s_.burst_begin = s_.next_row;
        s_.burst_end = std::min(s_.burst_begin + plan().rows_per_burst, pass_rows());
        PassPlan& pass = plan().passes[s_.pass];
        std::uint64_t cycles = 0;
        if (pass.uniform) {
            const auto rows = static_cast<std::uint64_t>(s_.burst_end - s_.burst_begin);
            const RowCost& cost = row_cost(pass, s_.burst_begin);
            cycles = cost.cycles * rows;
            account_rows(pass, cost, rows);
        } else {
            for (std::int64_t row = s_.burst_begin; row < s_.burst_end; ++row) {
                const RowCost& cost = row_cost(pass, row);
                cycles += cost.cycles;
                account_rows(pass, cost, 1);
            }
        }
        s_.stream_end = now_ + cycles;
        s_.start_allowed = s_.stream_end;
        const auto elements = static_cast<std::uint64_t>((s_.burst_end - s_.burst_begin) * segment.cols);
        stats_.num_elements += elements;
        stats_.num_adds += elements * static_cast<std::uint64_t>(pass.pass.adds);
        stats_.num_compares += elements * static_cast<std::uint64_t>(pass.pass.compares);
        stats_.num_multiplies += elements * static_cast<std::uint64_t>(pass.pass.multiplies);
        stats_.num_exps += elements * static_cast<std::uint64_t>(pass.pass.exps);
        stats_.num_erfs += elements * static_cast<std::uint64_t>(pass.pass.erfs);
        stats_.num_tanhs += elements * static_cast<std::uint64_t>(pass.pass.tanhs);
    }
}

void VectorUnit::account_rows(const PassPlan& pass, const RowCost& cost, std::uint64_t rows) {
    const VectorSegmentCommand& segment = this->segment();
    const auto count = static_cast<std::int64_t>(rows);
    kernel_cycles_.busy += cost.busy * rows;
    kernel_cycles_.dependency += cost.dependency * rows;
    kernel_cycles_.bank += cost.bank * rows;
    for (std::size_t i = 0; i < pass.pass.reads.size(); ++i) {
        const RamId ram = access_of(segment, pass.pass.reads[i]).ram;
        const RowCost::Access& access = cost.reads[i];
        memory.of(ram).record_read(ram, access.words * count, access.rows * count, access.conflicts * count);
        stats_.num_words_read += static_cast<std::uint64_t>(access.words) * rows;
    }
    for (std::size_t i = 0; i < pass.pass.writes.size(); ++i) {
        const RamId ram = access_of(segment, pass.pass.writes[i]).ram;
        const RowCost::Access& access = cost.writes[i];
        memory.of(ram).record_write(ram, access.words * count, access.rows * count, access.conflicts * count);
        stats_.num_words_written += static_cast<std::uint64_t>(access.words) * rows;
    }
}

void VectorUnit::end_burst() {
    s_.streaming = false;
    if (config_.values) {
        function_.run(segment(), s_.pass, s_.burst_begin, s_.burst_end);
    }
    s_.next_row = s_.burst_end;
    const PassPlan& pass = plan().passes[s_.pass];
    const Cycle results_at = now_ + pass.latency_cycles;
    if (s_.next_row < pass_rows()) {
        if (pass.pass.serial_rows) {
            s_.start_allowed = results_at + 1;
        }
        return;
    }
    next_pass(results_at);
}

void VectorUnit::next_pass(Cycle results_at) {
    s_.start_allowed = results_at + 1;
    const VectorSegmentCommand& segment = this->segment();
    const auto& passes = plan().passes;
    const VectorPass& done = passes[s_.pass].pass;
    const std::size_t next = s_.pass + 1;
    // Rows beyond the row registers: all passes but those over columns or over one row, group after group.
    const bool groups_left = s_.group_end < segment.rows && !done.column_reduction && !done.single_row;
    if (groups_left && (next == passes.size() || passes[next].pass.single_row)) {
        s_.pass = 0;
        s_.group_begin = s_.group_end;
        s_.group_end = std::min<std::int64_t>(segment.rows, s_.group_begin + config_.vector.row_registers);
        s_.next_row = s_.group_begin;
        return;
    }
    if (next < passes.size()) {
        s_.pass = next;
        s_.next_row = passes[next].pass.single_row ? 0 : s_.group_begin;
        return;
    }
    if (++s_.segment < command_->segments.size()) {
        begin_segment();
        return;
    }
    s_.complete = true;
    s_.done_at = results_at;
}

void VectorUnit::request_burst() {
    if (s_.requested || s_.complete || now_ + kGrantEdges < s_.start_allowed) {
        return;
    }
    PortRequest request;
    request.first_client = static_cast<std::uint16_t>(config_.client);
    if (s_.tokens_pending) {
        request.add(config_.program->sample.ram, 1);
        request.cycles = static_cast<std::uint64_t>(segment().rows);
    } else {
        const VectorPass& pass = plan().passes[s_.pass].pass;
        const std::int64_t begin = s_.streaming ? s_.burst_end : s_.next_row;
        if (begin >= pass_rows() || (s_.streaming && pass.serial_rows)) {
            return;
        }
        const std::int64_t end = std::min(begin + plan().rows_per_burst, pass_rows());
        request.cycles = burst_cycles(begin, end);
        for (const auto* streams : {&pass.reads, &pass.writes}) {
            for (const StreamUse& stream : *streams) {
                const RamId ram = access_of(segment(), stream).ram;
                request.add_within(ram, config_.program->rams[index_of(ram)].ports);
            }
        }
    }
    s_.requested = true;
    request_out->post(request);
    ++stats_.num_requests;
}

void VectorUnit::finish_kernel() {
    s_.active = false;
    stats_.cycles += kernel_cycles_;
    KernelDone done;
    done.kernel = s_.start.kernel;
    done.unit = static_cast<std::uint16_t>(config_.index);
    done.cycles = kernel_cycles_;
    done_out->post(done);
}

// Edges from .. to - 1, in all of which the unit is in the present state. Those of a burst were counted at its grant.
void VectorUnit::count_edges(Cycle from, Cycle to) {
    from = std::max(from, s_.stream_end);
    if (from < to) {
        counted_as_ = s_.requested ? Activity::Port : Activity::Pipeline;
        counted_until_ = to;
        kernel_cycles_.of(counted_as_) += to - from;
    }
}

VectorUnit::SegmentPlan& VectorUnit::plan() {
    std::vector<SegmentPlan>& segments = plans_[s_.start.command];
    if (segments.empty()) {
        segments.resize(command_->segments.size());
    }
    SegmentPlan& plan = segments[s_.segment];
    if (!plan.passes.empty()) {
        return plan;
    }
    const VectorSegmentCommand& segment = this->segment();
    for (const VectorPass& pass : vector_passes(config_.vector, config_.engine, segment)) {
        PassPlan pass_plan;
        pass_plan.pass = pass;
        pass_plan.latency_cycles =
            vector_pass_latency(config_.vector, config_.engine, config_.program->rams, segment, pass);
        pass_plan.uniform = true;
        for (const auto* streams : {&pass.reads, &pass.writes}) {
            for (const StreamUse& stream : *streams) {
                const AccessTable& access = access_of(segment, stream);
                const std::int64_t lanes = config_.program->rams[index_of(access.ram)].lanes;
                const auto aligned = [lanes](std::int64_t offset) { return offset % lanes == 0; };
                const bool by_token = access.token.modulus != 0 && !aligned(access.token.stride);
                pass_plan.uniform =
                    pass_plan.uniform && !by_token && std::all_of(access.row.begin(), access.row.end(), aligned);
            }
        }
        pass_plan.costs = &costs_of(segment, pass);
        plan.passes.push_back(std::move(pass_plan));
    }
    const std::int64_t beats = (segment.cols + config_.vector.lanes - 1) / config_.vector.lanes;
    plan.rows_per_burst = std::max<std::int64_t>(1, config_.vector.burst_beats / beats);
    for (const auto* operands : {&segment.in, &segment.out}) {
        for (const AccessTable& access : *operands) {
            plan.needs_tokens = plan.needs_tokens || (access.present && access.token.modulus != 0);
        }
    }
    for (const PassPlan& pass : plan.passes) {
        if (pass.pass.serial_rows) {
            plan.rows_per_burst = 1;
        }
    }
    return plan;
}

// What vector_row_cost depends on, residues apart, is the key. Equal tables that are not the same one cost time only.
VectorUnit::RowCosts& VectorUnit::costs_of(const VectorSegmentCommand& segment, const VectorPass& pass) {
    NumberKey key;
    key.add(segment.cols);
    key.add(pass.adds).add(pass.compares).add(pass.multiplies).add(pass.exps).add(pass.erfs).add(pass.tanhs);
    key.add(pass.row_reductions).add(pass.reduces_to_maximum).add(pass.column_reduction).add(pass.scalars_only);
    key.add(static_cast<std::int64_t>(pass.reads.size()));
    std::size_t combinations = 1;
    std::vector<RamId> rams;
    for (const auto* streams : {&pass.reads, &pass.writes}) {
        for (const StreamUse& stream : *streams) {
            const AccessTable& access = access_of(segment, stream);
            const RamGeometry& ram = config_.program->rams[index_of(access.ram)];
            const auto same = std::find(rams.begin(), rams.end(), access.ram) - rams.begin();
            rams.push_back(access.ram);
            key.add(static_cast<std::int64_t>(stream.shape)).add(same).add(ram.banks).add(ram.lanes).add(ram.ports);
            key.add(reinterpret_cast<std::intptr_t>(access.col.data()));
            combinations *= static_cast<std::size_t>(ram.lanes);
        }
    }
    RowCosts& costs = costs_[key];
    costs.rows.resize(combinations);
    costs.known.resize(combinations);
    return costs;
}

std::int64_t VectorUnit::pass_rows() const {
    const auto& passes = plans_[s_.start.command][s_.segment].passes;
    // A column sum takes all rows in one group: its registers are by column.
    return passes[s_.pass].pass.single_row ? 1 : passes[s_.pass].pass.column_reduction ? segment().rows : s_.group_end;
}

const RowCost& VectorUnit::row_cost(PassPlan& plan, std::int64_t row) {
    const VectorSegmentCommand& segment = this->segment();
    row_addresses(segment, plan.pass, row, residues_);
    std::size_t index = 0;
    std::size_t stream = 0;
    for (const auto* streams : {&plan.pass.reads, &plan.pass.writes}) {
        for (const StreamUse& use : *streams) {
            const std::int64_t lanes = config_.program->rams[index_of(access_of(segment, use).ram)].lanes;
            std::int64_t& residue = residues_[stream++];
            residue %= lanes;
            index = index * static_cast<std::size_t>(lanes) + static_cast<std::size_t>(residue);
        }
    }
    RowCosts& costs = *plan.costs;
    if (!costs.known[index]) {
        costs.known[index] = true;
        costs.rows[index] = vector_row_cost(config_.vector, config_.engine, config_.program->rams, segment, plan.pass,
                                            residues_, counter_);
    }
    return costs.rows[index];
}

void VectorUnit::row_addresses(const VectorSegmentCommand& segment, const VectorPass& pass, std::int64_t row,
                               std::vector<std::int64_t>& addresses) const {
    addresses.clear();
    for (const auto* streams : {&pass.reads, &pass.writes}) {
        for (const StreamUse& stream : *streams) {
            const AccessTable& access = access_of(segment, stream);
            std::int64_t address = access.base + AccessTable::at(access.row, pass.single_row ? 0 : row);
            if (access.token.modulus != 0) {
                address += access.token_offset(tokens_[static_cast<std::size_t>(row)]);
            }
            addresses.push_back(address);
        }
    }
}

std::uint64_t VectorUnit::burst_cycles(std::int64_t begin, std::int64_t end) {
    PassPlan& pass = plan().passes[s_.pass];
    if (pass.uniform) {
        return row_cost(pass, begin).cycles * static_cast<std::uint64_t>(end - begin);
    }
    std::uint64_t cycles = 0;
    for (std::int64_t row = begin; row < end; ++row) {
        cycles += row_cost(pass, row).cycles;
    }
    return cycles;
}

VectorUnit::Observation VectorUnit::observe() const {
    Observation seen;
    if (command_ == nullptr) {
        return seen;
    }
    seen.active = s_.active;
    seen.burst = {kOperandBurst, s_.stream_begin, s_.token_burst ? s_.stream_begin + tokens_.size() : s_.stream_end};
    seen.first_row = s_.burst_begin;
    seen.end_row = s_.burst_end;
    const bool in_burst = seen.burst.covers(cycle());
    seen.streaming = in_burst && !s_.token_burst;
    if (cycle() < counted_until_ && !seen.streaming) {
        seen.activity = counted_as_;
    }
    if (!s_.active) {
        return seen;
    }
    seen.kernel = s_.start.kernel;
    seen.segment = seen.streaming ? s_.burst_segment : s_.segment;
    seen.pass = seen.streaming ? s_.burst_pass : s_.pass;
    if (in_burst) {
        seen.stage = s_.token_burst ? Stage::TokenIds : Stage::Stream;
    } else {
        seen.stage = s_.requested ? Stage::Request : Stage::Drain;
    }
    return seen;
}

void VectorUnit::list_burst(AccessCounter& counter, BurstAccesses& accesses, std::vector<Activity>& activities) {
    struct Lister : RowObserver {
        Lister(const std::vector<RamGeometry>& rams, BurstAccesses& list, std::vector<Activity>& edges)
            : rams_(rams), list_(list), edges_(edges) {}
        void access(RamId ram, AccessCounter& counter, std::int64_t at, std::size_t port, bool write) override {
            list_.add(counter, rams_[index_of(ram)], ram, row_ + at, port, write);
        }
        void cycles(std::int64_t busy, std::int64_t dependency, std::int64_t bank) override {
            edges_.insert(edges_.end(), static_cast<std::size_t>(busy), Activity::Busy);
            edges_.insert(edges_.end(), static_cast<std::size_t>(dependency), Activity::Dependency);
            edges_.insert(edges_.end(), static_cast<std::size_t>(bank), Activity::Bank);
        }
        void next_row() { row_ = static_cast<std::int64_t>(edges_.size()); }

        const std::vector<RamGeometry>& rams_;
        BurstAccesses& list_;
        std::vector<Activity>& edges_;
        std::int64_t row_ = 0;  // its first edge
    };
    accesses.clear();
    activities.clear();
    if (s_.token_burst) {
        list_token_reads(*config_.program, 0, static_cast<std::int64_t>(tokens_.size()), counter, accesses);
        return;
    }
    const VectorSegmentCommand& segment = command_->segments[s_.burst_segment];
    const VectorPass& pass = plans_[s_.start.command][s_.burst_segment].passes[s_.burst_pass].pass;
    Lister lister(config_.program->rams, accesses, activities);
    std::vector<std::int64_t> addresses;
    for (std::int64_t row = s_.burst_begin; row < s_.burst_end; ++row) {
        row_addresses(segment, pass, row, addresses);
        (void)vector_row_cost(config_.vector, config_.engine, config_.program->rams, segment, pass, addresses, counter,
                              &lister);
        lister.next_row();
    }
    accesses.sort();
}

std::string VectorUnit::state_text() const {
    if (!s_.active) {
        return "idle";
    }
    return config_.program->kernels[s_.start.kernel].name + ": segment " + std::to_string(s_.segment) + ", pass " +
           std::to_string(s_.pass) + ", row " + std::to_string(s_.next_row) + (s_.requested ? ", waits for ports" : "");
}

}  // namespace contraflow
