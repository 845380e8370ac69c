#include "engine/contraction_engine.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace contraflow {

namespace {

bool uses_tokens(const ContractionCommand& command) {
    for (const AccessTable* access : {&command.a, &command.b, &command.out, &command.residual, &command.bias}) {
        if (access->present && access->token.modulus != 0) {
            return true;
        }
    }
    return false;
}

}  // namespace

TileTiming& TimingCache::get(std::uint32_t command, std::size_t gang_size) {
    const std::uint32_t alike = program_.contractions[command].costs_like;
    auto& by_gang = timings_[alike];
    if (by_gang.size() <= gang_size) {
        by_gang.resize(gang_size + 1);
    }
    if (by_gang[gang_size] == nullptr) {
        const ContractionCommand& contraction = program_.contractions[alike];
        by_gang[gang_size] =
            std::make_unique<TileTiming>(engine_, program_.rams, contraction, contraction.mappings[gang_size]);
    }
    return *by_gang[gang_size];
}

std::unique_ptr<TileAccesses> TimingCache::accesses(std::uint32_t command, std::size_t gang_size) const {
    const ContractionCommand& contraction = program_.contractions[command];
    const TileMapping& mapping = program_.contractions[contraction.costs_like].mappings[gang_size];
    return std::make_unique<TileAccesses>(engine_, program_.rams, contraction, mapping);
}

ContractionEngine::ContractionEngine(const sc_core::sc_module_name& name, ClockDomain& clock, const Config& config)
    : Block(name, clock),
      start_in("start_in"),
      grant_in("grant_in"),
      request_out("request_out"),
      done_out("done_out"),
      config_(config),
      starts_(*this),
      grants_(*this),
      values_(memory, config.engine.partial_sums) {
    start_in.bind(starts_);
    grant_in.bind(grants_);
}

void ContractionEngine::start_of_simulation() {
    memory.resolve(config_.program->rams);
}

void ContractionEngine::edge() {
    now_ = cycle();
    if (follows_ || now_ < own_from_) {
        return;
    }
    // 1. A command starts a kernel.
    if (!s_.active) {
        if (!starts_.ready()) {
            ++stats_.idle_cycles;
            return;
        }
        start_kernel(starts_.take());
    }
    // 2. Grants start bursts.
    take_grants();
    // 3. What the engine does by itself.
    run_edge();
}

// The engine's own doing at edge now_: everything but reading its mailboxes.
void ContractionEngine::run_edge() {
    // 1. The array works on the streaming tile.
    if (s_.streaming) {
        if (follows_steps()) {
            step_stream();
        }
        if (now_ + 1 == s_.stream_end) {
            end_stream();
        }
    }
    // 2. The accumulators drain.
    if (s_.writing && now_ + 1 == s_.write_end) {
        end_write();
    }
    // 3. What can follow is asked for ahead of time.
    request_operands();
    request_write();
    // 4. Every edge is accounted for.
    count_edges(now_, now_ + 1);
    // 5. The last word is in memory.
    if (s_.written == timing_->num_tiles() && now_ == s_.done_at) {
        finish_kernel();
    }
}

// Edges at which run_edge does something, if no grant comes. Those with an output must be taken; the others may be
// caught up with later.
template <typename Consider>
void ContractionEngine::outputs(const Consider& consider) const {
    const auto ahead = [](Cycle at) { return at > kGrantEdges ? at - kGrantEdges : 0; };
    const std::int64_t tiles = timing_->num_tiles();
    const std::int64_t streamed = s_.next_tile + (s_.streaming ? 1 : 0);
    const std::int64_t to_write = s_.written + (s_.writing ? 1 : 0);
    // Another tile's operands can be asked for when the array and an accumulator buffer are about to be free.
    if (!s_.operand_requested && (streamed < tiles || s_.tokens_pending)) {
        consider(ahead(s_.array_free));
        if (s_.writing) {
            consider(ahead(s_.write_end));
        }
    }
    // A tile can be written when its sums are about to be complete and the previous write-back about to end.
    if (!s_.write_requested && to_write < streamed) {
        consider(ahead(s_.sums_at[static_cast<std::size_t>(to_write % 2)]));
        if (s_.writing) {
            consider(ahead(s_.write_end));
        }
    }
    if (s_.written == tiles) {
        consider(s_.done_at);
    } else if (to_write == tiles) {
        consider(done_after(s_.write_end));
    }
}

Cycle ContractionEngine::next_event() const {
    // A gang's other engines post nothing: only a grant or a command wakes them.
    if (!s_.active || !leads()) {
        return kNever;
    }
    Cycle next = kNever;
    outputs([&](Cycle at) {
        if (at > cycle()) {
            next = std::min(next, at - cycle());
        }
    });
    return next;
}

