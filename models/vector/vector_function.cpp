#include "vector/vector_function.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "contraflow/special_functions.h"
#include "vector/vector_passes.h"

namespace contraflow {

namespace {

constexpr float kSqrtHalf = 0.70710678118654752F;
constexpr float kInvSqrtTwoPi = 0.39894228040143268F;

float reciprocal(std::int64_t n) {
    return 1.0F / static_cast<float>(n);
}

}  // namespace

float row_sum(const float* values, std::size_t n) {
    std::array<float, kReductionAccumulators> sums{};
    const auto accumulators = static_cast<std::size_t>(reduction_accumulators(static_cast<std::int64_t>(n)));
    std::size_t begin = 0;
    for (; begin + accumulators <= n; begin += accumulators) {
        for (std::size_t i = 0; i < accumulators; ++i) {
            sums[i] += values[begin + i];
        }
    }
    for (std::size_t i = 0; begin + i < n; ++i) {
        sums[i] += values[begin + i];
    }
    for (std::size_t half = accumulators / 2; half > 0; half /= 2) {
        for (std::size_t i = 0; i < half; ++i) {
            sums[i] += sums[i + half];
        }
    }
    return sums[0];
}

void VectorFunction::begin(const VectorSegmentCommand& segment) {
    cols_ = static_cast<std::size_t>(segment.cols);
    const auto rows = static_cast<std::size_t>(segment.rows);
    for (auto* column : {&registers_.row_a, &registers_.row_b, &registers_.row_c}) {
        if (column->size() < rows) {
            column->resize(rows);
        }
    }
    registers_.col_a.assign(cols_, 0.0F);
    registers_.col_b.assign(cols_, 0.0F);
    for (auto* buffer : {&x_, &y_, &z_, &w_, &t_, &u_}) {
        if (buffer->size() < cols_) {
            buffer->resize(cols_);
        }
    }
}

void VectorFunction::run(const VectorSegmentCommand& segment, std::size_t pass, std::int64_t row_begin,
                         std::int64_t row_end) {
    for (std::int64_t row = row_begin; row < row_end; ++row) {
        switch (segment.op) {
            case VectorOp::LayerNormForward:
                layer_norm_forward(segment, pass, row);
                break;
            case VectorOp::LayerNormBackward:
                layer_norm_backward(segment, pass, row);
                break;
            case VectorOp::SoftmaxForward:
                softmax_forward(segment, pass, row);
                break;
            case VectorOp::SoftmaxBackward:
                softmax_backward(segment, pass, row);
                break;
            case VectorOp::CrossEntropy:
                cross_entropy(segment, pass, row);
                break;
            case VectorOp::LayerNormParameters:
            case VectorOp::ColumnSum:
                column_sums(segment, pass, row);
                break;
            default:
                element_wise(segment, row);
                break;
        }
    }
}

float* VectorFunction::row_of(const AccessTable& access, std::int64_t row) const {
    std::int64_t address = access.base + AccessTable::at(access.row, row);
    if (access.token.modulus != 0) {
        address += access.token_offset(registers_.tokens[static_cast<std::size_t>(row)]);
    }
    return memory_.words(access.ram) + address;
}

const float* VectorFunction::load(const AccessTable& access, std::int64_t row, std::vector<float>& buffer) const {
    const float* words = row_of(access, row);
    if (access.col_contiguous) {
        return words;
    }
    for (std::size_t j = 0; j < cols_; ++j) {
        buffer[j] = words[AccessTable::at(access.col, static_cast<std::int64_t>(j))];
    }
    return buffer.data();
}

void VectorFunction::store(const AccessTable& access, std::int64_t row, const float* values) const {
    float* words = row_of(access, row);
    if (access.col_contiguous) {
        std::copy(values, values + cols_, words);
        return;
    }
    for (std::size_t j = 0; j < cols_; ++j) {
        words[AccessTable::at(access.col, static_cast<std::int64_t>(j))] = values[j];
    }
}

void VectorFunction::store_scalar(const AccessTable& access, std::int64_t row, float value) const {
    *row_of(access, row) = value;
}

std::int32_t VectorFunction::load_int(const AccessTable& access, std::int64_t row) const {
    std::int32_t value = 0;
    std::memcpy(&value, row_of(access, row), sizeof value);
    return value;
}

void VectorFunction::layer_norm_forward(const VectorSegmentCommand& s, std::size_t pass, std::int64_t row) {
    const auto r = static_cast<std::size_t>(row);
    const AccessTable& source = s.out[0].present ? s.out[0] : s.in[0];
    if (pass == 0) {
        const float* z = load(s.in[0], row, x_);
        if (s.in[1].present) {
            const float* residual = load(s.in[1], row, y_);
            for (std::size_t j = 0; j < cols_; ++j) {
                z_[j] = z[j] + residual[j];
            }
            z = z_.data();
        }
        registers_.row_a[r] = row_sum(z, cols_) * reciprocal(s.cols);
        if (s.out[0].present) {
            store(s.out[0], row, z);
        }
    } else if (pass == 1) {
        const float* z = load(source, row, z_);
        const float mean = registers_.row_a[r];
        for (std::size_t j = 0; j < cols_; ++j) {
            const float d = z[j] - mean;
            t_[j] = d * d;
        }
        const float variance = row_sum(t_.data(), cols_) * reciprocal(s.cols);
        registers_.row_b[r] = 1.0F / std::sqrt(variance + s.scalar);
    } else {
        const float* z = load(source, row, z_);
        const float* gamma = load(s.in[2], row, x_);
        const float* beta = load(s.in[3], row, y_);
        const float mean = registers_.row_a[r];
        const float rstd = registers_.row_b[r];
        for (std::size_t j = 0; j < cols_; ++j) {
            t_[j] = (z[j] - mean) * rstd;
            u_[j] = t_[j] * gamma[j] + beta[j];
        }
        store(s.out[1], row, t_.data());
        store_scalar(s.out[2], row, rstd);
        store(s.out[3], row, u_.data());
    }
}

void VectorFunction::layer_norm_backward(const VectorSegmentCommand& s, std::size_t pass, std::int64_t row) {
    const auto r = static_cast<std::size_t>(row);
    const float* xhat = load(s.in[1], row, y_);
    if (pass == 0) {
        const float* dy = load(s.in[0], row, x_);
        const float* gamma = load(s.in[3], row, z_);
        for (std::size_t j = 0; j < cols_; ++j) {
            t_[j] = dy[j] * gamma[j];
            u_[j] = t_[j] * xhat[j];
        }
        registers_.row_a[r] = row_sum(t_.data(), cols_) * reciprocal(s.cols);
        registers_.row_b[r] = row_sum(u_.data(), cols_) * reciprocal(s.cols);
        store(s.out[0], row, t_.data());
        return;
    }
    const float* g = load(s.out[0], row, x_);
    const float s1 = registers_.row_a[r];
    const float s2 = registers_.row_b[r];
    const float rstd = *row_of(s.in[2], row);
    for (std::size_t j = 0; j < cols_; ++j) {
        t_[j] = ((g[j] - s1) - xhat[j] * s2) * rstd;
    }
    store(s.out[0], row, t_.data());
}

void VectorFunction::softmax_forward(const VectorSegmentCommand& s, std::size_t pass, std::int64_t row) {
    const auto r = static_cast<std::size_t>(row);
    if (pass == 2) {
        const float* e = load(s.out[0], row, x_);
        const float inverse = registers_.row_b[r];
        for (std::size_t j = 0; j < cols_; ++j) {
            t_[j] = e[j] * inverse;
        }
        store(s.out[0], row, t_.data());
        return;
    }
    const float* scores = load(s.in[0], row, x_);
    const float* real = load(s.in[1], row, y_);
    const auto is_real = [real](std::size_t j) {
        std::int32_t flag = 0;
        std::memcpy(&flag, real + j, sizeof flag);
        return flag != 0;
    };
    if (pass == 0) {
        float maximum = 0;
        bool any = false;
        for (std::size_t j = 0; j < cols_; ++j) {
            const float t = scores[j] * s.scalar;
            if (is_real(j) && (!any || t > maximum)) {
                maximum = t;
                any = true;
            }
        }
        registers_.row_a[r] = maximum;
        return;
    }
    const float maximum = registers_.row_a[r];
    for (std::size_t j = 0; j < cols_; ++j) {
        t_[j] = scores[j] * s.scalar - maximum;
    }
    special_exp(t_.data(), u_.data(), cols_);
    for (std::size_t j = 0; j < cols_; ++j) {
        if (!is_real(j)) {
            u_[j] = 0.0F;
        }
    }
    registers_.row_b[r] = 1.0F / row_sum(u_.data(), cols_);
    store(s.out[0], row, u_.data());
}

void VectorFunction::softmax_backward(const VectorSegmentCommand& s, std::size_t pass, std::int64_t row) {
    const auto r = static_cast<std::size_t>(row);
    const float* dp = load(s.in[0], row, x_);
    const float* p = load(s.in[1], row, y_);
    if (pass == 0) {
        for (std::size_t j = 0; j < cols_; ++j) {
            t_[j] = p[j] * dp[j];
        }
        registers_.row_a[r] = row_sum(t_.data(), cols_);
        return;
    }
    const float dot = registers_.row_a[r];
    for (std::size_t j = 0; j < cols_; ++j) {
        t_[j] = (p[j] * (dp[j] - dot)) * s.scalar;
    }
    store(s.out[0], row, t_.data());
}

void VectorFunction::cross_entropy(const VectorSegmentCommand& s, std::size_t pass, std::int64_t row) {
    const auto r = static_cast<std::size_t>(row);
    const std::int64_t label = load_int(s.in[1], row);
    if (pass == 0) {
        const float* x = load(s.in[0], row, x_);
        registers_.row_a[r] = *std::max_element(x, x + cols_);
        return;
    }
    if (pass == 1) {
        const float* x = load(s.in[0], row, x_);
        const float maximum = registers_.row_a[r];
        for (std::size_t j = 0; j < cols_; ++j) {
            t_[j] = x[j] - maximum;
        }
        special_exp(t_.data(), u_.data(), cols_);
        const float sum = row_sum(u_.data(), cols_);
        registers_.row_b[r] = 1.0F / sum;
        registers_.row_c[r] = (special_log(sum) + maximum) - x[label];
        store(s.out[0], row, u_.data());
        return;
    }
    const std::int64_t count = s.in[2].present ? load_int(s.in[2], 0) : s.row_count;
    const float weight = count > 0 ? 1.0F / static_cast<float>(count) : 0.0F;
    if (pass == 3) {
        float sum = 0;
        for (std::int64_t i = s.first_row; i < std::min(s.first_row + count, s.rows); ++i) {
            sum += registers_.row_c[static_cast<std::size_t>(i)];
        }
        const float loss = sum * weight;
        float* words = row_of(s.out[1], 0);
        const auto word = [&](std::int64_t i) -> float& { return words[AccessTable::at(s.out[1].col, i)]; };
        word(s.loss_slot) = loss;
        word(2) = s.loss_slot == 0 ? loss : word(0) + loss;
        return;
    }
    const bool counted = row >= s.first_row && row < s.first_row + count;
    const float* e = load(s.out[0], row, x_);
    const float inverse = registers_.row_b[r];
    for (std::size_t j = 0; j < cols_; ++j) {
        const float one_hot = static_cast<std::int64_t>(j) == label ? 1.0F : 0.0F;
        t_[j] = counted ? (e[j] * inverse - one_hot) * weight : 0.0F;
    }
    store(s.out[0], row, t_.data());
}

void VectorFunction::element_wise(const VectorSegmentCommand& s, std::int64_t row) {
    const float* a = !s.in.empty() ? load(s.in[0], row, x_) : nullptr;
    const float* b = s.in.size() > 1 ? load(s.in[1], row, y_) : nullptr;
    switch (s.op) {
        case VectorOp::GeluForward:
            for (std::size_t j = 0; j < cols_; ++j) {
                t_[j] = a[j] * kSqrtHalf;
            }
            special_erf(t_.data(), u_.data(), cols_);
            for (std::size_t j = 0; j < cols_; ++j) {
                t_[j] = (0.5F * a[j]) * (1.0F + u_[j]);
            }
            break;
        case VectorOp::GeluBackward:
            for (std::size_t j = 0; j < cols_; ++j) {
                t_[j] = b[j] * kSqrtHalf;
                w_[j] = (b[j] * b[j]) * -0.5F;
            }
            special_erf(t_.data(), u_.data(), cols_);
            special_exp(w_.data(), z_.data(), cols_);
            for (std::size_t j = 0; j < cols_; ++j) {
                t_[j] = a[j] * (0.5F * (1.0F + u_[j]) + b[j] * (kInvSqrtTwoPi * z_[j]));
            }
            break;
        case VectorOp::TanhForward:
            special_tanh(a, t_.data(), cols_);
            break;
        case VectorOp::TanhBackward:
            for (std::size_t j = 0; j < cols_; ++j) {
                t_[j] = a[j] * (1.0F - b[j] * b[j]);
            }
            break;
        case VectorOp::Fill:
            std::fill(t_.begin(), t_.begin() + static_cast<std::ptrdiff_t>(cols_), 0.0F);
            break;
        case VectorOp::Gather:
            std::copy(a, a + cols_, t_.begin());
            break;
        case VectorOp::ScatterAdd:
            for (std::size_t j = 0; j < cols_; ++j) {
                t_[j] = b[j] + a[j];
            }
            break;
        case VectorOp::SgdUpdate:
            for (std::size_t j = 0; j < cols_; ++j) {
                t_[j] = a[j] - s.scalar * b[j];
            }
            break;
        default:
            SC_REPORT_ERROR("/contraflow/vector", "an operation without an element function");
            return;
    }
    store(s.out[0], row, t_.data());
}

void VectorFunction::column_sums(const VectorSegmentCommand& s, std::size_t pass, std::int64_t row) {
    if (pass == 0) {
        const float* dy = load(s.in[0], row, x_);
        if (s.op == VectorOp::ColumnSum) {
            for (std::size_t j = 0; j < cols_; ++j) {
                registers_.col_a[j] += dy[j];
            }
            return;
        }
        const float* xhat = load(s.in[1], row, y_);
        for (std::size_t j = 0; j < cols_; ++j) {
            registers_.col_a[j] += dy[j] * xhat[j];
            registers_.col_b[j] += dy[j];
        }
        return;
    }
    store(s.out[pass - 1], 0, pass == 1 ? registers_.col_a.data() : registers_.col_b.data());
}

}  // namespace contraflow
