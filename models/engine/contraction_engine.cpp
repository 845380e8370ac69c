#include "engine/contraction_engine.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "numerics/tile_product.h"

namespace contraflow {

namespace {

// A request posted at edge e is granted at e + 1 at the earliest and its burst starts at e + 2.
constexpr Cycle kGrantEdges = 2;

// Offsets of the indices of a tile that lie on one engine: `width` neighbours at `first` of every `pitch`.
void local_offsets(const std::vector<std::int32_t>& table, std::int64_t base, std::int64_t begin, std::int64_t count,
                   std::int64_t pitch, std::int64_t first, std::int64_t width, std::vector<std::int64_t>& offsets) {
    offsets.clear();
    for (std::int64_t slot = first; slot < count; slot += pitch) {
        const std::int64_t end = std::min(slot + width, count);
        for (std::int64_t i = slot; i < end; ++i) {
            offsets.push_back(base + AccessTable::at(table, begin + i));
        }
    }
}

bool uses_tokens(const ContractionCommand& command) {
    for (const AccessTable* access : {&command.a, &command.b, &command.out, &command.residual, &command.bias}) {
        if (access->present && access->token.modulus != 0) {
            return true;
        }
    }
    return false;
}

// Buffers only grow: shrinking and growing again would clear them each time.
void grow(std::vector<float>& buffer, std::size_t size) {
    if (buffer.size() < size) {
        buffer.resize(size);
    }
}

std::int64_t clamp_count(std::int64_t count, std::int64_t limit) {
    return std::max<std::int64_t>(0, std::min(count, limit));
}

}  // namespace

TileTiming& TimingCache::get(std::uint32_t command, std::size_t gang_size) {
    auto& by_gang = timings_[command];
    if (by_gang.size() <= gang_size) {
        by_gang.resize(gang_size + 1);
    }
    if (by_gang[gang_size] == nullptr) {
        const ContractionCommand& contraction = program_.contractions[command];
        by_gang[gang_size] =
            std::make_unique<TileTiming>(engine_, program_.rams, contraction, contraction.mappings[gang_size]);
    }
    return *by_gang[gang_size];
}

ContractionEngine::ContractionEngine(const sc_core::sc_module_name& name, ClockDomain& clock, const Config& config)
    : Block(name, clock),
      start_in("start_in"),
      grant_in("grant_in"),
      request_out("request_out"),
      done_out("done_out"),
      config_(config),
      starts_(*this),
      grants_(*this) {
    start_in.bind(starts_);
    grant_in.bind(grants_);
}

void ContractionEngine::start_of_simulation() {
    memory.resolve(config_.program->rams);
}

void ContractionEngine::edge() {
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
    // 3. The array works on the streaming tile.
    if (s_.streaming) {
        if (stepped() && config_.values) {
            step_stream();
        }
        if (cycle() + 1 == s_.stream_end) {
            end_stream();
        }
    }
    // 4. The accumulators drain.
    if (s_.writing && cycle() + 1 == s_.write_end) {
        end_write();
    }
    // 5. What can follow is asked for ahead of time.
    request_operands();
    request_write();
    // 6. Every edge is accounted for; the edges of a stream were at its grant.
    if (cycle() >= s_.stream_end) {
        count_waiting(1);
    }
    // 7. The last word is in memory.
    if (s_.written == timing_->num_tiles() && cycle() == s_.done_at) {
        finish_kernel();
    }
}

Cycle ContractionEngine::next_event() const {
    if (!s_.active) {
        return kNever;
    }
    Cycle next = kNever;
    const auto consider = [&](Cycle at) {
        if (at > cycle()) {
            next = std::min(next, at - cycle());
        }
    };
    const auto ahead = [](Cycle at) { return at > kGrantEdges ? at - kGrantEdges : 0; };
    if (s_.streaming) {
        consider(s_.stream_end - 1);
    }
    consider(s_.array_free);
    consider(ahead(s_.array_free));
    if (s_.writing) {
        consider(s_.write_end - 1);
        consider(ahead(s_.write_end));
    }
    for (const Cycle at : s_.sums_at) {
        consider(ahead(at));
    }
    if (s_.written == timing_->num_tiles()) {
        consider(s_.done_at);
    }
    return next;
}

void ContractionEngine::advance(Cycle n) {
    if (!s_.active) {
        stats_.idle_cycles += n;
    } else if (cycle() + 1 >= s_.stream_end) {
        count_waiting(n);
    }
}

void ContractionEngine::start_kernel(const KernelStart& start) {
    command_ = &config_.program->contractions[start.command];
    timing_ = &config_.timings->get(start.command, start.gang_size);
    s_ = State{};
    s_.active = true;
    s_.start = start;
    s_.tokens_pending = uses_tokens(*command_);
    s_.stream_end = cycle();  // nothing streamed yet: this edge waits
    s_.array_free = cycle();
    kernel_cycles_ = UnitCycles{};
    kernel_macs_ = 0;
    tokens_.clear();
    const TileMapping& mapping = timing_->mapping();
    const int member = config_.index - start.gang_first;
    gang_row_ = member / mapping.gang_cols;
    gang_col_ = member % mapping.gang_cols;
    acc_rows_ = std::int64_t{mapping.row_interleave} * config_.engine.rows;
    acc_stride_ = std::int64_t{mapping.col_interleave} * config_.engine.cols;
    const auto words = static_cast<std::size_t>(acc_rows_ * acc_stride_ * config_.engine.partial_sums);
    for (auto& buffer : accumulators_) {
        if (buffer.size() < words) {
            buffer.resize(words);
        }
    }
    ++stats_.num_kernels;
}

void ContractionEngine::take_grants() {
    while (grants_.ready()) {
        const PortGrant grant = grants_.take();
        if (grant.channel == kWriteBurst) {
            s_.write_requested = false;
            s_.writing = true;
            const Tile tile = timing_->tile(s_.written);
            s_.write_end = cycle() + timing_->write(tile, token_of(tile)).cycles;
            continue;
        }
        s_.operand_requested = false;
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
            s_.array_free = cycle() + static_cast<Cycle>(command_->batch) +
                            static_cast<Cycle>(program.rams[index_of(program.sample.ram)].read_latency_cycles);
            continue;
        }
        begin_stream();
    }
}

