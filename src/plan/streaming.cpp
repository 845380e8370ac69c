#include "plan/streaming.h"

#include <fmt/format.h>
#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "common/integer_math.h"
#include "contraflow/error.h"

namespace contraflow {

namespace {

constexpr std::int64_t kWordBytes = 4;
constexpr std::int64_t kHomeAlignment = 4096;  // an AXI burst never crosses the end of a tensor
constexpr std::int64_t kChunkMultiple = 32;    // tiles of whole array rows and vector beats

// Positions first .. last - 1 of one index of a kernel.
struct Range {
    std::int64_t first = 0, last = 0;

    [[nodiscard]] std::int64_t size() const { return last - first; }
};

// How a tensor is cut along an index of the kernel: `pieces` pieces of extent x stride words, of which a tile takes
// stride words per position. A tensor that is not cut has extent 0.
struct Cut {
    std::int64_t pieces = 1, extent = 0, stride = 1;
};

// A tensor in DRAM that a kernel touches.
struct Streamed {
    TensorId tensor = kNoTensor;
    bool read = false, written = false;
    Cut cut;  // extent 0: whole
    TensorId tile = kNoTensor;
};

std::int64_t extent_of(const IndexMap& map) {
    std::int64_t extent = 1;
    for (const Digit& digit : map) {
        extent *= digit.extent;
    }
    return extent;
}

// Operands of a contraction and which of the result's indices may cut it.
enum class Index { Row, Col, Batch };
const IndexMap& map_of(const Access& access, Index index) {
    return index == Index::Row ? access.row : index == Index::Col ? access.col : access.batch;
}
IndexMap& map_of(Access& access, Index index) {
    return index == Index::Row ? access.row : index == Index::Col ? access.col : access.batch;
}
std::int64_t extent_of(const Contraction& work, Index index) {
    return index == Index::Row ? work.rows : index == Index::Col ? work.cols : work.batch;
}

// Only positions `range` of an index. REQUIRES: its faster digits divide the range's ends.
void restrict_to(Access& access, Index index, const Range& range) {
    IndexMap& map = map_of(access, index);
    if (map.empty()) {
        return;
    }
    const std::int64_t faster = extent_of(map) / map.front().extent;
    access.offset += range.first / faster * map.front().stride;
    map.front().extent = range.size() / faster;
}

// The multiple that tiles along an index must keep, so that restrict_to works for every operand.
std::int64_t granularity(const Contraction& work, Index index) {
    std::int64_t multiple = 1;
    for (const Access* access : {&work.a, &work.b, &work.out, &work.bias, &work.residual}) {
        const IndexMap& map = map_of(*access, index);
        if (access->tensor != kNoTensor && !map.empty()) {
            multiple = std::max(multiple, extent_of(map) / map.front().extent);
        }
    }
    return multiple;
}

// The access moved from a tensor to a tile of it.
void move_to_tile(Access& access, const Streamed& streamed, Index index, std::int64_t chunk) {
    access.tensor = streamed.tile;
    const Cut& cut = streamed.cut;
    if (cut.extent == 0) {
        return;
    }
    access.offset = 0;
    for (IndexMap* map : {&access.batch, &access.row, &access.col, &access.depth}) {
        if (map == &map_of(access, index)) {
            continue;
        }
        for (Digit& digit : *map) {
            if (digit.stride >= cut.stride * cut.extent) {
                digit.stride = digit.stride / (cut.stride * cut.extent) * (cut.stride * chunk);
            }
        }
    }
}

// Whether operation and tensors allow a vector kernel to be cut by rows.
bool works_by_rows(VectorOp op) {
    switch (op) {
        case VectorOp::LayerNormParameters:
        case VectorOp::ColumnSum:
        case VectorOp::CrossEntropy:
        case VectorOp::Gather:
        case VectorOp::ScatterAdd:
            return false;
        default:
            return true;
    }
}

bool works_by_elements(VectorOp op) {
    switch (op) {
        case VectorOp::GeluForward:
        case VectorOp::GeluBackward:
        case VectorOp::TanhForward:
        case VectorOp::TanhBackward:
        case VectorOp::Fill:
        case VectorOp::SgdUpdate:
            return true;
        default:
            return false;
    }
}

// Rows of at most `most` words, where the operation and its operands (dense matrices) do not care.
VectorSegment with_rows_of(std::int64_t most, VectorSegment segment) {
    bool dense = works_by_elements(segment.op);
    for (const auto* operands : {&segment.in, &segment.out}) {
        for (const VectorOperand& operand : *operands) {
            dense = dense && operand.token.modulus == 0 && (segment.rows == 1 || operand.row_stride == segment.cols);
        }
    }
    std::int64_t parts = 1;
    while (dense && (segment.cols % parts != 0 || segment.cols / parts > most)) {
        ++parts;
    }
    segment.cols /= parts;
    segment.rows *= parts;
    for (auto* operands : {&segment.in, &segment.out}) {
        for (VectorOperand& operand : *operands) {
            operand.row_stride = parts > 1 ? segment.cols : operand.row_stride;
        }
    }
    return segment;
}

class Streamer {
public:
    Streamer(const Step& step, const std::vector<bool>& in_dram, std::int64_t tile_words, int buffers)
        : step_(step), in_dram_(in_dram), tile_words_(tile_words), num_buffers_(buffers) {
        result_.step = step;
        result_.step.kernels.clear();
        result_.dram_homes.assign(step.tensors.size(), -1);
        result_.buffers.assign(step.tensors.size(), -1);
        std::int64_t address = kTensorsDramAddress;
        for (std::size_t i = 0; i < step.tensors.size(); ++i) {
            if (in_dram[i]) {
                result_.dram_homes[i] = address;
                address += ceil_div(step.tensors[i].words() * kWordBytes, kHomeAlignment) * kHomeAlignment;
            }
        }
        result_.dram_bytes = address - kTensorsDramAddress;
    }

