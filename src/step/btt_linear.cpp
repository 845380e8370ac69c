// The bidirectional flow: W is merged from both ends to U (M x r) and Vt (r x N), which do not depend on x.
//
// Left chain: U_0 = core 0, U_k = U_{k-1} core_k, U = U_{d-1}. Right chain: V_{D-1} = core D-1, V_k = core_k V_{k+1},
// Vt = V_d (D cores, d of them output cores). The merges are kept for the backward pass, which walks each chain from
// its end: dU_k gives the gradient of core k and dU_{k-1}. With one core per side U (Vt) is the core itself.
#include "step/linear.h"

namespace contraflow {
namespace {

class BttLinear : public Linear {
public:
    BttLinear(StepBuilder& builder, const std::string& name, const TtShape& shape, std::int64_t rows)
        : Linear(builder, name, rows, shape.rows()), shape_(shape), num_out_(shape.out_modes.size()) {
        for (std::size_t k = 0; k < shape.num_cores(); ++k) {
            cores_.push_back(builder.add_parameter(name, "core." + std::to_string(k),
                                                   {shape.ranks[k], shape.tensor_mode(k), shape.ranks[k + 1]}));
        }
        bias_ = builder.add_parameter(name, "bias", {shape.rows()});

        merged_.resize(shape.num_cores());
        merged_[0] = cores_[0];
        for (std::size_t k = 1; k < num_out_; ++k) {
            merged_[k] = add_merged(left_name(k), {left_rows(k), shape.ranks[k + 1]});
        }
        merged_.back() = cores_.back();
        for (std::size_t k = shape.num_cores() - 1; k-- > num_out_;) {
            merged_[k] = add_merged(right_name(k), {shape.ranks[k], right_cols(k)});
        }
        if (num_out_ == 1) {
            add_core_aliases("U", u());
        }
        if (shape.in_modes.size() == 1) {
            add_core_aliases("Vt", vt());
        }
        t_ = add_merged("T", {rows, shape.middle_rank()});
    }

private:
    void add_forward(const View& y) override {
        const std::int64_t inner = shape_.middle_rank();
        for (std::size_t k = 1; k < num_out_; ++k) {
            const std::int64_t width = shape_.out_modes[k] * shape_.ranks[k + 1];
            add(Phase::Forward, left_name(k), KernelClass::Merge,
                product({1, left_rows(k - 1), width, shape_.ranks[k]}, matrix(merged_[k].value, width),
                        matrix(merged_[k - 1].value, shape_.ranks[k]), matrix(cores_[k].value, width)));
        }
        for (std::size_t k = shape_.num_cores() - 1; k-- > num_out_;) {
            const std::int64_t height = shape_.ranks[k] * shape_.tensor_mode(k);
            const std::int64_t cols = right_cols(k + 1);
            add(Phase::Forward, right_name(k), KernelClass::Merge,
                product({1, height, cols, shape_.ranks[k + 1]}, matrix(merged_[k].value, cols),
                        matrix(cores_[k].value, shape_.ranks[k + 1]), matrix(merged_[k + 1].value, cols)));
        }
        add(Phase::Forward, "T", KernelClass::Apply,
            product({1, rows_, inner, shape_.cols()}, matrix(t_.value, inner), x_,
                    matrix(vt().value, shape_.cols()).transposed()));
        add(Phase::Forward, "Y", KernelClass::Apply,
            with_bias(product({1, rows_, outputs_, inner}, y, matrix(t_.value, inner),
                              matrix(u().value, inner).transposed())));
    }

    void add_backward(const View& dy, const View& dx, const View& residual) override {
        const std::int64_t inner = shape_.middle_rank();
        const std::int64_t inputs = shape_.cols();
        // Towards the input first: the earlier layers wait for dx, and nothing but the update for the rest.
        add(Phase::Backward, "dT", KernelClass::Apply,
            product({1, rows_, inner, outputs_}, matrix(t_.gradient, inner), dy, matrix(u().value, inner)));
        add(Phase::Backward, "dX", KernelClass::Apply,
            product({1, rows_, inputs, inner}, dx, matrix(t_.gradient, inner), matrix(vt().value, inputs), residual));
        add(Phase::Backward, num_out_ == 1 ? "dcore.0" : "dU", KernelClass::CoreGrad,
            product({1, outputs_, inner, rows_}, matrix(u().gradient, inner), dy.transposed(),
                    matrix(t_.value, inner)));
        add(Phase::Backward, shape_.in_modes.size() == 1 ? core_op(num_out_) : "dVt", KernelClass::CoreGrad,
            product({1, inner, inputs, rows_}, matrix(vt().gradient, inputs), matrix(t_.gradient, inner).transposed(),
                    x_));
        add_left_gradients();
        add_right_gradients();
    }

