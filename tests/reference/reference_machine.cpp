#include "reference/reference_machine.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "contraflow/special_functions.h"
#include "numerics/float_environment.h"

namespace contraflow {
namespace {

using Index = std::size_t;

void require(bool condition, const char* what) {
    if (!condition) {
        throw std::logic_error(what);
    }
}

Index as_index(std::int64_t value) {
    return static_cast<Index>(value);
}

// The word offsets of index values 0 .. extent - 1.
std::vector<std::int64_t> offsets(const IndexMap& map, std::int64_t extent) {
    std::vector<std::int64_t> result{0};
    if (map.empty()) {
        result.assign(as_index(extent), 0);
        return result;
    }
    for (const Digit& digit : map) {
        std::vector<std::int64_t> longer;
        for (const std::int64_t slower : result) {
            for (std::int64_t value = 0; value < digit.extent; ++value) {
                longer.push_back(slower + value * digit.stride);
            }
        }
        result = std::move(longer);
    }
    require(as_index(extent) == result.size(), "the digits of an index do not multiply to its extent");
    return result;
}

std::int64_t smallest(const std::vector<std::int64_t>& values) {
    return *std::min_element(values.begin(), values.end());
}

std::int64_t largest(const std::vector<std::int64_t>& values) {
    return *std::max_element(values.begin(), values.end());
}

std::int64_t token_offset(const TokenDigit& digit, const std::int32_t* tokens, std::int64_t position) {
    if (digit.modulus == 0) {
        return 0;
    }
    return digit.stride * ((tokens[position] / digit.divisor) % digit.modulus);
}

// A contraction operand with its addresses spelt out.
class Operand {
public:
    Operand(const Access& access, const Contraction& shape, std::vector<float>& words, const std::int32_t* tokens)
        : access_(access),
          words_(words),
          tokens_(tokens),
          batch_(offsets(access.batch, shape.batch)),
          row_(offsets(access.row, shape.rows)),
          col_(offsets(access.col, shape.cols)),
          depth_(offsets(access.depth, shape.depth)) {}

    // Moves to a batch; no address of it may leave the tensor.
    void select(std::int64_t batch) {
        base_ = access_.offset + batch_[as_index(batch)] + token_offset(access_.token, tokens_, batch);
        require(base_ + smallest(row_) + smallest(col_) + smallest(depth_) >= 0, "an address before its tensor");
        require(base_ + largest(row_) + largest(col_) + largest(depth_) < static_cast<std::int64_t>(words_.size()),
                "an address behind its tensor");
    }

    [[nodiscard]] float& at(Index row, Index col, Index depth) {
        return words_[as_index(base_ + row_[row] + col_[col] + depth_[depth])];
    }

    [[nodiscard]] bool addresses_are_distinct() const {
        const std::int64_t first = smallest(row_) + smallest(col_);
        std::vector<bool> taken(as_index(largest(row_) + largest(col_) - first + 1), false);
        for (const std::int64_t row : row_) {
            for (const std::int64_t col : col_) {
                const Index word = as_index(row + col - first);
                if (taken[word]) {
                    return false;
                }
                taken[word] = true;
            }
        }
        return true;
    }

private:
    const Access& access_;
    std::vector<float>& words_;
    const std::int32_t* tokens_;
    std::vector<std::int64_t> batch_, row_, col_, depth_;
    std::int64_t base_ = 0;
};

// The sums of the vector unit.
template <typename Term>
float row_sum(Index count, Term term) {
    Index accumulators = 1;
    while (accumulators < std::min<Index>(count, 128)) {
        accumulators *= 2;
    }
    std::vector<float> sums(accumulators, 0.0F);
    for (Index j = 0; j < count; ++j) {
        sums[j % accumulators] += term(j);
    }
    for (Index half = accumulators / 2; half > 0; half /= 2) {
        for (Index i = 0; i < half; ++i) {
            sums[i] += sums[i + half];
        }
    }
    return sums[0];
}

// One segment of a vector kernel with its operands as 2-D arrays.
class Segment {
public:
    Segment(const VectorSegment& segment, std::vector<std::vector<float>>& floats,
            std::vector<std::vector<std::int32_t>>& integers, const std::int32_t* tokens)
        : segment_(segment), floats_(floats), integers_(integers), tokens_(tokens) {}

