// The right-to-left flow: x is contracted with one core at a time, from the last input core to the first output core.
//
// Z_k is what stands on bond k (rank r_k) between cores k-1 and k: Z_D = x, Z_d = T, Z_0 = y (D cores, d output cores).
// On the input side it is laid out (S, n_1 .. , r_k), on the output side (S, r_k, .. m_d), so that y comes out in
// place. Every Z is kept for the backward pass, which contracts each step with its core and with its input.
#include "step/linear.h"

namespace contraflow {
namespace {

class TtLinear : public Linear {
public:
    TtLinear(StepBuilder& builder, const std::string& name, const TtShape& shape, std::int64_t rows)
        : Linear(builder, name, rows, shape.rows()), shape_(shape), num_out_(shape.out_modes.size()) {
        for (std::size_t k = 0; k < shape.num_cores(); ++k) {
            cores_.push_back(builder.add_parameter(name, "core." + std::to_string(k),
                                                   {shape.ranks[k], shape.tensor_mode(k), shape.ranks[k + 1]}));
        }
        bias_ = builder.add_parameter(name, "bias", {shape.rows()});

        bonds_.resize(shape.num_cores() + 1);
        for (std::size_t k = shape.num_cores(); k-- > 1;) {
            const std::vector<std::int64_t> dims =
                k < num_out_ ? std::vector<std::int64_t>{rows, shape.ranks[k] * shape.out_modes[k] * modes_right_of(k)}
                             : std::vector<std::int64_t>{rows * modes_left_of(k), shape.ranks[k]};
            bonds_[k] = {builder.add_tensor(join(name, bond_name(k)), dims, TensorClass::Activation),
                         builder.add_tensor(join(name, "d" + bond_name(k)), dims, TensorClass::Scratch)};
        }
    }

private:
    void add_forward(const View& y) override {
        y_ = y;
        for (std::size_t k = shape_.num_cores(); k-- > num_out_;) {
            const std::int64_t width = shape_.tensor_mode(k) * shape_.ranks[k + 1];
            add(Phase::Forward, bond_name(k), KernelClass::Apply,
                product({1, rows_ * modes_left_of(k), shape_.ranks[k], width}, matrix(bonds_[k].value, shape_.ranks[k]),
                        input_of(k), matrix(cores_[k].value, width).transposed()));
        }
        for (std::size_t k = num_out_; k-- > 0;) {
            add(Phase::Forward, k == 0 ? "Y" : bond_name(k), KernelClass::Apply, output_core_forward(k));
        }
    }

    void add_backward(const View& dy, const View& dx, const View& residual) override {
        dy_ = dy;
        for (std::size_t k = 0; k < num_out_; ++k) {
            add(Phase::Backward, "d" + bond_name(k + 1), KernelClass::Apply, output_core_backward(k));
        }
        const std::size_t last = shape_.num_cores() - 1;
        for (std::size_t k = num_out_; k <= last; ++k) {
            const std::int64_t width = shape_.tensor_mode(k) * shape_.ranks[k + 1];
            const View out = k == last ? dx : matrix(bonds_[k + 1].gradient, width);
            add(Phase::Backward, k == last ? "dX" : "d" + bond_name(k + 1), KernelClass::Apply,
                product({1, rows_ * modes_left_of(k), width, shape_.ranks[k]}, reshaped(out, width),
                        matrix(bonds_[k].gradient, shape_.ranks[k]), matrix(cores_[k].value, width),
                        k == last ? reshaped(residual, width) : View{}));
        }
        for (std::size_t k = 0; k < num_out_; ++k) {
            add(Phase::Backward, core_op(k), KernelClass::CoreGrad, output_core_gradient(k));
        }
        for (std::size_t k = num_out_; k <= last; ++k) {
            const std::int64_t width = shape_.tensor_mode(k) * shape_.ranks[k + 1];
            add(Phase::Backward, core_op(k), KernelClass::CoreGrad,
                product({1, shape_.ranks[k], width, rows_ * modes_left_of(k)}, matrix(cores_[k].gradient, width),
                        matrix(bonds_[k].gradient, shape_.ranks[k]).transposed(), input_of(k)));
        }
    }

    // Output cores: the row index is (position, modes to the right), whose digits lie apart in memory.
    struct OutputCore {
        std::int64_t height;    // (r_k, m_k), stride r_{k+1} in the core and `right` in Z_k
        std::int64_t rank;      // r_{k+1}, stride 1 in the core and `right` in Z_{k+1}
        IndexMap above, below;  // (position, modes to the right) in Z_k and in Z_{k+1}
        std::int64_t right;
    };
    [[nodiscard]] OutputCore output_core(std::size_t k) const {
        OutputCore core;
        core.height = shape_.ranks[k] * shape_.out_modes[k];
        core.rank = shape_.ranks[k + 1];
        core.right = modes_right_of(k);
        core.above = {{rows_, core.height * core.right}, {core.right, 1}};
        core.below = {{rows_, core.rank * core.right}, {core.right, 1}};
        return core;
    }