    StreamedStep run() {
        for (const Kernel& kernel : step_.kernels) {
            kernel_ = &kernel;
            loads_ = tiles_ = stores_ = 0;
            std::visit([this](const auto& work) { stream(work); }, kernel.work);
        }
        return std::move(result_);
    }

private:
    [[nodiscard]] bool off_chip(TensorId tensor) const { return tensor != kNoTensor && in_dram_[index_of(tensor)]; }
    [[nodiscard]] std::int64_t words(TensorId tensor) const { return step_.tensor(tensor).words(); }

    void keep() { result_.step.kernels.push_back(*kernel_); }
    void stream(const DmaTransfer&) { keep(); }

    void stream(const Contraction& work) {
        std::vector<Streamed> streamed;
        const auto add = [&](const Access& access, bool read, bool written) {
            if (off_chip(access.tensor)) {
                note(streamed, access.tensor, read, written);
            }
        };
        add(work.a, true, false);
        add(work.b, true, false);
        add(work.bias, true, false);
        add(work.residual, true, false);
        // What a kernel leaves as it was must be in the tile that is written back.
        const bool writes_all = work.out.token.modulus == 0 && work.out.tensor != kNoTensor &&
                                words(work.out.tensor) == work.batch * work.rows * work.cols;
        add(work.out, !writes_all, true);
        if (streamed.empty()) {
            keep();
            return;
        }
        const std::optional<Index> index = choose_index(work, streamed);
        const std::int64_t extent = index ? extent_of(work, *index) : 1;
        const std::int64_t chunk = index ? chunk_of(streamed, extent, granularity(work, *index)) : 1;
        run_tiles(streamed, extent, chunk, [&](const Range& range) {
            Contraction part = work;
            if (index) {
                (*index == Index::Row ? part.rows : *index == Index::Col ? part.cols : part.batch) = range.size();
            }
            for (Access* access : {&part.a, &part.b, &part.out, &part.bias, &part.residual}) {
                if (access->tensor == kNoTensor) {
                    continue;
                }
                if (index) {
                    restrict_to(*access, *index, range);
                }
                for (const Streamed& own : streamed) {
                    if (own.tensor == access->tensor) {
                        move_to_tile(*access, own, index.value_or(Index::Row), range.size());
                        break;
                    }
                }
            }
            push_tile(part, extent > chunk);
        });
    }

