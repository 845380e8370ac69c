#include "step/embedding.h"

#include <vector>

namespace contraflow {
namespace {

// Overwrites gradients with zero before positions add to them.
void add_zero_kernel(StepBuilder& builder, const std::string& name, const std::vector<TensorId>& gradients) {
    VectorKernel zero;
    for (const TensorId id : gradients) {
        const Tensor& tensor = builder.step().tensor(id);
        const std::int64_t cols = row_words(tensor);
        zero.segments.push_back(
            vector_segment(VectorOp::Fill, tensor.words() / cols, cols, {}, {matrix_operand(id, cols)}));
    }
    builder.add_kernel(name, Phase::Backward, "zero", KernelClass::Embedding, std::move(zero));
}

class TtmTable : public TokenTable {
public:
    TtmTable(StepBuilder& builder, const std::string& name, const TtmShape& shape, std::int64_t positions)
        : builder_(builder), name_(name), shape_(shape), positions_(positions) {
        for (std::size_t k = 0; k < shape.num_cores(); ++k) {
            cores_.push_back(builder.add_parameter(
                name, "core." + std::to_string(k),
                {shape.ranks[k], shape.vocab_modes[k], shape.hidden_modes[k], shape.ranks[k + 1]}));
        }
        partial_.resize(shape.num_cores());
        for (std::size_t k = 1; k + 1 < shape.num_cores(); ++k) {
            const std::string partial = "P" + std::to_string(k + 1);
            const std::vector<std::int64_t> dims{positions, modes_left_of(k + 1), shape.ranks[k + 1]};
            partial_[k] = {builder.add_tensor(join(name, partial), dims, TensorClass::Activation),
                           builder.add_tensor(join(name, "d" + partial), dims, TensorClass::Scratch)};
        }
    }

    void forward(TensorId rows) override {
        const std::size_t last = shape_.num_cores() - 1;
        for (std::size_t k = 1; k <= last; ++k) {
            const TensorId out = k == last ? rows : partial_[k].value;
            add(Phase::Forward, k == last ? "Y" : "P" + std::to_string(k + 1),
                product({positions_, modes_left_of(k), core_width(k), shape_.ranks[k]}, wide(k, out), left(k, false),
                        core_slice(k, cores_[k].value)));
        }
    }

    void backward(TensorId drows) override {
        const std::size_t last = shape_.num_cores() - 1;
        std::vector<TensorId> gradients;
        for (const Variable& core : cores_) {
            gradients.push_back(core.gradient);
        }
        add_zero_kernel(builder_, name_, gradients);
        for (std::size_t k = last; k >= 1; --k) {
            const View chain = wide(k, k == last ? drows : partial_[k].gradient);
            const View gradient = core_slice(k, cores_[k].gradient);
            // Positions run in ascending order, because each adds to what the one before may have written.
            add(Phase::Backward, core_op(k),
                product({positions_, shape_.ranks[k], core_width(k), modes_left_of(k)}, gradient,
                        left(k, false).transposed(), chain, gradient));
            add(Phase::Backward, k == 1 ? core_op(0) : "dP" + std::to_string(k),
                product({positions_, modes_left_of(k), shape_.ranks[k], core_width(k)}, left(k, true), chain,
                        core_slice(k, cores_[k].value).transposed(), k == 1 ? left(k, true) : View{}));
        }
    }

private:
    // The slice of core k of each position's token: r_k x (h_k r_{k+1}).
    [[nodiscard]] View core_slice(std::size_t k, TensorId core) const {
        View view = matrix(core, shape_.vocab_modes[k] * core_width(k));
        view.token.divisor = product_of_modes(shape_.vocab_modes, k + 1, shape_.num_cores());
        view.token.modulus = shape_.vocab_modes[k];
        view.token.stride = core_width(k);
        return view;
    }

    // What core k is multiplied with: (h_0 .. h_{k-1}) x r_k of each position, or its gradient.
    [[nodiscard]] View left(std::size_t k, bool gradient) const {
        if (k == 1) {
            View view = core_slice(0, gradient ? cores_[0].gradient : cores_[0].value);
            view.row_stride = shape_.ranks[1];
            return view;
        }
        View view = matrix(gradient ? partial_[k - 1].gradient : partial_[k - 1].value, shape_.ranks[k]);
        view.batch_stride = modes_left_of(k) * shape_.ranks[k];
        return view;
    }