void ContractionEngine::begin_stream() {
    tile_ = timing_->tile(s_.next_tile);
    const std::int32_t token = token_of(tile_);
    const StreamCost& cost = timing_->stream(tile_, token);
    s_.streaming = true;
    s_.stream_begin = cycle();
    s_.stream_end = cycle() + cost.cycles;
    s_.array_free = s_.stream_end + cost.fold;
    s_.sums_at[static_cast<std::size_t>(s_.next_tile % 2)] = s_.array_free - 1 + timing_->pipeline_cycles();
    kernel_cycles_.busy += cost.busy;
    kernel_cycles_.dependency += cost.dependency;
    kernel_cycles_.bank += cost.bank;
    ++stats_.num_tiles;
    if (leads()) {
        const AccessTable& a = *timing_->view().row_operand;
        const AccessTable& b = *timing_->view().col_operand;
        memory.of(a.ram).record_read(a.ram, cost.a_words, cost.a_rows, cost.a_conflicts);
        memory.of(b.ram).record_read(b.ram, cost.b_words, cost.b_rows, cost.b_conflicts);
        stats_.num_words_read += static_cast<std::uint64_t>(cost.a_words + cost.b_words);
    }
    if (!config_.values) {
        return;
    }

    // Addresses of this engine's rows and columns; accumulators start at zero.
    const ArrayView& view = timing_->view();
    const auto base_of = [&](const AccessTable& access) {
        return access.base + AccessTable::at(access.batch, tile_.batch) + access.token_offset(token);
    };
    local_offsets(*view.row_table, base_of(*view.row_operand), tile_.row_begin, tile_.rows, timing_->gang_rows(),
                  std::int64_t{gang_row_} * config_.engine.rows, config_.engine.rows, row_offsets_);
    local_offsets(*view.col_table, base_of(*view.col_operand), tile_.col_begin, tile_.cols, timing_->gang_cols(),
                  std::int64_t{gang_col_} * config_.engine.cols, config_.engine.cols, col_offsets_);
    std::vector<float>& accumulators = accumulators_[static_cast<std::size_t>(s_.next_tile % 2)];
    const auto used = static_cast<std::ptrdiff_t>(local_rows(tile_) * acc_stride_);
    const std::int64_t partials = std::min<std::int64_t>(config_.engine.partial_sums, command_->depth);
    for (std::int64_t partial = 0; partial < partials; ++partial) {
        std::fill_n(accumulators.begin() + partial * acc_rows_ * acc_stride_, used, 0.0F);
    }
    step_k_ = 0;
    step_slot_ = 0;
    step_left_ = 0;
}