Cycle ContractionEngine::next_transition() const {
    Cycle next = kNever;
    const auto consider = [&](Cycle at) {
        if (at > now_) {
            next = std::min(next, at);
        }
    };
    outputs(consider);
    if (s_.streaming) {
        consider(s_.stream_end - 1);
    }
    if (s_.writing) {
        consider(s_.write_end - 1);
    }
    consider(s_.array_free);  // what the engine waits for has another name from here on
    return next;
}

void ContractionEngine::advance(Cycle n) {
    if (follows_) {
        return;
    }
    const Cycle end = cycle() + 1 + n;
    now_ = std::min(std::max(cycle() + 1, own_from_), end) - 1;
    while (s_.active && now_ + 1 < end) {
        const Cycle at = std::min(next_transition(), end);
        count_edges(now_ + 1, at);
        now_ = at - 1;
        if (at < end) {
            now_ = at;
            run_edge();
        }
    }
    stats_.idle_cycles += end - 1 - now_;
}

void ContractionEngine::start_kernel(const KernelStart& start) {
    command_ = &config_.program->contractions[start.command];
    timing_ = &config_.timings->get(start.command, start.gang_size);
    view_.emplace(*command_, timing_->mapping().transposed);
    s_ = State{};
    s_.active = true;
    s_.start = start;
    s_.tokens_pending = uses_tokens(*command_);
    s_.stream_end = now_;  // nothing streamed yet: this edge waits
    s_.array_free = now_;
    kernel_cycles_ = UnitCycles{};
    tokens_.clear();
    const TileMapping& mapping = timing_->mapping();
    const int member = config_.index - start.gang_first;
    own_rows_ = {member / mapping.gang_cols * timing_->pe_rows(), timing_->pe_rows(), timing_->gang_rows()};
    own_cols_ = {member % mapping.gang_cols * timing_->pe_cols(), timing_->pe_cols(), timing_->gang_cols()};
    if (config_.values && follows_steps()) {
        values_.start(*command_, *timing_, own_rows_, own_cols_);
    }
    ++stats_.num_kernels;
    follows_ = !leads() && !follows_steps() && !stepped();
    if (follows_) {
        grants_.stop_listening();
    }
}

// What this engine would have come to by itself at the edge at which its gang's first engine stands.
void ContractionEngine::take_over(const ContractionEngine& leader) {
    s_ = leader.s_;
    kernel_cycles_ = leader.kernel_cycles_;
    tile_ = leader.tile_;
    asked_operands_ = leader.asked_operands_;
    asked_results_ = leader.asked_results_;
    results_ = leader.results_;
    tokens_ = leader.tokens_;
    counted_until_ = leader.counted_until_;
    counted_as_ = leader.counted_as_;
    grants_.listen_again(leader.grants_);
    follows_ = false;
    own_from_ = leader.cycle() + 1;
    stats_.num_tiles += static_cast<std::uint64_t>(s_.next_tile + (s_.streaming ? 1 : 0));
    for (std::int64_t i = 0; i < s_.next_tile; ++i) {
        stats_.num_macs += own_macs(timing_->tile(i));
    }
    if (!s_.active) {
        stats_.cycles += kernel_cycles_;
    }
}

void ContractionEngine::take_grants() {
    while (grants_.ready()) {
        const PortGrant grant = grants_.take();
        if (grant.channel == kWriteBurst) {
            s_.write_requested = false;
            s_.writing = true;
            results_ = asked_results_;
            s_.write_begin = now_;
            s_.write_end = now_ + results_.cost->cycles;
            continue;
        }
        s_.operand_requested = false;
        s_.operands_begin = now_;
        if (s_.tokens_pending) {
            // The token register file fills at one word per cycle; the first tile follows the last word.
            s_.tokens_pending = false;
            const Program& program = *config_.program;
            const float* sample = memory.words(program.sample.ram);
            for (std::int64_t i = 0; i < command_->batch; ++i) {
                std::int32_t id = 0;
                std::memcpy(&id, sample + program.sample.base + AccessTable::at(program.sample.col, i), sizeof id);
                tokens_.push_back(id);
            }
            if (leads()) {
                memory.of(program.sample.ram).record_read(program.sample.ram, command_->batch, command_->batch, 0);
                stats_.num_words_read += static_cast<std::uint64_t>(command_->batch);
            }
            s_.array_free = now_ + static_cast<Cycle>(command_->batch) +
                            static_cast<Cycle>(program.rams[index_of(program.sample.ram)].read_latency_cycles);
            continue;
        }
        begin_stream();
    }
}