    void add_left_gradients() {
        for (std::size_t k = num_out_; k-- > 1;) {
            const std::int64_t rank = shape_.ranks[k];
            const std::int64_t width = shape_.out_modes[k] * shape_.ranks[k + 1];
            const View chain = matrix(merged_[k].gradient, width);
            add(Phase::Backward, core_op(k), KernelClass::CoreGrad,
                product({1, rank, width, left_rows(k - 1)}, matrix(cores_[k].gradient, width),
                        matrix(merged_[k - 1].value, rank).transposed(), chain));
            add(Phase::Backward, k == 1 ? core_op(0) : "d" + left_name(k - 1), KernelClass::CoreGrad,
                product({1, left_rows(k - 1), rank, width}, matrix(merged_[k - 1].gradient, rank), chain,
                        matrix(cores_[k].value, width).transposed()));
        }
    }

    void add_right_gradients() {
        const std::size_t last = shape_.num_cores() - 1;
        for (std::size_t k = num_out_; k < last; ++k) {
            const std::int64_t rank = shape_.ranks[k + 1];
            const std::int64_t height = shape_.ranks[k] * shape_.tensor_mode(k);
            const std::int64_t cols = right_cols(k + 1);
            const View chain = matrix(merged_[k].gradient, cols);
            add(Phase::Backward, core_op(k), KernelClass::CoreGrad,
                product({1, height, rank, cols}, matrix(cores_[k].gradient, rank), chain,
                        matrix(merged_[k + 1].value, cols).transposed()));
            add(Phase::Backward, k + 1 == last ? core_op(last) : "d" + right_name(k + 1), KernelClass::CoreGrad,
                product({1, rank, cols, height}, matrix(merged_[k + 1].gradient, cols),
                        matrix(cores_[k].value, rank).transposed(), chain));
        }
    }

    [[nodiscard]] const Variable& u() const { return merged_[num_out_ - 1]; }
    [[nodiscard]] const Variable& vt() const { return merged_[num_out_]; }

    // Rows of U_k and columns of V_k.
    [[nodiscard]] std::int64_t left_rows(std::size_t k) const { return product_of_modes(shape_.out_modes, 0, k + 1); }
    [[nodiscard]] std::int64_t right_cols(std::size_t k) const {
        return product_of_modes(shape_.in_modes, k - num_out_, shape_.in_modes.size());
    }

    // U12 is G1 G2, V56 is G5 G6; the whole chains are U and Vt. From the tenth core on numbers are set apart: V9_10.
    [[nodiscard]] std::string left_name(std::size_t k) const {
        return k + 1 == num_out_ ? "U" : "U" + core_numbers(0, k);
    }
    [[nodiscard]] std::string right_name(std::size_t k) const {
        return k == num_out_ ? "Vt" : "V" + core_numbers(k, shape_.num_cores() - 1);
    }
    [[nodiscard]] std::string core_numbers(std::size_t first, std::size_t last) const {
        std::string numbers;
        for (std::size_t k = first; k <= last; ++k) {
            numbers += (k > first && shape_.num_cores() > 9 ? "_" : "") + std::to_string(k + 1);
        }
        return numbers;
    }
    [[nodiscard]] static std::string core_op(std::size_t k) { return "dcore." + std::to_string(k); }

    Variable add_merged(const std::string& name, const std::vector<std::int64_t>& shape) {
        return {builder_.add_tensor(join(name_, name), shape, TensorClass::Activation),
                builder_.add_tensor(join(name_, "d" + name), shape, TensorClass::Scratch)};
    }
    void add_core_aliases(const std::string& name, const Variable& core) {
        builder_.add_alias(join(name_, name), core.value);
        builder_.add_alias(join(name_, "d" + name), core.gradient);
    }

    TtShape shape_;
    std::size_t num_out_;
    std::vector<Variable> cores_;
    std::vector<Variable> merged_;  // U_k at output cores, V_k at input cores
    Variable t_;
};

}  // namespace

std::unique_ptr<Linear> make_btt_linear(StepBuilder& builder, const std::string& name, const TtShape& shape,
                                        std::int64_t rows) {
    return std::make_unique<BttLinear>(builder, name, shape, rows);
}

}  // namespace contraflow