    void stream(const VectorKernel& work) {
        const bool on_chip = std::none_of(work.segments.begin(), work.segments.end(), [this](const VectorSegment& own) {
            return std::any_of(own.in.begin(), own.in.end(), [&](const auto& in) { return off_chip(in.tensor); }) ||
                   std::any_of(own.out.begin(), own.out.end(), [&](const auto& out) { return off_chip(out.tensor); });
        });
        if (on_chip) {
            keep();
            return;
        }
        const bool several = work.segments.size() > 1;
        for (const VectorSegment& segment : work.segments) {
            if (segment.op == VectorOp::Gather && off_chip(segment.in.at(0).tensor)) {
                gather(segment, several);
            } else if (segment.op == VectorOp::ScatterAdd && off_chip(segment.out.at(0).tensor)) {
                scatter(segment);
            } else {
                stream(segment, several);
            }
        }
    }

    void stream(const VectorSegment& given, bool several) {
        const VectorSegment segment = with_rows_of(tile_words_, given);
        std::vector<Streamed> streamed;
        for (std::size_t i = 0; i < segment.in.size(); ++i) {
            if (off_chip(segment.in[i].tensor)) {
                note(streamed, segment.in[i].tensor, true, false);
            }
        }
        for (std::size_t i = 0; i < segment.out.size(); ++i) {
            const TensorId tensor = segment.out[i].tensor;
            if (off_chip(tensor)) {
                const bool all = words(tensor) == words_of(segment, output_shape(segment.op, i));
                note(streamed, tensor, !all, true);
            }
        }
        bool cut = false;
        for (Streamed& own : streamed) {
            if (words(own.tensor) > tile_words_) {
                if (!cuts_by_rows(segment, own.tensor)) {
                    refuse(own.tensor);
                }
                own.cut = {1, segment.rows, segment.cols};
                cut = true;
            }
        }
        const std::int64_t extent = cut ? segment.rows : 1;
        const std::int64_t chunk = cut ? chunk_of(streamed, extent, 1) : 1;
        run_tiles(streamed, extent, chunk, [&](const Range& range) {
            VectorSegment part = segment;
            if (cut) {
                part.rows = range.size();
            }
            const auto move = [&](VectorOperand& operand, OperandShape shape) {
                const auto own = std::find_if(streamed.begin(), streamed.end(), [&](const Streamed& candidate) {
                    return candidate.tensor == operand.tensor;
                });
                if (own != streamed.end()) {
                    operand.tensor = own->tile;
                }
                const bool whole = own == streamed.end() || own->cut.extent == 0;
                if (cut && whole && (shape == OperandShape::Matrix || shape == OperandShape::Column)) {
                    operand.offset += range.first * operand.row_stride;
                }
            };
            for (std::size_t i = 0; i < part.in.size(); ++i) {
                move(part.in[i], input_shape(part.op, i));
            }
            for (std::size_t i = 0; i < part.out.size(); ++i) {
                move(part.out[i], output_shape(part.op, i));
            }
            push_tile(VectorKernel{{std::move(part)}}, several || extent > chunk);
        });
    }

    // A segment may be cut by rows where each large tensor is exactly its matrix.
    [[nodiscard]] bool cuts_by_rows(const VectorSegment& segment, TensorId tensor) const {
        bool matrix = works_by_rows(segment.op) && words(tensor) == segment.rows * segment.cols;
        const auto check = [&](const VectorOperand& operand, OperandShape shape) {
            if (operand.tensor == tensor) {
                matrix = matrix && shape == OperandShape::Matrix && operand.offset == 0 &&
                         operand.row_stride == segment.cols && operand.token.modulus == 0;
            }
        };
        for (std::size_t i = 0; i < segment.in.size(); ++i) {
            check(segment.in[i], input_shape(segment.op, i));
        }
        for (std::size_t i = 0; i < segment.out.size(); ++i) {
            check(segment.out[i], output_shape(segment.op, i));
        }
        return matrix;
    }