    // A result of core k: (h_0 .. h_{k-1}) x (h_k r_{k+1}) of each position.
    [[nodiscard]] View wide(std::size_t k, TensorId tensor) const {
        View view = matrix(tensor, core_width(k));
        view.batch_stride = modes_left_of(k) * core_width(k);
        return view;
    }

    [[nodiscard]] std::int64_t core_width(std::size_t k) const { return shape_.hidden_modes[k] * shape_.ranks[k + 1]; }
    [[nodiscard]] std::int64_t modes_left_of(std::size_t k) const {
        return product_of_modes(shape_.hidden_modes, 0, k);
    }
    [[nodiscard]] static std::string core_op(std::size_t k) { return "dcore." + std::to_string(k); }

    void add(Phase phase, const std::string& op, const Contraction& work) {
        builder_.add_kernel(name_, phase, op, KernelClass::Embedding, work);
    }

    StepBuilder& builder_;
    std::string name_;
    TtmShape shape_;
    std::int64_t positions_;
    std::vector<Variable> cores_;
    std::vector<Variable> partial_;  // at k: P_{k+1}, the product of cores 0 .. k, unless that is a slice or the row
};

class DenseTable : public TokenTable {
public:
    DenseTable(StepBuilder& builder, const std::string& name, std::int64_t vocab, std::int64_t hidden,
               std::int64_t positions)
        : builder_(builder), name_(name), vocab_(vocab), hidden_(hidden), positions_(positions) {
        weight_ = builder.add_parameter(name, "weight", {vocab, hidden});
    }

    void forward(TensorId rows) override {
        builder_.add_kernel(name_, Phase::Forward, "gather", KernelClass::Embedding,
                            vector_segment(VectorOp::Gather, positions_, hidden_, {token_row(weight_.value)},
                                           {matrix_operand(rows, hidden_)}));
    }

    void backward(TensorId drows) override {
        add_zero_kernel(builder_, name_, {weight_.gradient});
        const VectorOperand gradient = token_row(weight_.gradient);
        builder_.add_kernel(name_, Phase::Backward, "scatter", KernelClass::Embedding,
                            vector_segment(VectorOp::ScatterAdd, positions_, hidden_,
                                           {matrix_operand(drows, hidden_), gradient}, {gradient}));
    }

private:
    [[nodiscard]] VectorOperand token_row(TensorId table) const { return {table, 0, 0, {1, vocab_, hidden_}}; }

    StepBuilder& builder_;
    std::string name_;
    std::int64_t vocab_, hidden_, positions_;
    Variable weight_;
};

std::unique_ptr<TokenTable> make_table(StepBuilder& builder, const Config& config) {
    const std::string name = "embed.token";
    return config.network.flow == Flow::Mm
               ? make_dense_table(builder, name, config.network.vocab, config.network.d_model, config.network.seq_len)
               : make_ttm_table(builder, name, config.ttm_table(), config.network.seq_len);
}

}  // namespace

std::unique_ptr<TokenTable> make_ttm_table(StepBuilder& builder, const std::string& name, const TtmShape& shape,
                                           std::int64_t positions) {
    return std::make_unique<TtmTable>(builder, name, shape, positions);
}

std::unique_ptr<TokenTable> make_dense_table(StepBuilder& builder, const std::string& name, std::int64_t vocab,
                                             std::int64_t hidden, std::int64_t positions) {
    return std::make_unique<DenseTable>(builder, name, vocab, hidden, positions);
}

Embedding::Embedding(StepBuilder& builder, const Config& config)
    : table_(make_table(builder, config)),
      position_(builder.add_parameter("embed.pos", "", {config.network.seq_len, config.network.d_model})),
      rows_(
          builder.add_tensor("embed.token", {config.network.seq_len, config.network.d_model}, TensorClass::Activation)),
      layer_norm_(builder, "embed.ln", config.network.seq_len, config.network.d_model,
                  static_cast<float>(config.network.ln_eps)),
      output_(builder.add_activation("embed.ln", {config.network.seq_len, config.network.d_model})) {
    // Token rows and positions are only ever added, so they have one gradient.
    builder.add_alias("d.embed.token", position_.gradient);
}

void Embedding::forward() {
    table_->forward(rows_);
    layer_norm_.forward(rows_, position_.value, output_.value);
}

void Embedding::backward() {
    layer_norm_.backward(output_.gradient, position_.gradient);
    table_->backward(position_.gradient);
}

}  // namespace contraflow
