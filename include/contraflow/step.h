// The training step as the machine executes it: tensors and a list of kernels. No hardware and no SystemC in here.
//
// A step is built once per network and flow (src/step); its kernels stand in program order, and a kernel depends on
// every earlier kernel that wrote what it reads, or touched what it writes (dependences are derived from the accesses).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "contraflow/config.h"

namespace contraflow {

enum class TensorId : std::uint32_t {};
inline constexpr TensorId kNoTensor = TensorId{0xffffffffU};
[[nodiscard]] constexpr std::size_t index_of(TensorId id) {
    return static_cast<std::size_t>(id);
}

enum class TensorClass { Parameter, Gradient, Activation, Scratch, Buffer };
inline constexpr std::size_t kNumTensorClasses = 5;
enum class ElementType { F32, I32 };

// A named array of 32-bit words, row-major.
struct Tensor {
    std::string name;  // parameters and activations carry the golden names, gradients "d." + name
    std::vector<std::int64_t> shape;
    TensorClass tensor_class = TensorClass::Scratch;
    ElementType element = ElementType::F32;

    [[nodiscard]] std::int64_t words() const;
};

// One mixed-radix index: digits from slowest to fastest, each with its stride in words. Empty: extent 1, stride 0.
struct Digit {
    std::int64_t extent = 1;
    std::int64_t stride = 0;
};
using IndexMap = std::vector<Digit>;

// Adds stride * ((token[batch] / divisor) % modulus) to an address: the slice of a TTM core, or the row of a table,
// that the token at position `batch` (for vector kernels: at the row) selects. modulus 0: no token in this address.
struct TokenDigit {
    std::int64_t divisor = 1;
    std::int64_t modulus = 0;
    std::int64_t stride = 0;
};

// Address of an element of a contraction operand: offset + the four index maps + the token's slice, in words. A map
// that is empty means the operand does not depend on that index.
struct Access {
    TensorId tensor = kNoTensor;
    std::int64_t offset = 0;
    IndexMap batch, row, col, depth;
    TokenDigit token;
};

// out[b, i, j] = sum over k ascending of a[b, i, k] * b[b, k, j], then + bias, then + residual (each rounded).
// The sum: P = engine.partial_sums accumulators start at +0, product k is added to accumulator k mod P, then
// accumulators 1, 2, ... are added to accumulator 0 in this order. The residual may be `out` itself (accumulation);
// then batches run strictly one after another. MACs = batch * rows * cols * depth.
struct Contraction {
    std::int64_t batch = 1, rows = 1, cols = 1, depth = 1;
    Access a;         // batch, row, depth
    Access b;         // batch, col, depth
    Access out;       // batch, row, col
    Access bias;      // row and/or col; kNoTensor: none
    Access residual;  // batch, row, col; kNoTensor: none
};

// Element-wise and row-wise work. Every operation rounds to float32 on its own; n = cols.
//   row_sum(f) uses P accumulators, P = smallest power of two >= min(n, 128): element j is added to accumulator j mod P
//   in ascending j (accumulators start at +0), then for h = P/2, P/4, ..., 1: acc[i] += acc[i + h] for i < h.
//   row_max: the maximum (order does not matter). column sums start at +0 and add rows in ascending order.
//   inv_n = float(1) / float(n), rounded once; exp, erf, tanh, log are those of contraflow/special_functions.h.
// Operands by index, `in` -> `out`:
enum class VectorOp {
    // x, residual or kNoTensor, gamma, beta -> z (x + residual), xhat, rstd (rows), y
    //   mean = row_sum(z) * inv_n; v = row_sum((z - mean) * (z - mean)) * inv_n; rstd = 1 / sqrt(v + eps)
    //   xhat = (z - mean) * rstd; y = xhat * gamma + beta            (scalar: eps)
    //   Without a residual z may be kNoTensor: x is read instead.
    LayerNormForward,
    // dy, xhat, rstd, gamma -> dx
    //   g = dy * gamma; s1 = row_sum(g) * inv_n; s2 = row_sum(g * xhat) * inv_n; dx = ((g - s1) - xhat * s2) * rstd
    LayerNormBackward,
    // dy, xhat -> dgamma, dbeta (column sums of dy * xhat and of dy)
    LayerNormParameters,
    // scores, real (cols, I32) -> prob
    //   t = s * scale; m = row_max over real columns; e = exp(t - m), +0 where not real; p = e * (1 / row_sum(e))
    SoftmaxForward,
    // dprob, prob -> dscores;  dot = row_sum(p * dp); ds = (p * (dp - dot)) * scale
    SoftmaxBackward,
    GeluForward,   // x -> y;      y = (0.5 * x) * (1 + erf(x * 0.70710678118654752f))
    GeluBackward,  // dy, x -> dx; dx = dy * (0.5 * (1 + erf(x * c)) + x * (0.39894228040143268f * exp((x * x) * -0.5)))
    TanhForward,   // x -> y
    TanhBackward,  // dy, y -> dx; dx = dy * (1 - y * y)
    // logits, labels (rows, I32), words (1, I32) or kNoTensor -> dlogits, loss (3 words: intent, slot, total)
    //   rows first_row .. first_row + count - 1 count, count = row_count, or the value in `words` when given;
    //   w = 1 / float(count); per row m = row_max, e = exp(x - m), s = row_sum(e), l = (log(s) + m) - x[label];
    //   dlogits = (e * (1 / s) - (j == label)) * w, +0 in the other rows; L = (sum of l, ascending) * w (0 if count is
    //   0)
    //   loss_slot 0: loss[0] = L, loss[2] = L; loss_slot 1: loss[1] = L, loss[2] = loss[0] + L
    CrossEntropy,
    ColumnSum,   // dy -> db
    Fill,        // -> out = +0
    Gather,      // table -> out; row i of out = row token[i] of the table (Operand::token of the input)
    ScatterAdd,  // dy, grad -> grad; row token[i] of grad += row i of dy, i ascending
    SgdUpdate,   // p, g -> p; p = p - lr * g                          (scalar: lr)
};

// An operand of a vector kernel: element (i, j) at offset + i * row_stride + j, plus the token's row.
struct VectorOperand {
    TensorId tensor = kNoTensor;
    std::int64_t offset = 0;
    std::int64_t row_stride = 0;  // 0: the same row for every i
    TokenDigit token;
};

struct VectorSegment {
    VectorOp op = VectorOp::Fill;
    std::int64_t rows = 1, cols = 1;
    std::vector<VectorOperand> in, out;
    float scalar = 0;            // eps, scale or lr
    std::int64_t first_row = 0;  // CrossEntropy
    std::int64_t row_count = 0;  // CrossEntropy
    int loss_slot = 0;           // CrossEntropy
};

// A vector kernel runs its segments one after another (an update has one per parameter tensor).
struct VectorKernel {
    std::vector<VectorSegment> segments;
};

// A transfer between DRAM and an on-chip tensor: words offset .. offset + words - 1 of it, row-major. In DRAM they are
// rows of row_words words that start row_pitch words apart; row i may start at a row of a table that the token at
// position first_position + i selects (token, strides in words).
struct DmaTransfer {
    TensorId tensor = kNoTensor;
    std::int64_t offset = 0;
    std::int64_t words = 0;
    std::int64_t dram_address = 0;  // bytes
    bool to_chip = true;
    TensorId home = kNoTensor;   // the tensor in DRAM that this is a part of; kNoTensor: the host's sample or loss
    std::int64_t row_words = 0;  // 0: all words in one row
    std::int64_t row_pitch = 0;
    TokenDigit token;
    std::int64_t first_position = 0;