    void run();

private:
    void layer_norm_forward();
    void layer_norm_backward();
    void layer_norm_parameters();
    void softmax_forward();
    void softmax_backward();
    void gelu_forward();
    void gelu_backward();
    void cross_entropy();

    template <typename Function>
    void elementwise(Function function) {
        for (Index i = 0; i < rows(); ++i) {
            for (Index j = 0; j < cols(); ++j) {
                out(0, i, j) = function(i, j);
            }
        }
    }

    [[nodiscard]] Index rows() const { return as_index(segment_.rows); }
    [[nodiscard]] Index cols() const { return as_index(segment_.cols); }
    [[nodiscard]] bool has_in(Index operand) const {
        return operand < segment_.in.size() && segment_.in[operand].tensor != kNoTensor;
    }

    [[nodiscard]] Index address(const VectorOperand& operand, Index i, Index j, Index words) const {
        const std::int64_t row = static_cast<std::int64_t>(i);
        const std::int64_t word = operand.offset + row * operand.row_stride + static_cast<std::int64_t>(j) +
                                  token_offset(operand.token, tokens_, row);
        require(word >= 0 && as_index(word) < words, "an address outside its tensor");
        return as_index(word);
    }
    [[nodiscard]] float& word(const VectorOperand& operand, Index i, Index j) {
        require(operand.tensor != kNoTensor, "an operand is missing");
        std::vector<float>& words = floats_[index_of(operand.tensor)];
        return words[address(operand, i, j, words.size())];
    }
    [[nodiscard]] float in(Index operand, Index i, Index j) { return word(segment_.in.at(operand), i, j); }
    [[nodiscard]] float& out(Index operand, Index i, Index j) { return word(segment_.out.at(operand), i, j); }
    [[nodiscard]] std::int32_t integer(Index operand, Index i, Index j) {
        const VectorOperand& which = segment_.in.at(operand);
        const std::vector<std::int32_t>& words = integers_[index_of(which.tensor)];
        return words[address(which, i, j, words.size())];
    }