    // Rows of a table, each at the place its position's token says.
    [[nodiscard]] DmaTransfer rows_by_token(const VectorOperand& table, const Range& positions,
                                            std::int64_t cols) const {
        DmaTransfer transfer;
        transfer.words = positions.size() * cols;
        transfer.dram_address = home(table.tensor) + table.offset * kWordBytes;
        transfer.home = table.tensor;
        transfer.row_words = cols;
        transfer.token = table.token;
        transfer.first_position = positions.first;
        return transfer;
    }

    void gather(const VectorSegment& segment, bool several) {
        const VectorOperand& table = segment.in.at(0);
        std::vector<Streamed> others;
        if (off_chip(segment.out.at(0).tensor)) {
            note(others, segment.out.at(0).tensor, false, true);
        }
        const std::int64_t most = std::max<std::int64_t>(1, tile_words_ / segment.cols);
        const bool cut = segment.rows > most;
        if (cut && !others.empty() && words(others.front().tensor) > tile_words_) {
            refuse(others.front().tensor);
        }
        open_whole(others);
        for (std::int64_t first = 0; first < segment.rows; first += most) {
            const Range range{first, std::min(segment.rows, first + most)};
            const TensorId tile = add_tile(table.tensor, {range.size(), segment.cols}, pinned_, true);
            DmaTransfer load = rows_by_token(table, range, segment.cols);
            load.tensor = tile;
            push_transfer(load);
            VectorSegment part = segment;
            part.rows = range.size();
            part.in[0] = {tile, 0, segment.cols, {}};
            part.out[0].offset += range.first * segment.out[0].row_stride;
            if (!others.empty()) {
                part.out[0].tensor = others.front().tile;
            }
            push_tile(VectorKernel{{std::move(part)}}, several || cut);
        }
        close_whole(others);
    }

    // Two positions may hold the same token, so each row is back in DRAM before the next is fetched.
    void scatter(const VectorSegment& segment) {
        const VectorOperand& gradient = segment.out.at(0);
        std::vector<Streamed> others;
        if (off_chip(segment.in.at(0).tensor)) {
            note(others, segment.in.at(0).tensor, true, false);
            if (words(others.front().tensor) > tile_words_) {
                refuse(others.front().tensor);
            }
        }
        open_whole(others);
        for (std::int64_t row = 0; row < segment.rows; ++row) {
            const TensorId tile = add_tile(gradient.tensor, {1, segment.cols}, pinned_, true);
            DmaTransfer transfer = rows_by_token(gradient, {row, row + 1}, segment.cols);
            transfer.tensor = tile;
            push_transfer(transfer);
            VectorSegment part = segment;
            part.rows = 1;
            part.in[0].offset += row * segment.in[0].row_stride;
            if (!others.empty()) {
                part.in[0].tensor = others.front().tile;
            }
            part.in[1] = part.out[0] = {tile, 0, segment.cols, {}};
            push_tile(VectorKernel{{std::move(part)}}, true);
            transfer.to_chip = false;
            push_transfer(transfer);
        }
        close_whole(others);
    }

    static void note(std::vector<Streamed>& streamed, TensorId tensor, bool read, bool written) {
        auto own = std::find_if(streamed.begin(), streamed.end(),
                                [tensor](const Streamed& other) { return other.tensor == tensor; });
        if (own == streamed.end()) {
            streamed.push_back({tensor, false, false, {}, kNoTensor});
            own = std::prev(streamed.end());
        }
        own->read = own->read || read;
        own->written = own->written || written;
    }

    // The index along which all large tensors can be cut, the one with the longest pieces; none if all fit as a whole.
    std::optional<Index> choose_index(const Contraction& work, std::vector<Streamed>& streamed) const {
        std::vector<Streamed*> large;
        for (Streamed& own : streamed) {
            if (words(own.tensor) > tile_words_) {
                large.push_back(&own);
            }
        }
        if (large.empty()) {
            return std::nullopt;
        }
        std::optional<Index> best;
        std::int64_t best_stride = 0;
        const Streamed* refused = large.front();
        for (const Index index : {Index::Row, Index::Col, Index::Batch}) {
            std::int64_t stride = std::numeric_limits<std::int64_t>::max();
            for (const Streamed* own : large) {
                const std::optional<Cut> cut = cut_of(work, own->tensor, index);
                if (!cut) {
                    refused = own;
                }
                stride = cut ? std::min(stride, cut->stride) : 0;
            }
            if (stride > best_stride) {
                best = index;
                best_stride = stride;
            }
        }
        if (!best) {
            refuse(refused->tensor);
        }
        for (Streamed* own : large) {
            own->cut = *cut_of(work, own->tensor, *best);
        }
        return best;
    }

