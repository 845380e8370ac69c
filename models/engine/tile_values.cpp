#include "engine/tile_values.h"

#include <algorithm>
#include <limits>

#include "numerics/tile_product.h"

namespace contraflow {

namespace {

// Buffers only grow: shrinking and growing again would clear them each time.
void grow(std::vector<float>& buffer, std::int64_t size) {
    if (buffer.size() < static_cast<std::size_t>(size)) {
        buffer.resize(static_cast<std::size_t>(size));
    }
}

std::size_t size_of(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

// Offsets of the tile's indices begin .. begin + count - 1 that lie in a span.
void offsets_in(const SlotSpan& span, const std::vector<std::int32_t>& table, std::int64_t base, std::int64_t begin,
                std::int64_t count, std::vector<std::int64_t>& offsets) {
    offsets.clear();
    for (std::int64_t slot = span.first; slot < count; slot += span.pitch) {
        const std::int64_t end = std::min(slot + span.width, count);
        for (std::int64_t i = slot; i < end; ++i) {
            offsets.push_back(base + AccessTable::at(table, begin + i));
        }
    }
}

bool side_by_side(const std::vector<std::int64_t>& offsets) {
    for (std::size_t i = 1; i < offsets.size(); ++i) {
        if (offsets[i] != offsets[0] + static_cast<std::int64_t>(i)) {
            return false;
        }
    }
    return true;
}

// target = (sums + bias) + residual, where bias and residual may be absent. The target may be the residual.
void add_rows(const float* sums, const float* bias, const float* residual, float* target, std::size_t n) {
    if (bias != nullptr && residual != nullptr) {
        for (std::size_t j = 0; j < n; ++j) {
            target[j] = (sums[j] + bias[j]) + residual[j];
        }
    } else if (bias != nullptr || residual != nullptr) {
        const float* addend = bias != nullptr ? bias : residual;
        for (std::size_t j = 0; j < n; ++j) {
            target[j] = sums[j] + addend[j];
        }
    } else {
        std::copy(sums, sums + n, target);
    }
}

// Distance of neighbouring entries if it is the same everywhere, else -1.
std::int64_t even_step(const std::vector<std::int32_t>& table) {
    if (table.size() < 2) {
        return std::numeric_limits<std::int32_t>::max();  // one row: any distance will do
    }
    const std::int64_t step = table[1] - table[0];
    for (std::size_t i = 0; i < table.size(); ++i) {
        if (table[i] != static_cast<std::int64_t>(i) * step) {
            return -1;
        }
    }
    return step;
}

}  // namespace

std::int64_t SlotSpan::indices(std::int64_t count) const {
    std::int64_t total = 0;
    for (std::int64_t slot = first; slot < count; slot += pitch) {
        total += std::min(width, count - slot);
    }
    return total;
}

void TileValues::start(const ContractionCommand& command, const TileTiming& timing, const SlotSpan& rows,
                       const SlotSpan& cols) {
    command_ = &command;
    view_.emplace(command, timing.mapping().transposed);
    rows_ = rows;
    cols_ = cols;
    acc_rows_ = rows.width * timing.mapping().row_interleave;
    acc_stride_ = cols.width * timing.mapping().col_interleave;
    for (auto& buffer : accumulators_) {
        grow(buffer, batch_sums() * timing.mapping().batch_interleave);
    }
}

void TileValues::begin(const Tile& tile, const Tokens& tokens, std::size_t buffer) {
    const ArrayView& view = *view_;
    buffer_ = buffer;
    offsets_in(rows_, *view.row_table, 0, tile.row_begin, tile.rows, row_offsets_);
    offsets_in(cols_, *view.col_table, 0, tile.col_begin, tile.cols, col_offsets_);
    row_bases_.clear();
    col_bases_.clear();
    const auto used = static_cast<std::int64_t>(row_offsets_.size()) * acc_stride_;
    for (std::int64_t i = 0; i < tile.batches; ++i) {
        const Tile own = tile.of_batch(i);
        row_bases_.push_back(base_of(*view.row_operand, own, token_of(tokens, own.batch)));
        col_bases_.push_back(base_of(*view.col_operand, own, token_of(tokens, own.batch)));
        for (std::int64_t partial = 0; partial < std::min(partial_sums_, command_->depth); ++partial) {
            std::fill_n(accumulators_[buffer].begin() + i * batch_sums() + partial * acc_rows_ * acc_stride_, used,
                        0.0F);
        }
    }
}

void TileValues::load_step(std::int64_t k) {
    const ArrayView& view = *view_;
    const auto load = [&](const AccessTable& access, const std::vector<std::int64_t>& bases,
                          const std::vector<std::int64_t>& offsets, std::vector<float>& values) {
        const float* words = memory_.words(access.ram) + AccessTable::at(access.depth, k);
        grow(values, static_cast<std::int64_t>(bases.size() * offsets.size()));
        float* next = values.data();
        for (const std::int64_t base : bases) {
            for (const std::int64_t offset : offsets) {
                *next++ = words[base + offset];
            }
        }
    };
    load(*view.row_operand, row_bases_, row_offsets_, row_values_);
    load(*view.col_operand, col_bases_, col_offsets_, col_values_);
}

void TileValues::execute_slot(std::int64_t k, std::int64_t i, std::int64_t row_slot, std::int64_t col_slot) {
    const std::int64_t row = row_slot * rows_.width;
    const std::int64_t col = col_slot * cols_.width;
    const auto all_rows = static_cast<std::int64_t>(row_offsets_.size());
    const auto all_cols = static_cast<std::int64_t>(col_offsets_.size());
    const std::int64_t rows = std::min(rows_.width, all_rows - row);
    const std::int64_t cols = std::min(cols_.width, all_cols - col);
    if (rows <= 0 || cols <= 0) {
        return;
    }
    float* acc =
        accumulators_[buffer_].data() + i * batch_sums() + ((k % partial_sums_) * acc_rows_ + row) * acc_stride_ + col;
    accumulate_tile(acc, size_of(acc_stride_), row_values_.data() + i * all_rows + row, 0,
                    col_values_.data() + i * all_cols + col, 0, size_of(rows), size_of(cols), 1);
}

float TileValues::sum(std::size_t buffer, std::int64_t i, std::int64_t partial, std::int64_t row_slot,
                      std::int64_t col_slot, std::int64_t pe_row, std::int64_t pe_col) const {
    if (pe_row >= rows_.width || pe_col >= cols_.width) {
        return 0;  // the mapping leaves this PE out
    }
    const std::int64_t row = row_slot * rows_.width + pe_row;
    const std::int64_t col = col_slot * cols_.width + pe_col;
    if (row >= static_cast<std::int64_t>(row_offsets_.size()) ||
        col >= static_cast<std::int64_t>(col_offsets_.size())) {
        return 0;
    }
    const std::int64_t place = i * batch_sums() + (partial * acc_rows_ + row) * acc_stride_ + col;
    return accumulators_[buffer][static_cast<std::size_t>(place)];
}

void TileValues::run_kernel(const ContractionCommand& command, const Tokens& tokens) {
    // Which operand runs down the rows changes no product. The output's columns are neighbours in memory more often.
    view_.emplace(command, command.out.row_contiguous && !command.out.col_contiguous);
    const ArrayView& view = *view_;
    // One tile that covers the output.
    Tile tile;
    tile.rows = view.rows;
    tile.cols = view.cols;
    command_ = &command;
    rows_ = {0, view.rows, view.rows};
    cols_ = {0, view.cols, view.cols};
    acc_rows_ = view.rows;
    acc_stride_ = view.cols;
    const std::int64_t partials = std::min(partial_sums_, command.depth);
    offsets_in(rows_, *view.row_table, 0, 0, view.rows, row_offsets_);
    offsets_in(cols_, *view.col_table, 0, 0, view.cols, col_offsets_);
    row_lanes_side_by_side_ = side_by_side(row_offsets_);
    col_lanes_side_by_side_ = side_by_side(col_offsets_);
    find_columns(out_, command.out, tile);
    find_columns(bias_, command.bias, tile);
    find_columns(residual_, command.residual, tile);
    // Sums that nothing is added to can grow where they belong, if their rows lie evenly apart.
    const std::int64_t out_stride = even_step(view.rows_of(command.out));
    const bool in_place = partials == 1 && !command.bias.present && !command.residual.present && out_.contiguous &&
                          out_.cols[0] == 0 && out_stride >= view.cols;
    if (!in_place) {
        grow(accumulators_[0], acc_rows_ * acc_stride_ * partials);
    }
    for (tile.batch = 0; tile.batch < command.batch; ++tile.batch) {
        const std::int32_t token = token_of(tokens, tile.batch);
        float* sums = accumulators_[0].data();
        if (in_place) {
            sums = memory_.words(command.out.ram) + base_of(command.out, tile, token);
            acc_stride_ = out_stride;
            for (std::int64_t i = 0; i < view.rows; ++i) {
                std::fill_n(sums + i * acc_stride_, view.cols, 0.0F);
            }
        } else {
            std::fill_n(sums, acc_rows_ * acc_stride_ * partials, 0.0F);
        }
        // The indices of one accumulator after another: each of them sums its own in ascending order.
        for (std::int64_t k = 0; k < partials; ++k) {
            const auto depth = size_of((command.depth - k + partial_sums_ - 1) / partial_sums_);
            const Packed a = pack_operand(*view.row_operand, base_of(*view.row_operand, tile, token), row_offsets_,
                                          row_lanes_side_by_side_, k, packed_rows_);
            const Packed b = pack_operand(*view.col_operand, base_of(*view.col_operand, tile, token), col_offsets_,
                                          col_lanes_side_by_side_, k, packed_cols_);
            accumulate_tile(sums + k * acc_rows_ * acc_stride_, size_of(acc_stride_), a.values, a.stride, b.values,
                            b.stride, size_of(view.rows), size_of(view.cols), depth);
        }
        if (!in_place) {
            write_rows(tile, token, sums);
        }
    }
}

TileValues::Packed TileValues::pack_operand(const AccessTable& access, std::int64_t base,
                                            const std::vector<std::int64_t>& lanes, bool lanes_side_by_side,
                                            std::int64_t first, std::vector<float>& buffer) {
    const float* words = memory_.words(access.ram) + base;
    // Lanes side by side and contraction indices evenly apart: the operand lies as it is wanted.
    if (access.depth_step >= 0 && lanes_side_by_side) {
        return {words + lanes[0] + access.depth_step * first, size_of(access.depth_step * partial_sums_)};
    }
    depths_.clear();
    for (std::int64_t k = first; k < command_->depth; k += partial_sums_) {
        depths_.push_back(AccessTable::at(access.depth, k));
    }
    grow(buffer, static_cast<std::int64_t>(depths_.size() * lanes.size()));
    pack(words, lanes.data(), lanes.size(), depths_.data(), depths_.size(), buffer.data(), lanes.size());
    return {buffer.data(), lanes.size()};
}

void TileValues::write(const Tile& tile, const Tokens& tokens, std::size_t buffer) {
    if (rows_.indices(tile.rows) == 0 || cols_.indices(tile.cols) == 0) {
        return;
    }
    find_columns(out_, command_->out, tile);
    find_columns(bias_, command_->bias, tile);
    find_columns(residual_, command_->residual, tile);
    for (std::int64_t i = 0; i < tile.batches; ++i) {
        const Tile own = tile.of_batch(i);
        write_rows(own, token_of(tokens, own.batch), accumulators_[buffer].data() + i * batch_sums());
    }
}

// Sums of the partial accumulators in order, plus bias, plus residual, each rounded.
void TileValues::write_rows(const Tile& tile, std::int32_t token, const float* sums) {
    const auto words_of = [&](OutputStream& stream, const AccessTable& access) {
        stream.words = access.present ? memory_.words(access.ram) + base_of(access, tile, token) : nullptr;
    };
    words_of(out_, command_->out);
    words_of(bias_, command_->bias);
    words_of(residual_, command_->residual);
    const std::size_t cols = out_.cols.size();
    const bool all_contiguous = out_.contiguous && (bias_.words == nullptr || bias_.contiguous) &&
                                (residual_.words == nullptr || residual_.contiguous);
    write_row_.resize(cols);
    const std::int64_t partials = std::min(partial_sums_, command_->depth);
    std::int64_t local = 0;
    for (std::int64_t slot = rows_.first; slot < tile.rows; slot += rows_.pitch) {
        for (std::int64_t i = slot; i < std::min(slot + rows_.width, tile.rows); ++i, ++local) {
            const float* own = sums + local * acc_stride_;
            float* const target = out_.row(tile.row_begin + i);
            const float* const bias = bias_.row(tile.row_begin + i);
            const float* const residual = residual_.row(tile.row_begin + i);
            if (all_contiguous && partials == 1) {
                // The usual case without the detour over a row buffer: the same additions.
                add_rows(own, bias, residual, target, cols);
                continue;
            }
            std::copy(own, own + cols, write_row_.begin());
            for (std::int64_t partial = 1; partial < partials; ++partial) {
                const float* more = own + partial * acc_rows_ * acc_stride_;
                for (std::size_t j = 0; j < cols; ++j) {
                    write_row_[j] += more[j];
                }
            }
            bias_.add_to(tile.row_begin + i, write_row_);
            residual_.add_to(tile.row_begin + i, write_row_);
            out_.store(tile.row_begin + i, write_row_);
        }
    }
}

// Where the tile's columns lie in an operand of the write-back.
void TileValues::find_columns(OutputStream& stream, const AccessTable& access, const Tile& tile) {
    if (!access.present) {
        return;
    }
    const ArrayView& view = *view_;
    stream.rows = &view.rows_of(access);
    offsets_in(cols_, view.cols_of(access), 0, tile.col_begin, tile.cols, stream.cols);
    stream.contiguous = side_by_side(stream.cols);
}

std::int64_t TileValues::base_of(const AccessTable& access, const Tile& tile, std::int32_t token) const {
    return access.base + AccessTable::at(access.batch, tile.batch) + access.token_offset(token);
}

float* TileValues::OutputStream::row(std::int64_t index) const {
    return words == nullptr ? nullptr : words + AccessTable::at(*rows, index) + cols[0];
}

void TileValues::OutputStream::add_to(std::int64_t row, std::vector<float>& values) const {
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

void TileValues::OutputStream::store(std::int64_t row, const std::vector<float>& values) const {
    float* target = words + AccessTable::at(*rows, row);
    if (contiguous) {
        std::copy(values.begin(), values.end(), target + cols[0]);
        return;
    }
    for (std::size_t j = 0; j < values.size(); ++j) {
        target[cols[j]] = values[j];
    }
}

}  // namespace contraflow