void ContractionEngine::begin_stream() {
    tile_ = asked_operands_.tile;
    const StreamCost& cost = *asked_operands_.cost;
    s_.streaming = true;
    s_.stream_end = now_ + cost.cycles;
    s_.array_free = s_.stream_end + cost.fold;
    s_.sums_at[static_cast<std::size_t>(s_.next_tile % 2)] = s_.array_free - 1 + timing_->pipeline_cycles();
    kernel_cycles_.busy += cost.busy;
    kernel_cycles_.dependency += cost.dependency;
    kernel_cycles_.bank += cost.bank;
    ++stats_.num_tiles;
    if (leads()) {
        const AccessTable& a = *view_->row_operand;
        const AccessTable& b = *view_->col_operand;
        memory.of(a.ram).record_read(a.ram, cost.a_words, cost.a_rows, cost.a_conflicts);
        memory.of(b.ram).record_read(b.ram, cost.b_words, cost.b_rows, cost.b_conflicts);
        stats_.num_words_read += static_cast<std::uint64_t>(cost.a_words + cost.b_words);
    }
    begin_steps();
}

void ContractionEngine::begin_steps() {
    if (config_.values && follows_steps()) {
        values_.begin(tile_, tokens_, static_cast<std::size_t>(latest_tile() % 2));
    }
    step_k_ = 0;
    step_slot_ = 0;
    step_left_ = 0;
}

// One edge of the array: the multiply-accumulates of one slot, unless the step waits for operands or for the adder.
void ContractionEngine::step_stream() {
    const std::int64_t slots = tile_.slots();
    if (step_left_ == 0) {
        step_cycles_ = timing_->step_cycles(tile_, tokens_, step_k_);
        step_left_ = step_cycles_;
        if (config_.values) {
            values_.load_step(step_k_);
        }
    }
    if (step_slot_ < slots) {
        if (config_.values) {
            const std::int64_t row_slot = step_slot_ / tile_.col_slots;
            values_.execute_slot(step_k_, row_slot / tile_.row_slots, row_slot % tile_.row_slots,
                                 step_slot_ % tile_.col_slots);
        }
        ++step_slot_;
    }
    if (--step_left_ == 0) {
        ++step_k_;
        step_slot_ = 0;
    }
}

void ContractionEngine::end_stream() {
    stats_.num_macs += own_macs(tile_);
    s_.streaming = false;
    ++s_.next_tile;
}

std::uint64_t ContractionEngine::own_macs(const Tile& tile) const {
    return static_cast<std::uint64_t>(own_rows_.indices(tile.rows) * own_cols_.indices(tile.cols) * command_->depth *
                                      tile.batches);
}

void ContractionEngine::end_write() {
    const WriteCost& cost = *results_.cost;
    if (computes_by_edge()) {
        values_.write(results_.tile, tokens_, static_cast<std::size_t>(s_.written % 2));
    }
    if (leads()) {
        const auto read = [&](const AccessTable& access, std::int64_t words, std::int64_t rows,
                              std::int64_t conflicts) {
            if (access.present) {
                memory.of(access.ram).record_read(access.ram, words, rows, conflicts);
                stats_.num_words_read += static_cast<std::uint64_t>(words);
            }
        };
        read(command_->residual, cost.residual_words, cost.residual_rows, cost.residual_conflicts);
        read(command_->bias, cost.bias_words, cost.bias_rows, cost.bias_conflicts);
        memory.of(command_->out.ram).record_write(command_->out.ram, cost.words, cost.rows, cost.conflicts);
        stats_.num_words_written += static_cast<std::uint64_t>(cost.words);
    }
    s_.writing = false;
    ++s_.written;
    s_.done_at = done_after(s_.write_end);
}

// Edge at which the last word of a write burst is in memory.
Cycle ContractionEngine::done_after(Cycle write_end) const {
    return timing_->bursts_end_in_memory() ? write_end : write_end - 1 + timing_->write_latency_cycles();
}

PortRequest ContractionEngine::request_of_gang(std::uint8_t channel) const {
    PortRequest request;
    request.channel = channel;
    request.first_client = s_.start.gang_first;
    request.num_clients = s_.start.gang_size;
    return request;
}