    [[nodiscard]] std::int64_t words_per_row() const { return row_words == 0 ? words : row_words; }
    [[nodiscard]] std::int64_t rows() const { return row_words == 0 ? 1 : words / row_words; }
};

// Which elements of a vector kernel's operand a segment touches.
enum class OperandShape {
    Matrix,  // rows x cols
    Row,     // cols, the same for every row
    Column,  // one word per row
    Word,    // one word
    Loss,    // the three loss words
};
// REQUIRES: the operation has an input (output) of this index; operands that are kNoTensor have a shape, too.
[[nodiscard]] OperandShape input_shape(VectorOp op, std::size_t index);
[[nodiscard]] OperandShape output_shape(VectorOp op, std::size_t index);
[[nodiscard]] std::int64_t words_of(const VectorSegment& segment, OperandShape shape);

enum class Phase { Forward, Backward, Update };
enum class KernelClass { Merge, Apply, CoreGrad, Attention, Dense, Embedding, Vector, Loss, Update, Dma };

struct Kernel {
    std::string name;  // <golden name>.<fwd|bwd|upd>.<op>
    Phase phase = Phase::Forward;
    KernelClass kernel_class = KernelClass::Apply;
    std::variant<Contraction, VectorKernel, DmaTransfer> work;

    [[nodiscard]] std::int64_t macs() const;
    // Operand and result words touched at least once, times 4. Where tokens select slices, as if all tokens differed.
    [[nodiscard]] std::int64_t bytes() const;
};

// A second name of a tensor (the gradient of embed.token is that of embed.pos; with one core per side U is a core).
struct TensorAlias {
    std::string name;
    TensorId tensor = kNoTensor;
};

struct Step {
    std::vector<Tensor> tensors;
    std::vector<TensorAlias> aliases;
    std::vector<Kernel> kernels;