    const VectorSegment& segment_;
    std::vector<std::vector<float>>& floats_;
    std::vector<std::vector<std::int32_t>>& integers_;
    const std::int32_t* tokens_;
};

void Segment::run() {
    switch (segment_.op) {
        case VectorOp::LayerNormForward:
            return layer_norm_forward();
        case VectorOp::LayerNormBackward:
            return layer_norm_backward();
        case VectorOp::LayerNormParameters:
            return layer_norm_parameters();
        case VectorOp::SoftmaxForward:
            return softmax_forward();
        case VectorOp::SoftmaxBackward:
            return softmax_backward();
        case VectorOp::GeluForward:
            return gelu_forward();
        case VectorOp::GeluBackward:
            return gelu_backward();
        case VectorOp::TanhForward:
            return elementwise([&](Index i, Index j) { return special_tanh(in(0, i, j)); });
        case VectorOp::TanhBackward:
            return elementwise([&](Index i, Index j) {
                const float y = in(1, i, j);
                const float square = y * y;
                return in(0, i, j) * (1.0F - square);
            });
        case VectorOp::CrossEntropy:
            return cross_entropy();
        case VectorOp::ColumnSum:
            for (Index j = 0; j < cols(); ++j) {
                float sum = 0;
                for (Index i = 0; i < rows(); ++i) {
                    sum += in(0, i, j);
                }
                out(0, 0, j) = sum;
            }
            return;
        case VectorOp::Fill:
            return elementwise([&](Index, Index) { return 0.0F; });
        case VectorOp::Gather:
            return elementwise([&](Index i, Index j) { return in(0, i, j); });
        case VectorOp::ScatterAdd:
            return elementwise([&](Index i, Index j) { return in(1, i, j) + in(0, i, j); });
        case VectorOp::SgdUpdate:
            return elementwise([&](Index i, Index j) {
                const float change = segment_.scalar * in(1, i, j);
                return in(0, i, j) - change;
            });
    }
}

void Segment::layer_norm_forward() {
    const float inv_n = 1.0F / static_cast<float>(segment_.cols);
    for (Index i = 0; i < rows(); ++i) {
        std::vector<float> z(cols());
        for (Index j = 0; j < cols(); ++j) {
            z[j] = has_in(1) ? in(0, i, j) + in(1, i, j) : in(0, i, j);
            if (segment_.out.at(0).tensor != kNoTensor) {
                out(0, i, j) = z[j];
            }
        }
        const float mean = row_sum(cols(), [&](Index j) { return z[j]; }) * inv_n;
        const float variance = row_sum(cols(), [&](Index j) { return (z[j] - mean) * (z[j] - mean); }) * inv_n;
        const float rstd = 1.0F / std::sqrt(variance + segment_.scalar);
        out(2, i, 0) = rstd;
        for (Index j = 0; j < cols(); ++j) {
            const float xhat = (z[j] - mean) * rstd;
            const float scaled = xhat * in(2, i, j);
            out(1, i, j) = xhat;
            out(3, i, j) = scaled + in(3, i, j);
        }
    }
}

void Segment::layer_norm_backward() {
    const float inv_n = 1.0F / static_cast<float>(segment_.cols);
    for (Index i = 0; i < rows(); ++i) {
        const auto g = [&](Index j) { return in(0, i, j) * in(3, i, j); };
        const float s1 = row_sum(cols(), g) * inv_n;
        const float s2 = row_sum(cols(), [&](Index j) { return g(j) * in(1, i, j); }) * inv_n;
        for (Index j = 0; j < cols(); ++j) {
            const float along = in(1, i, j) * s2;
            out(0, i, j) = ((g(j) - s1) - along) * in(2, i, 0);
        }
    }
}

void Segment::layer_norm_parameters() {
    for (Index j = 0; j < cols(); ++j) {
        float dgamma = 0;
        float dbeta = 0;
        for (Index i = 0; i < rows(); ++i) {
            const float product = in(0, i, j) * in(1, i, j);
            dgamma += product;
            dbeta += in(0, i, j);
        }
        out(0, 0, j) = dgamma;
        out(1, 0, j) = dbeta;
    }
}

void Segment::softmax_forward() {
    for (Index i = 0; i < rows(); ++i) {
        const auto scaled = [&](Index j) { return in(0, i, j) * segment_.scalar; };
        const auto real = [&](Index j) { return integer(1, i, j) != 0; };
        float maximum = -INFINITY;
        for (Index j = 0; j < cols(); ++j) {
            maximum = real(j) ? std::max(maximum, scaled(j)) : maximum;
        }
        std::vector<float> e(cols());
        for (Index j = 0; j < cols(); ++j) {
            e[j] = real(j) ? special_exp(scaled(j) - maximum) : 0.0F;
        }
        const float inverse = 1.0F / row_sum(cols(), [&](Index j) { return e[j]; });
        for (Index j = 0; j < cols(); ++j) {
            out(0, i, j) = e[j] * inverse;
        }
    }
}

void Segment::softmax_backward() {
    for (Index i = 0; i < rows(); ++i) {
        const float dot = row_sum(cols(), [&](Index j) { return in(1, i, j) * in(0, i, j); });
        for (Index j = 0; j < cols(); ++j) {
            out(0, i, j) = (in(1, i, j) * (in(0, i, j) - dot)) * segment_.scalar;
        }
    }
}

constexpr float kSqrtHalf = 0.70710678118654752F;
constexpr float kInverseSqrtTwoPi = 0.39894228040143268F;

void Segment::gelu_forward() {
    elementwise([&](Index i, Index j) {
        const float x = in(0, i, j);
        return (0.5F * x) * (1.0F + special_erf(x * kSqrtHalf));
    });
}

void Segment::gelu_backward() {
    elementwise([&](Index i, Index j) {
        const float x = in(1, i, j);
        const float distribution = 0.5F * (1.0F + special_erf(x * kSqrtHalf));
        const float square = x * x;
        const float density = kInverseSqrtTwoPi * special_exp(square * -0.5F);
        const float slope = x * density;
        return in(0, i, j) * (distribution + slope);
    });
}

void Segment::cross_entropy() {
    const std::int64_t count = has_in(2) ? integer(2, 0, 0) : segment_.row_count;
    const float weight = 1.0F / static_cast<float>(count);
    float sum = 0;
    for (Index i = 0; i < rows(); ++i) {
        const std::int64_t row = static_cast<std::int64_t>(i);
        if (row < segment_.first_row || row >= segment_.first_row + count) {
            for (Index j = 0; j < cols(); ++j) {
                out(0, i, j) = 0;
            }
            continue;
        }
        float maximum = in(0, i, 0);
        for (Index j = 1; j < cols(); ++j) {
            maximum = std::max(maximum, in(0, i, j));
        }
        std::vector<float> e(cols());
        for (Index j = 0; j < cols(); ++j) {
            e[j] = special_exp(in(0, i, j) - maximum);
        }
        const float total = row_sum(cols(), [&](Index j) { return e[j]; });
        const Index label = as_index(integer(1, i, 0));
        require(label < cols(), "a label outside the classes");
        sum += (special_log(total) + maximum) - in(0, i, label);
        const float inverse = 1.0F / total;
        for (Index j = 0; j < cols(); ++j) {
            const float probability = e[j] * inverse;
            out(0, i, j) = (probability - (j == label ? 1.0F : 0.0F)) * weight;
        }
    }
    const float mean = count == 0 ? 0.0F : sum * weight;
    if (segment_.loss_slot == 0) {
        out(1, 0, 0) = mean;
        out(1, 0, 2) = mean;
    } else {
        out(1, 0, 1) = mean;
        out(1, 0, 2) = out(1, 0, 0) + mean;
    }
}

}  // namespace

ReferenceMachine::ReferenceMachine(const Step& step, int partial_sums)
    : step_(step),
      partial_sums_(static_cast<std::size_t>(partial_sums)),
      floats_(step.tensors.size()),
      integers_(step.tensors.size()) {
    for (Index i = 0; i < step.tensors.size(); ++i) {
        const Index words = as_index(step.tensors[i].words());
        if (step.tensors[i].element == ElementType::F32) {
            floats_[i].assign(words, 0.0F);
        } else {
            integers_[i].assign(words, 0);
        }
    }
}

std::vector<float>& ReferenceMachine::tensor(TensorId id) {
    require(step_.tensor(id).element == ElementType::F32, "a tensor of integers");
    return floats_[index_of(id)];
}

std::vector<std::int32_t>& ReferenceMachine::integers(TensorId id) {
    require(step_.tensor(id).element == ElementType::I32, "a tensor of floats");
    return integers_[index_of(id)];
}

std::vector<float>& ReferenceMachine::tensor(const std::string& name) {
    const TensorId id = step_.find(name);
    if (id == kNoTensor) {
        throw std::out_of_range("no tensor is called " + name);
    }
    return tensor(id);
}

void ReferenceMachine::load_sample(const Sample& sample) {
    std::vector<std::int32_t> words;
    for (const std::vector<std::int32_t>* part : {&sample.tokens, &sample.slot_labels, &sample.real}) {
        require(part->size() == as_index(step_.seq_len), "a sample of another length");
        words.insert(words.end(), part->begin(), part->end());
    }
    words.push_back(sample.intent);
    words.push_back(sample.words);
    integers(step_.sample) = words;
    dram_.resize(std::max(dram_.size(), as_index(kSampleDramAddress) / 4 + words.size()));
    std::memcpy(dram_.data() + kSampleDramAddress / 4, words.data(), 4 * words.size());
}

void ReferenceMachine::run_step() {
    const ScopedFlushToZero flush;
    for (const Kernel& kernel : step_.kernels) {
        try {
            std::visit([this](const auto& work) { run(work); }, kernel.work);
        } catch (const std::exception& error) {
            throw std::logic_error(kernel.name + ": " + error.what());
        }
    }
}

std::vector<float> ReferenceMachine::stored_loss() const {
    std::vector<float> loss(3);
    require(dram_.size() >= as_index(kLossDramAddress) / 4 + loss.size(), "no loss was stored");
    std::memcpy(loss.data(), dram_.data() + kLossDramAddress / 4, 4 * loss.size());
    return loss;
}

void ReferenceMachine::run(const Contraction& work) {
    const std::int32_t* tokens = integers_[index_of(step_.sample)].data() + step_.tokens_offset();
    const auto operand = [&](const Access& access) {
        return Operand(access, work, floats_.at(index_of(access.tensor)), tokens);
    };
    Operand a = operand(work.a);
    Operand b = operand(work.b);
    Operand out = operand(work.out);
    const auto optional_operand = [&](const Access& access) {
        return access.tensor == kNoTensor ? std::nullopt : std::make_optional(operand(access));
    };
    std::optional<Operand> bias = optional_operand(work.bias);
    std::optional<Operand> residual = optional_operand(work.residual);
    require(work.a.col.empty() && work.b.row.empty() && work.out.depth.empty(), "an operand with a foreign index");
    require(work.out.tensor != work.a.tensor && work.out.tensor != work.b.tensor, "a result that is also an operand");
    require(out.addresses_are_distinct(), "two results of one batch share a word");

    std::vector<float> sums(partial_sums_);
    for (std::int64_t batch = 0; batch < work.batch; ++batch) {
        for (Operand* each : {&a, &b, &out, bias ? &*bias : nullptr, residual ? &*residual : nullptr}) {
            if (each != nullptr) {
                each->select(batch);
            }
        }
        for (Index i = 0; i < as_index(work.rows); ++i) {
            for (Index j = 0; j < as_index(work.cols); ++j) {
                std::fill(sums.begin(), sums.end(), 0.0F);
                Index accumulator = 0;  // k modulo their number
                for (Index k = 0; k < as_index(work.depth); ++k) {
                    const float product = a.at(i, 0, k) * b.at(0, j, k);
                    sums[accumulator] += product;
                    accumulator = accumulator + 1 == partial_sums_ ? 0 : accumulator + 1;
                }
                float sum = sums[0];
                for (Index p = 1; p < partial_sums_; ++p) {
                    sum += sums[p];
                }
                if (bias) {
                    sum += bias->at(i, j, 0);
                }
                if (residual) {
                    sum += residual->at(i, j, 0);
                }
                out.at(i, j, 0) = sum;
            }
        }
    }
}

void ReferenceMachine::run(const VectorKernel& work) {
    const std::int32_t* tokens = integers_[index_of(step_.sample)].data() + step_.tokens_offset();
    for (const VectorSegment& segment : work.segments) {
        Segment(segment, floats_, integers_, tokens).run();
    }
}

void ReferenceMachine::run(const DmaTransfer& work) {
    const Index words = as_index(work.words);
    const Index offset = as_index(work.offset);
    const Index first = as_index(work.dram_address) / 4;
    require(offset + words <= as_index(step_.tensor(work.tensor).words()), "a transfer outside its tensor");
    dram_.resize(std::max(dram_.size(), first + words));
    const bool is_float = step_.tensor(work.tensor).element == ElementType::F32;
    void* chip = is_float ? static_cast<void*>(floats_[index_of(work.tensor)].data() + offset)
                          : static_cast<void*>(integers_[index_of(work.tensor)].data() + offset);
    if (work.to_chip) {
        std::memcpy(chip, dram_.data() + first, 4 * words);
    } else {
        std::memcpy(dram_.data() + first, chip, 4 * words);
    }
}

}  // namespace contraflow
