// What an observer sees of an engine: everything follows from its state.
#include <algorithm>

#include "engine/contraction_engine.h"

namespace contraflow {

void ContractionEngine::begin_window() {
    if (follows_) {
        take_over(*(*config_.engines)[s_.start.gang_first]);
    }
    if (!s_.active || computes_by_edge()) {
        return;
    }
    if (config_.values) {
        values_.start(*command_, *timing_, own_rows_, own_cols_);
    }
    if (latest_tile() < 0) {
        return;
    }
    // The edges of the tile that have gone by.
    begin_steps();
    for (Cycle at = s_.operands_begin; at <= std::min(cycle(), s_.stream_end - 1); ++at) {
        step_stream();
    }
}

ContractionEngine::Observation ContractionEngine::observe() {
    Observation seen;
    const Cycle now = cycle();
    seen.active = s_.active;
    if (command_ == nullptr) {
        return seen;
    }
    const bool streamed = latest_tile() >= 0;
    seen.operands.channel = kOperandBurst;
    seen.operands.begin = s_.operands_begin;
    seen.operands.end = streamed          ? s_.stream_end
                        : tokens_.empty() ? s_.operands_begin
                                          : s_.operands_begin + static_cast<Cycle>(command_->batch);
    seen.write = {kWriteBurst, s_.write_begin, s_.write_end};
    seen.leads = leads();
    if (streamed && seen.operands.covers(now)) {
        seen.activity = step_activity();
    } else if (now < counted_until_) {
        seen.activity = counted_as_;
    }
    if (!s_.active) {
        return seen;
    }
    seen.kernel = s_.start.kernel;
    seen.num_tiles = timing_->num_tiles();
    seen.tile = std::max<std::int64_t>(latest_tile(), 0);
    seen.write_tile = s_.written;
    if (s_.writing) {
        seen.write_back = WriteBack::Write;
    } else if (s_.write_requested) {
        seen.write_back = WriteBack::Request;
    }
    if (seen.operands.covers(now)) {
        seen.stage = streamed ? Stage::Stream : Stage::TokenIds;
    } else {
        seen.stage = s_.next_tile < seen.num_tiles ? Stage::Wait : Stage::Drain;
    }
    if (streamed) {
        seen.accumulating = config_.values;
        seen.k = last_step();
        seen.slot = std::min(static_cast<std::int64_t>(last_step_edge()), tile_.slots() - 1);
        if (seen.stage == Stage::Stream) {
            observe_operands(seen);
        }
    }
    return seen;
}

Activity ContractionEngine::step_activity() const {
    const std::uint64_t edge = last_step_edge();
    const std::int64_t slots = tile_.slots();
    if (edge < static_cast<std::uint64_t>(slots)) {
        return Activity::Busy;
    }
    return edge < timing_->dependency_cycles(last_step(), slots) ? Activity::Dependency : Activity::Bank;
}

void ContractionEngine::observe_operands(Observation& seen) {
    TileAccesses& accesses = tile_accesses();
    if (followed_.k != seen.k || followed_.stream != s_.operands_begin) {
        followed_.k = seen.k;
        followed_.stream = s_.operands_begin;
        accesses.list_step(tile_, tokens_, seen.k, own_rows_, own_cols_, followed_.a, followed_.b);
    }
    const std::uint64_t edge = last_step_edge();
    const auto find = [edge](const std::vector<SlotFetch>& fetches, bool& valid, std::int64_t& address) {
        for (const SlotFetch& fetch : fetches) {
            if (fetch.from <= edge && edge < fetch.to && fetch.address >= 0) {
                valid = true;
                address = fetch.address;
            }
        }
    };
    find(followed_.a, seen.a_valid, seen.a_address);
    find(followed_.b, seen.b_valid, seen.b_address);
}

TileAccesses& ContractionEngine::tile_accesses() {
    if (followed_.accesses == nullptr || followed_.command != s_.start.command ||
        followed_.gang_size != s_.start.gang_size) {
        followed_.accesses = config_.timings->accesses(s_.start.command, s_.start.gang_size);
        followed_.command = s_.start.command;
        followed_.gang_size = s_.start.gang_size;
        followed_.k = -1;
    }
    return *followed_.accesses;
}

void ContractionEngine::list_burst(std::uint8_t channel, AccessCounter& counter, BurstAccesses& accesses) {
    accesses.clear();
    if (channel == kWriteBurst) {
        const std::int64_t tile = s_.writing ? s_.written : s_.written - 1;
        tile_accesses().list_write(timing_->tile(tile), tokens_, counter, accesses);
    } else if (latest_tile() >= 0) {
        tile_accesses().list_stream(tile_, tokens_, counter, accesses);
    } else {
        list_token_reads(*config_.program, 0, command_->batch, counter, accesses);
    }
}

float ContractionEngine::latest_sum(std::int64_t pe_row, std::int64_t pe_col) const {
    const auto edge = static_cast<std::int64_t>(last_step_edge());
    return sum_of(std::min(edge, tile_.slots() - 1), last_step() % config_.engine.partial_sums, pe_row, pe_col);
}

float ContractionEngine::first_sum(std::int64_t pe_row, std::int64_t pe_col) const {
    return sum_of(0, 0, pe_row, pe_col);
}

float ContractionEngine::sum_of(std::int64_t slot, std::int64_t partial, std::int64_t pe_row,
                                std::int64_t pe_col) const {
    const std::int64_t row_slot = slot / tile_.col_slots;
    return values_.sum(static_cast<std::size_t>(latest_tile() % 2), row_slot / tile_.row_slots, partial,
                       row_slot % tile_.row_slots, slot % tile_.col_slots, pe_row, pe_col);
}

}  // namespace contraflow