// One edge of the array: the multiply-accumulates of one slot, unless the step waits for operands or for the adder.
void ContractionEngine::step_stream() {
    const std::int64_t slots = tile_.slots();
    if (step_left_ == 0) {
        step_left_ = timing_->step_cycles(tile_, token_of(tile_), step_k_);
        load_step_operands(step_k_);
    }
    if (step_slot_ < slots) {
        execute_slot(step_k_, step_slot_ / tile_.col_slots, step_slot_ % tile_.col_slots);
        ++step_slot_;
    }
    if (--step_left_ == 0) {
        ++step_k_;
        step_slot_ = 0;
    }
}

void ContractionEngine::end_stream() {
    if (config_.values) {
        execute_rest();
    }
    const std::uint64_t macs = static_cast<std::uint64_t>(local_rows(tile_) * local_cols(tile_) * command_->depth);
    stats_.num_macs += macs;
    kernel_macs_ += macs;
    s_.streaming = false;
    ++s_.next_tile;
}

void ContractionEngine::end_write() {
    const Tile tile = timing_->tile(s_.written);
    const WriteCost& cost = timing_->write(tile, token_of(tile));
    if (config_.values) {
        write_tile(tile);
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
    s_.done_at = command_->accumulates ? s_.write_end : s_.write_end - 1 + timing_->write_latency_cycles();
}

void ContractionEngine::request_operands() {
    if (s_.operand_requested || cycle() + kGrantEdges < s_.array_free) {
        return;
    }
    const std::int64_t tile_index = s_.streaming ? s_.next_tile + 1 : s_.next_tile;
    PortRequest request;
    request.channel = kOperandBurst;
    if (s_.tokens_pending) {
        request.add(config_.program->sample.ram, 1);
        request.cycles = static_cast<std::uint64_t>(command_->batch);
    } else {
        if (tile_index >= timing_->num_tiles()) {
            return;
        }
        // The tile's accumulator buffer holds tile_index - 2 until that is written back.
        const bool being_written = s_.written == tile_index - 2 && s_.writing && s_.write_end <= cycle() + kGrantEdges;
        if (s_.written < tile_index - 1 && !being_written) {
            return;
        }
        const Tile tile = timing_->tile(tile_index);
        const AccessTable& a = *timing_->view().row_operand;
        const AccessTable& b = *timing_->view().col_operand;
        request.cycles = timing_->stream(tile, token_of(tile)).cycles;
        request.add(a.ram, 1);
        if (b.ram != a.ram || config_.program->rams[index_of(a.ram)].ports > 1) {
            request.add(b.ram, 1);
        }
    }
    s_.operand_requested = true;
    if (leads()) {
        request.first_client = s_.start.gang_first;
        request.num_clients = s_.start.gang_size;
        request_out->post(request);
        ++stats_.num_requests;
    }
}

void ContractionEngine::request_write() {
    const std::int64_t tile_index = s_.writing ? s_.written + 1 : s_.written;
    const std::int64_t streamed = s_.next_tile + (s_.streaming ? 1 : 0);
    if (s_.write_requested || tile_index >= streamed) {
        return;
    }
    const Cycle start = cycle() + kGrantEdges;
    if (s_.sums_at[static_cast<std::size_t>(tile_index % 2)] > start || (s_.writing && s_.write_end > start)) {
        return;
    }
    s_.write_requested = true;
    if (!leads()) {
        return;
    }
    const Tile tile = timing_->tile(tile_index);
    PortRequest request;
    request.channel = kWriteBurst;
    request.first_client = s_.start.gang_first;
    request.num_clients = s_.start.gang_size;
    request.cycles = timing_->write(tile, token_of(tile)).cycles;
    for (const AccessTable* access : {&command_->out, &command_->residual, &command_->bias}) {
        if (!access->present) {
            continue;
        }
        // Streams that exceed a memory's ports take turns on them (TileTiming::write counts the cycles).
        int held = 0;
        for (std::size_t i = 0; i < request.num_rams; ++i) {
            held += request.rams[i] == access->ram ? request.ports[i] : 0;
        }
        if (held < config_.program->rams[index_of(access->ram)].ports) {
            request.add(access->ram, 1);
        }
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
    KernelDone done;
    done.kernel = s_.start.kernel;
    done.unit = static_cast<std::uint16_t>(config_.index);
    done.cycles = kernel_cycles_;
    done.macs = kernel_macs_;
    done_out->post(done);
}

void ContractionEngine::count_waiting(Cycle n) {
    const std::int64_t tiles = timing_->num_tiles();
    if (s_.operand_requested) {
        kernel_cycles_.port += n;
    } else if (s_.next_tile < tiles) {
        if (s_.array_free > cycle()) {
            (s_.next_tile == 0 ? kernel_cycles_.pipeline : kernel_cycles_.dependency) += n;
        } else {
            kernel_cycles_.write_back += n;
        }
    } else if (s_.writing) {
        kernel_cycles_.write_back += n;
    } else if (s_.write_requested) {
        kernel_cycles_.port += n;
    } else {
        kernel_cycles_.pipeline += n;
    }
}

void ContractionEngine::execute_slot(std::int64_t k, std::int64_t row_slot, std::int64_t col_slot) {
    const std::int64_t rows = clamp_count(local_rows(tile_) - row_slot * config_.engine.rows, config_.engine.rows);
    const std::int64_t cols = clamp_count(local_cols(tile_) - col_slot * config_.engine.cols, config_.engine.cols);
    if (rows == 0 || cols == 0) {
        return;
    }
    std::vector<float>& accumulators = accumulators_[static_cast<std::size_t>(s_.next_tile % 2)];
    const std::int64_t partial = k % config_.engine.partial_sums;
    float* acc = accumulators.data() + (partial * acc_rows_ + row_slot * config_.engine.rows) * acc_stride_ +
                 col_slot * config_.engine.cols;
    accumulate_tile(acc, static_cast<std::size_t>(acc_stride_), row_values_.data() + row_slot * config_.engine.rows, 0,
                    col_values_.data() + col_slot * config_.engine.cols, 0, static_cast<std::size_t>(rows),
                    static_cast<std::size_t>(cols), 1);
}

// What of the tile has not been computed edge by edge: everything under `leap`. The same sums in the same order.
void ContractionEngine::execute_rest() {
    const std::int64_t rows = local_rows(tile_);
    const std::int64_t cols = local_cols(tile_);
    const std::int64_t depth = command_->depth;
    if (rows == 0 || cols == 0) {
        step_k_ = depth;
        return;
    }
    while (step_slot_ != 0 && step_k_ < depth) {
        if (step_slot_ < tile_.slots()) {
            execute_slot(step_k_, step_slot_ / tile_.col_slots, step_slot_ % tile_.col_slots);
            ++step_slot_;
        } else {
            ++step_k_;
            step_slot_ = 0;
        }
    }
    if (step_k_ >= depth) {
        return;
    }
    const ArrayView& view = timing_->view();
    std::vector<float>& accumulators = accumulators_[static_cast<std::size_t>(s_.next_tile % 2)];
    const std::int64_t partials = config_.engine.partial_sums;
    for (std::int64_t partial = 0; partial < partials; ++partial) {
        depth_rows_.clear();
        depth_cols_.clear();
        const std::int64_t first = step_k_ + (partial - step_k_ % partials + partials) % partials;
        for (std::int64_t k = first; k < depth; k += partials) {
            depth_rows_.push_back(AccessTable::at(view.row_operand->depth, k));
            depth_cols_.push_back(AccessTable::at(view.col_operand->depth, k));
        }
        const std::size_t count = depth_rows_.size();
        grow(packed_rows_, count * static_cast<std::size_t>(rows));
        grow(packed_cols_, count * static_cast<std::size_t>(cols));
        pack(memory.words(view.row_operand->ram), row_offsets_.data(), row_offsets_.size(), depth_rows_.data(), count,
             packed_rows_.data(), static_cast<std::size_t>(rows));
        pack(memory.words(view.col_operand->ram), col_offsets_.data(), col_offsets_.size(), depth_cols_.data(), count,
             packed_cols_.data(), static_cast<std::size_t>(cols));
        accumulate_tile(accumulators.data() + partial * acc_rows_ * acc_stride_, static_cast<std::size_t>(acc_stride_),
                        packed_rows_.data(), static_cast<std::size_t>(rows), packed_cols_.data(),
                        static_cast<std::size_t>(cols), static_cast<std::size_t>(rows), static_cast<std::size_t>(cols),
                        count);
    }
    step_k_ = depth;
}

void ContractionEngine::load_step_operands(std::int64_t k) {
    const ArrayView& view = timing_->view();
    const float* rows = memory.words(view.row_operand->ram) + AccessTable::at(view.row_operand->depth, k);
    const float* cols = memory.words(view.col_operand->ram) + AccessTable::at(view.col_operand->depth, k);
    row_values_.resize(row_offsets_.size());
    col_values_.resize(col_offsets_.size());
    for (std::size_t i = 0; i < row_offsets_.size(); ++i) {
        row_values_[i] = rows[row_offsets_[i]];
    }
    for (std::size_t j = 0; j < col_offsets_.size(); ++j) {
        col_values_[j] = cols[col_offsets_[j]];
    }
}

// Sums of the partial accumulators in order, plus bias, plus residual, each rounded.
void ContractionEngine::write_tile(const Tile& tile) {
    const std::int32_t token = token_of(tile);
    const ArrayView& view = timing_->view();
    const std::int64_t rows = local_rows(tile);
    const auto cols = static_cast<std::size_t>(local_cols(tile));
    const float* accumulators = accumulators_[static_cast<std::size_t>(s_.written % 2)].data();
    const std::int64_t partials = std::min<std::int64_t>(config_.engine.partial_sums, command_->depth);

    // Where the tile's columns lie in each operand.
    OutputStream* const streams[] = {&out_stream_, &bias_stream_, &residual_stream_};
    const AccessTable* const accesses[] = {&command_->out, &command_->bias, &command_->residual};
    for (std::size_t i = 0; i < std::size(streams); ++i) {
        const AccessTable& access = *accesses[i];
        OutputStream& stream = *streams[i];
        stream.words = nullptr;
        if (!access.present || cols == 0) {
            continue;
        }
        stream.words = memory.words(access.ram) + access.base + AccessTable::at(access.batch, tile.batch) +
                       access.token_offset(token);
        stream.rows = &view.rows_of(access);
        local_offsets(view.cols_of(access), 0, tile.col_begin, tile.cols, timing_->gang_cols(),
                      std::int64_t{gang_col_} * config_.engine.cols, config_.engine.cols, stream.cols);
        stream.contiguous = stream.cols.back() - stream.cols.front() == static_cast<std::int64_t>(cols) - 1 &&
                            std::is_sorted(stream.cols.begin(), stream.cols.end()) &&
                            stream.cols.front() != stream.cols.back();
    }

    write_row_.resize(cols);
    for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t row = output_row(tile, i);
        const float* sums = accumulators + i * acc_stride_;
        for (std::size_t j = 0; j < cols; ++j) {
            write_row_[j] = sums[j];
        }
        for (std::int64_t partial = 1; partial < partials; ++partial) {
            const float* more = accumulators + (partial * acc_rows_ + i) * acc_stride_;
            for (std::size_t j = 0; j < cols; ++j) {
                write_row_[j] += more[j];
            }
        }
        bias_stream_.add_to(row, write_row_);
        residual_stream_.add_to(row, write_row_);
        out_stream_.store(row, write_row_);
    }
}

void ContractionEngine::OutputStream::add_to(std::int64_t row, std::vector<float>& values) const {
    if (words == nullptr) {
        return;
    }
    const float* source = words + AccessTable::at(*rows, row);
    if (contiguous) {
        source += cols[0];
        for (std::size_t j = 0; j < values.size(); ++j) {
            values[j] += source[j];
        }
        return;
    }
    for (std::size_t j = 0; j < values.size(); ++j) {
        values[j] += source[cols[j]];
    }
}

void ContractionEngine::OutputStream::store(std::int64_t row, const std::vector<float>& values) const {
    if (words == nullptr) {
        return;
    }
    float* target = words + AccessTable::at(*rows, row);
    if (contiguous) {
        std::copy(values.begin(), values.end(), target + cols[0]);
        return;
    }
    for (std::size_t j = 0; j < values.size(); ++j) {
        target[cols[j]] = values[j];
    }
}

std::int32_t ContractionEngine::token_of(const Tile& tile) const {
    return tokens_.empty() ? 0 : tokens_[static_cast<std::size_t>(tile.batch)];
}

// Rows of the tile that lie on this engine's PEs: a full slot before the next, so that they are a prefix of its rows.
std::int64_t ContractionEngine::local_rows(const Tile& tile) const {
    std::int64_t rows = 0;
    for (std::int64_t slot = 0; slot < tile.row_slots; ++slot) {
        rows += clamp_count(tile.rows - slot * timing_->gang_rows() - std::int64_t{gang_row_} * config_.engine.rows,
                            config_.engine.rows);
    }
    return rows;
}

std::int64_t ContractionEngine::local_cols(const Tile& tile) const {
    std::int64_t cols = 0;
    for (std::int64_t slot = 0; slot < tile.col_slots; ++slot) {
        cols += clamp_count(tile.cols - slot * timing_->gang_cols() - std::int64_t{gang_col_} * config_.engine.cols,
                            config_.engine.cols);
    }
    return cols;
}

std::int64_t ContractionEngine::output_row(const Tile& tile, std::int64_t local) const {
    const std::int64_t slot = local / config_.engine.rows;
    return tile.row_begin + slot * timing_->gang_rows() + std::int64_t{gang_row_} * config_.engine.rows +
           local % config_.engine.rows;
}

std::string ContractionEngine::state_text() const {
    if (!s_.active) {
        return "idle";
    }
    const std::string tiles = std::to_string(timing_->num_tiles());
    return config_.program->kernels[s_.start.kernel].name + ": streamed " + std::to_string(s_.next_tile) + "/" + tiles +
           " tiles, written " + std::to_string(s_.written) + "/" + tiles +
           (s_.operand_requested ? ", waits for operand ports" : "") +
           (s_.write_requested ? ", waits for write ports" : "");
}

}  // namespace contraflow