    [[nodiscard]] Contraction output_core_forward(std::size_t k) const {
        const OutputCore core = output_core(k);
        Contraction c;
        c.rows = rows_ * core.right;
        c.cols = core.height;
        c.depth = core.rank;
        c.a.tensor = bonds_[k + 1].value;
        c.a.row = core.below;
        c.a.depth = {{core.rank, core.right}};
        c.b.tensor = cores_[k].value;
        c.b.col = {{core.height, core.rank}};
        c.b.depth = {{core.rank, 1}};
        c.out.tensor = k == 0 ? y_.tensor : bonds_[k].value;
        c.out.offset = k == 0 ? y_.offset : 0;
        c.out.row = core.above;
        c.out.col = {{core.height, core.right}};
        if (k == 0) {
            c.bias.tensor = bias_.value;
            c.bias.row = {{rows_, 0}, {core.right, 1}};
            c.bias.col = {{core.height, core.right}};
        }
        return c;
    }

    [[nodiscard]] Contraction output_core_backward(std::size_t k) const {
        const OutputCore core = output_core(k);
        Contraction c;
        c.rows = rows_ * core.right;
        c.cols = core.rank;
        c.depth = core.height;
        c.a = gradient_above(k);
        c.a.row = core.above;
        c.a.depth = {{core.height, core.right}};
        c.b.tensor = cores_[k].value;
        c.b.col = {{core.rank, 1}};
        c.b.depth = {{core.height, core.rank}};
        c.out.tensor = bonds_[k + 1].gradient;
        c.out.row = core.below;
        c.out.col = {{core.rank, core.right}};
        return c;
    }

    [[nodiscard]] Contraction output_core_gradient(std::size_t k) const {
        const OutputCore core = output_core(k);
        Contraction c;
        c.rows = core.height;
        c.cols = core.rank;
        c.depth = rows_ * core.right;
        c.a = gradient_above(k);
        c.a.row = {{core.height, core.right}};
        c.a.depth = core.above;
        c.b.tensor = bonds_[k + 1].value;
        c.b.col = {{core.rank, core.right}};
        c.b.depth = core.below;
        c.out.tensor = cores_[k].gradient;
        c.out.row = {{core.height, core.rank}};
        c.out.col = {{core.rank, 1}};
        return c;
    }

    // dZ_k without its index maps.
    [[nodiscard]] Access gradient_above(std::size_t k) const {
        Access access;
        access.tensor = k == 0 ? dy_.tensor : bonds_[k].gradient;
        access.offset = k == 0 ? dy_.offset : 0;
        return access;
    }

    // Z_{k+1} as seen by input core k: rows (position, modes to the left), columns (n_k, r_{k+1}).
    [[nodiscard]] View input_of(std::size_t k) const {
        const std::int64_t width = shape_.tensor_mode(k) * shape_.ranks[k + 1];
        return k + 1 == shape_.num_cores() ? reshaped(x_, width) : matrix(bonds_[k + 1].value, width);
    }

    // Contiguous rows cut into rows of `cols` words.
    [[nodiscard]] static View reshaped(View view, std::int64_t cols) {
        view.row_stride = cols;
        return view;
    }

    [[nodiscard]] std::int64_t modes_left_of(std::size_t k) const {
        return product_of_modes(shape_.in_modes, 0, k - num_out_);
    }
    [[nodiscard]] std::int64_t modes_right_of(std::size_t k) const {
        return product_of_modes(shape_.out_modes, k + 1, num_out_);
    }
    [[nodiscard]] std::string bond_name(std::size_t k) const { return k == num_out_ ? "T" : "Z" + std::to_string(k); }
    [[nodiscard]] static std::string core_op(std::size_t k) { return "dcore." + std::to_string(k); }

    TtShape shape_;
    std::size_t num_out_;
    std::vector<Variable> cores_;
    std::vector<Variable> bonds_;  // Z_k; the ends stay empty: x and y are given
    View y_, dy_;
};

}  // namespace

std::unique_ptr<Linear> make_tt_linear(StepBuilder& builder, const std::string& name, const TtShape& shape,
                                       std::int64_t rows) {
    return std::make_unique<TtLinear>(builder, name, shape, rows);
}

}  // namespace contraflow