void ContractionEngine::request_operands() {
    if (s_.operand_requested || now_ + kGrantEdges < s_.array_free) {
        return;
    }
    if (!s_.tokens_pending) {
        const std::int64_t tile_index = s_.streaming ? s_.next_tile + 1 : s_.next_tile;
        if (tile_index >= timing_->num_tiles()) {
            return;
        }
        // The tile's accumulator buffer holds tile_index - 2 until that is written back.
        const bool being_written = s_.written == tile_index - 2 && s_.writing && s_.write_end <= now_ + kGrantEdges;
        if (s_.written < tile_index - 1 && !being_written) {
            return;
        }
        asked_operands_.tile = timing_->tile(tile_index);
        asked_operands_.cost = &timing_->stream(asked_operands_.tile, tokens_);
    }
    s_.operand_requested = true;
    if (!leads()) {
        return;
    }
    PortRequest request = request_of_gang(kOperandBurst);
    if (s_.tokens_pending) {
        request.add(config_.program->sample.ram, 1);
        request.cycles = static_cast<std::uint64_t>(command_->batch);
    } else {
        const AccessTable& a = *view_->row_operand;
        const AccessTable& b = *view_->col_operand;
        request.cycles = asked_operands_.cost->cycles;
        request.add(a.ram, 1);
        if (b.ram != a.ram || config_.program->rams[index_of(a.ram)].ports > 1) {
            request.add(b.ram, 1);
        }
    }
    request_out->post(request);
    ++stats_.num_requests;
}

void ContractionEngine::request_write() {
    const std::int64_t tile_index = s_.writing ? s_.written + 1 : s_.written;
    const std::int64_t streamed = s_.next_tile + (s_.streaming ? 1 : 0);
    if (s_.write_requested || tile_index >= streamed) {
        return;
    }
    const Cycle start = now_ + kGrantEdges;
    if (s_.sums_at[static_cast<std::size_t>(tile_index % 2)] > start || (s_.writing && s_.write_end > start)) {
        return;
    }
    s_.write_requested = true;
    asked_results_.tile = timing_->tile(tile_index);
    asked_results_.cost = &timing_->write(asked_results_.tile, tokens_);
    if (!leads()) {
        return;
    }
    PortRequest request = request_of_gang(kWriteBurst);
    request.cycles = asked_results_.cost->cycles;
    for (const AccessTable* access : {&command_->out, &command_->residual, &command_->bias}) {
        if (!access->present) {
            continue;
        }
        // Streams that exceed a memory's ports take turns on them (TileTiming::write counts the cycles).
        request.add_within(access->ram, config_.program->rams[index_of(access->ram)].ports);
    }
    request_out->post(request);
    ++stats_.num_requests;
}

void ContractionEngine::finish_kernel() {
    s_.active = false;
    stats_.cycles += kernel_cycles_;
    if (!leads()) {
        return;
    }
    // Nobody reads a kernel's results before it is done, nor changes its operands. So where edges are not stepped, the
    // gang's first engine computes them here, for all, at one go.
    if (config_.values && !stepped()) {
        values_.run_kernel(*command_, tokens_);
    }
    for (int i = 1; i < s_.start.gang_size; ++i) {
        ContractionEngine& member = *(*config_.engines)[static_cast<std::size_t>(config_.index + i)];
        if (member.follows_) {
            member.take_over(*this);
        }
    }
    KernelDone done;
    done.kernel = s_.start.kernel;
    done.unit = static_cast<std::uint16_t>(config_.index);
    done.cycles = kernel_cycles_;
    done_out->post(done);
}

// Edges from .. to - 1, in all of which the engine is in the present state. Those of a stream were counted at its
// grant.
void ContractionEngine::count_edges(Cycle from, Cycle to) {
    from = std::max(from, s_.stream_end);
    if (from < to) {
        counted_as_ = waiting_for(from);
        counted_until_ = to;
        kernel_cycles_.of(counted_as_) += to - from;
    }
}

// What holds up an engine that is not streaming at edge `from`.
Activity ContractionEngine::waiting_for(Cycle from) const {
    if (s_.operand_requested) {
        return Activity::Port;
    }
    if (s_.next_tile < timing_->num_tiles()) {
        if (s_.array_free > from) {
            return s_.next_tile == 0 ? Activity::Pipeline : Activity::Dependency;
        }
        return Activity::WriteBack;
    }
    if (s_.writing) {
        return Activity::WriteBack;
    }
    return s_.write_requested ? Activity::Port : Activity::Pipeline;
}

std::string ContractionEngine::state_text() const {
    if (!s_.active) {
        return "idle";
    }
    if (follows_) {
        return config_.program->kernels[s_.start.kernel].name + ": with engine " + std::to_string(s_.start.gang_first);
    }
    const std::string tiles = std::to_string(timing_->num_tiles());
    return config_.program->kernels[s_.start.kernel].name + ": streamed " + std::to_string(s_.next_tile) + "/" + tiles +
           " tiles, written " + std::to_string(s_.written) + "/" + tiles +
           (s_.operand_requested ? ", waits for operand ports" : "") +
           (s_.write_requested ? ", waits for write ports" : "");
}

}  // namespace contraflow