    // How an index cuts a tensor: a single digit of it that the tensor's other digits do not cross.
    [[nodiscard]] std::optional<Cut> cut_of(const Contraction& work, TensorId tensor, Index index) const {
        std::optional<Cut> cut;
        for (const Access* access : {&work.a, &work.b, &work.out, &work.bias, &work.residual}) {
            const bool by_token = access->tensor != kNoTensor && access->token.modulus != 0;
            if (by_token && (access->tensor == tensor || index == Index::Batch)) {
                return std::nullopt;
            }
            if (access->tensor != tensor) {
                continue;
            }
            const IndexMap& map = map_of(*access, index);
            if (map.size() != 1 || map.front().stride == 0 || map.front().extent == 1 || access->offset != 0) {
                return std::nullopt;
            }
            const Digit& digit = map.front();
            const std::int64_t piece = digit.stride * digit.extent;
            if (words(tensor) % piece != 0 || (cut && (cut->stride != digit.stride || cut->extent != digit.extent))) {
                return std::nullopt;
            }
            for (const IndexMap* other : {&access->batch, &access->row, &access->col, &access->depth}) {
                for (const Digit& own : *other) {
                    const bool faster = own.stride * own.extent <= digit.stride;
                    const bool slower = own.stride % piece == 0;
                    if (other != &map && !faster && !slower) {
                        return std::nullopt;
                    }
                }
            }
            cut = Cut{words(tensor) / piece, digit.extent, digit.stride};
        }
        return cut;
    }

    // Positions per tile: as many as fit, in tiles of about the same size.
    [[nodiscard]] std::int64_t chunk_of(const std::vector<Streamed>& streamed, std::int64_t extent,
                                        std::int64_t multiple) const {
        std::int64_t most = extent;
        for (const Streamed& own : streamed) {
            if (own.cut.extent != 0) {
                const std::int64_t fits = tile_words_ / (own.cut.pieces * own.cut.stride) / multiple * multiple;
                if (fits == 0) {
                    refuse(own.tensor);
                }
                most = std::min(most, fits);
            }
        }
        const std::int64_t even = ceil_div(extent, ceil_div(extent, most));
        for (const std::int64_t round : {multiple * kChunkMultiple, multiple}) {
            if (const std::int64_t rounded = ceil_div(even, round) * round; rounded <= most) {
                return rounded;
            }
        }
        return most;
    }

    template <typename Emit>
    void run_tiles(std::vector<Streamed>& streamed, std::int64_t extent, std::int64_t chunk, const Emit& emit) {
        open_whole(streamed);
        const bool several = extent > chunk;
        for (std::int64_t first = 0; first < extent; first += chunk) {
            const Range range{first, std::min(extent, first + chunk)};
            std::vector<int> in_use = pinned_;
            for (Streamed& own : streamed) {
                if (own.cut.extent == 0) {
                    continue;
                }
                std::vector<std::int64_t> shape{range.size(), own.cut.stride};
                if (own.cut.pieces > 1) {
                    shape.insert(shape.begin(), own.cut.pieces);
                }
                own.tile = add_tile(own.tensor, std::move(shape), in_use, several);
                in_use.push_back(result_.buffers[index_of(own.tile)]);
                if (own.read) {
                    push_transfer(part_of(own, range, true));
                }
            }
            emit(range);
            for (const Streamed& own : streamed) {
                if (own.cut.extent != 0 && own.written) {
                    push_transfer(part_of(own, range, false));
                }
            }
        }
        close_whole(streamed);
    }

