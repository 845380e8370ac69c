#include "engine/tile_values.h"

#include <algorithm>

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
    timing_ = &timing;
    rows_ = rows;
    cols_ = cols;
    acc_rows_ = rows.width * timing.mapping().row_interleave;
    acc_stride_ = cols.width * timing.mapping().col_interleave;
    for (auto& buffer : accumulators_) {
        grow(buffer, acc_rows_ * acc_stride_ * partial_sums_);
    }
}

void TileValues::begin(const Tile& tile, std::int32_t token, std::size_t buffer) {
    const ArrayView& view = timing_->view();
    buffer_ = buffer;
    offsets_in(rows_, *view.row_table, base_of(*view.row_operand, tile, token), tile.row_begin, tile.rows,
               row_offsets_);
    offsets_in(cols_, *view.col_table, base_of(*view.col_operand, tile, token), tile.col_begin, tile.cols,
               col_offsets_);
    const auto used = static_cast<std::int64_t>(row_offsets_.size()) * acc_stride_;
    for (std::int64_t partial = 0; partial < std::min(partial_sums_, command_->depth); ++partial) {
        std::fill_n(accumulators_[buffer].begin() + partial * acc_rows_ * acc_stride_, used, 0.0F);
    }
}

void TileValues::load_step(std::int64_t k) {
    const ArrayView& view = timing_->view();
    const auto load = [&](const AccessTable& access, const std::vector<std::int64_t>& offsets,
                          std::vector<float>& values) {
        const float* words = memory_.words(access.ram) + AccessTable::at(access.depth, k);
        grow(values, static_cast<std::int64_t>(offsets.size()));
        for (std::size_t i = 0; i < offsets.size(); ++i) {
            values[i] = words[offsets[i]];
        }
    };
    load(*view.row_operand, row_offsets_, row_values_);
    load(*view.col_operand, col_offsets_, col_values_);
}

void TileValues::execute_slot(std::int64_t k, std::int64_t row_slot, std::int64_t col_slot) {
    const std::int64_t row = row_slot * rows_.width;
    const std::int64_t col = col_slot * cols_.width;
    const std::int64_t rows = std::min(rows_.width, static_cast<std::int64_t>(row_offsets_.size()) - row);
    const std::int64_t cols = std::min(cols_.width, static_cast<std::int64_t>(col_offsets_.size()) - col);
    if (rows <= 0 || cols <= 0) {
        return;
    }
    float* acc = accumulators_[buffer_].data() + ((k % partial_sums_) * acc_rows_ + row) * acc_stride_ + col;
    accumulate_tile(acc, size_of(acc_stride_), row_values_.data() + row, 0, col_values_.data() + col, 0, size_of(rows),
                    size_of(cols), 1);
}

void TileValues::run_kernel(const ContractionCommand& command, const TileTiming& timing,
                            const std::vector<std::int32_t>& tokens) {
    const ArrayView& view = timing.view();
    // One tile that covers the output.
    Tile tile;
    tile.rows = view.rows;
    tile.cols = view.cols;
    command_ = &command;
    timing_ = &timing;
    rows_ = {0, view.rows, view.rows};
    cols_ = {0, view.cols, view.cols};
    acc_rows_ = view.rows;
    acc_stride_ = view.cols;
    grow(accumulators_[0], acc_rows_ * acc_stride_ * partial_sums_);
    for (tile.batch = 0; tile.batch < command.batch; ++tile.batch) {
        const std::int32_t token = tokens.empty() ? 0 : tokens[size_of(tile.batch)];
        begin(tile, token, 0);
        execute_all();
        write(tile, token, 0);
    }
}

void TileValues::execute_all() {
    const std::size_t rows = row_offsets_.size();
    const std::size_t cols = col_offsets_.size();
    if (rows == 0 || cols == 0) {
        return;
    }
    const ArrayView& view = timing_->view();
    // The indices of one accumulator after another: each of them sums its own in ascending order.
    for (std::int64_t k = 0; k < std::min(partial_sums_, command_->depth); ++k) {
        const auto depth = size_of((command_->depth - k + partial_sums_ - 1) / partial_sums_);
        const Packed a = pack_operand(*view.row_operand, row_offsets_, k, packed_rows_);
        const Packed b = pack_operand(*view.col_operand, col_offsets_, k, packed_cols_);
        accumulate_tile(accumulators_[buffer_].data() + k * acc_rows_ * acc_stride_, size_of(acc_stride_), a.values,
                        a.stride, b.values, b.stride, rows, cols, depth);
    }
}

TileValues::Packed TileValues::pack_operand(const AccessTable& access, const std::vector<std::int64_t>& lanes,
                                            std::int64_t first, std::vector<float>& buffer) {
    const float* words = memory_.words(access.ram);
    // Lanes side by side and contraction indices evenly apart: the operand lies as it is wanted.
    if (access.depth_step >= 0 && side_by_side(lanes)) {
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

void TileValues::write(const Tile& tile, std::int32_t token, std::size_t buffer) {
    const auto rows = rows_.indices(tile.rows);
    const auto cols = size_of(cols_.indices(tile.cols));
    if (rows == 0 || cols == 0) {
        return;
    }
    find_stream(out_, command_->out, tile, token);
    find_stream(bias_, command_->bias, tile, token);
    find_stream(residual_, command_->residual, tile, token);
    write_row_.resize(cols);
    const float* sums = accumulators_[buffer].data();
    const std::int64_t partials = std::min(partial_sums_, command_->depth);
    std::int64_t local = 0;
    for (std::int64_t slot = rows_.first; slot < tile.rows; slot += rows_.pitch) {
        for (std::int64_t i = slot; i < std::min(slot + rows_.width, tile.rows); ++i, ++local) {
            const float* own = sums + local * acc_stride_;
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

void TileValues::find_stream(OutputStream& stream, const AccessTable& access, const Tile& tile, std::int32_t token) {
    stream.words = nullptr;
    if (!access.present) {
        return;
    }
    const ArrayView& view = timing_->view();
    stream.words = memory_.words(access.ram) + base_of(access, tile, token);
    stream.rows = &view.rows_of(access);
    offsets_in(cols_, view.cols_of(access), 0, tile.col_begin, tile.cols, stream.cols);
    stream.contiguous = side_by_side(stream.cols);
}

std::int64_t TileValues::base_of(const AccessTable& access, const Tile& tile, std::int32_t token) const {
    return access.base + AccessTable::at(access.batch, tile.batch) + access.token_offset(token);
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