    // The sample buffer, one I32 tensor that the DMA loads: tokens S, slot labels S, real (1/0) S, intent, words.
    TensorId sample = kNoTensor;
    TensorId loss = kNoTensor;  // intent, slot, total
    std::int64_t seq_len = 0;

    [[nodiscard]] std::int64_t macs() const;  // of all kernels
    [[nodiscard]] const Tensor& tensor(TensorId id) const { return tensors[index_of(id)]; }
    [[nodiscard]] TensorId find(const std::string& name) const;  // also by alias; kNoTensor if there is none

    [[nodiscard]] std::int64_t tokens_offset() const { return 0; }
    [[nodiscard]] std::int64_t slot_labels_offset() const { return seq_len; }
    [[nodiscard]] std::int64_t real_offset() const { return 2 * seq_len; }
    [[nodiscard]] std::int64_t intent_offset() const { return 3 * seq_len; }
    [[nodiscard]] std::int64_t words_offset() const { return 3 * seq_len + 1; }
    [[nodiscard]] std::int64_t sample_words() const { return 3 * seq_len + 2; }
};

inline constexpr std::int64_t kSampleDramAddress = 0;         // bytes; the host writes the sample here
inline constexpr std::int64_t kLossDramAddress = 1 << 16;     // bytes; the machine writes the loss here
inline constexpr std::int64_t kTensorsDramAddress = 1 << 17;  // bytes; tensors that live in DRAM follow from here

// The tensors a kernel touches, each in one list only, without repetition and in ascending order. A kernel that looks
// up tokens reads the sample buffer.
struct TensorUses {
    std::vector<TensorId> reads;
    std::vector<TensorId> writes;              // overwritten without being read (perhaps in part)
    std::vector<TensorId> read_modify_writes;  // accumulated or updated in place
};
[[nodiscard]] TensorUses tensor_uses(const Step& step, const Kernel& kernel);

// For each kernel the earlier kernels it waits for, ascending: those that wrote what it reads, and those that read or
// wrote what it writes. Tensors count as a whole. Transitively reduced: no listed kernel precedes another listed one.
// Of a tensor in DRAM only transfers of overlapping parts wait for each other.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> kernel_dependences(const Step& step);
// The same from the uses of each kernel, and with further kernels to wait for: `earlier[k]` of kernel k (may be empty).
[[nodiscard]] std::vector<std::vector<std::uint32_t>> kernel_dependences(
    const Step& step, const std::vector<TensorUses>& uses, const std::vector<std::vector<std::uint32_t>>& earlier);

[[nodiscard]] const char* to_string(Phase phase);
[[nodiscard]] const char* to_string(KernelClass kernel_class);
[[nodiscard]] const char* to_string(TensorClass tensor_class);
[[nodiscard]] const char* to_string(VectorOp op);

// The whole training step of the configured network and flow. REQUIRES: a validated configuration.
[[nodiscard]] Step build_training_step(const Config& config);

}  // namespace contraflow