    // Tensors that fit a tile as they are: loaded before the kernel, stored after it.
    void open_whole(std::vector<Streamed>& streamed) {
        pinned_.clear();
        for (Streamed& own : streamed) {
            if (own.cut.extent == 0) {
                own.tile = add_tile(own.tensor, step_.tensor(own.tensor).shape, pinned_, false);
                pinned_.push_back(result_.buffers[index_of(own.tile)]);
                if (own.read) {
                    push_transfer(part_of(own, {}, true));
                }
            }
        }
    }
    void close_whole(const std::vector<Streamed>& streamed) {
        for (const Streamed& own : streamed) {
            if (own.cut.extent == 0 && own.written) {
                push_transfer(part_of(own, {}, false));
            }
        }
    }

    [[nodiscard]] DmaTransfer part_of(const Streamed& streamed, const Range& range, bool to_chip) const {
        DmaTransfer transfer;
        transfer.tensor = streamed.tile;
        transfer.words = result_.step.tensor(streamed.tile).words();
        transfer.home = streamed.tensor;
        transfer.dram_address = home(streamed.tensor);
        transfer.to_chip = to_chip;
        const Cut& cut = streamed.cut;
        if (cut.extent != 0) {
            transfer.dram_address += range.first * cut.stride * kWordBytes;
            if (cut.pieces > 1) {
                transfer.row_words = range.size() * cut.stride;
                transfer.row_pitch = cut.extent * cut.stride;
            }
        }
        return transfer;
    }

    [[nodiscard]] std::int64_t home(TensorId tensor) const { return result_.dram_homes[index_of(tensor)]; }

    // A new tensor in the next buffer that this kernel does not use yet; `another`: one more set must stay free.
    TensorId add_tile(TensorId tensor, std::vector<std::int64_t> shape, const std::vector<int>& in_use, bool another) {
        const auto needed = static_cast<int>(in_use.size()) + (another ? 2 : 1);
        num_buffers_ = std::max(num_buffers_, needed);
        while (std::find(in_use.begin(), in_use.end(), next_buffer_) != in_use.end()) {
            next_buffer_ = (next_buffer_ + 1) % num_buffers_;
        }
        const TensorId id{static_cast<std::uint32_t>(result_.step.tensors.size())};
        const Tensor& whole = step_.tensor(tensor);
        result_.step.tensors.push_back(
            {fmt::format("{}.tile{}", whole.name, num_tiles_++), std::move(shape), TensorClass::Buffer, whole.element});
        result_.dram_homes.push_back(-1);
        result_.buffers.push_back(next_buffer_);
        next_buffer_ = (next_buffer_ + 1) % num_buffers_;
        return id;
    }

    void push_transfer(const DmaTransfer& transfer) {
        result_.step.kernels.push_back({fmt::format("{}.{}{}", kernel_->name, transfer.to_chip ? "load" : "store",
                                                    transfer.to_chip ? loads_++ : stores_++),
                                        kernel_->phase, KernelClass::Dma, transfer});
    }

    template <typename Work>
    void push_tile(Work work, bool numbered) {
        std::string name = numbered ? fmt::format("{}.tile{}", kernel_->name, tiles_++) : kernel_->name;
        result_.step.kernels.push_back({std::move(name), kernel_->phase, kernel_->kernel_class, std::move(work)});
    }

    [[noreturn]] void refuse(TensorId tensor) const {
        throw ConfigError(
            fmt::format("{} has {} words in DRAM, and {} needs it whole; expected memory.stream_words of at least {}, "
                        "or the tensor "
                        "on chip",
                        step_.tensor(tensor).name, words(tensor), kernel_->name, words(tensor)));
    }

    const Step& step_;
    const std::vector<bool>& in_dram_;
    const std::int64_t tile_words_;
    int num_buffers_;
    StreamedStep result_;
    const Kernel* kernel_ = nullptr;
    std::vector<int> pinned_;  // buffers of tensors that stay on chip during the kernel
    int next_buffer_ = 0;
    int loads_ = 0, tiles_ = 0, stores_ = 0, num_tiles_ = 0;
};

}  // namespace

StreamedStep stream_tensors(const Step& step, const std::vector<bool>& in_dram, std::int64_t tile_words, int buffers) {
    return Streamer(step, in_dram, tile_words, buffers).run();
}

}  // namespace contraflow
