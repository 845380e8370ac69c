#include "step/linear.h"

namespace contraflow {

void Linear::forward(const View& x, const View& y) {
    x_ = x;
    add_forward(y);
}

void Linear::backward(const View& dy, const View& dx, const View& residual) {
    add_backward(dy, dx, residual);
    builder_.add_kernel(
        name_, Phase::Backward, "dbias", KernelClass::Vector,
        vector_segment(VectorOp::ColumnSum, rows_, outputs_, {matrix_operand(dy.tensor, outputs_, dy.offset)},
                       {row_operand(bias_.gradient)}));
}

Contraction Linear::with_bias(Contraction work) const {
    work.bias.tensor = bias_.value;
    work.bias.col = {{outputs_, 1}};
    return work;
}

std::unique_ptr<Linear> make_linear(StepBuilder& builder, const std::string& name, const TtShape& shape,
                                    std::int64_t rows, Flow flow) {
    switch (flow) {
        case Flow::Btt:
            return make_btt_linear(builder, name, shape, rows);
        case Flow::Tt:
            return make_tt_linear(builder, name, shape, rows);
        case Flow::Mm:
            return make_mm_linear(builder, name, shape.rows(), shape.cols(), rows);
    }
    return nullptr;
}

}  // namespace contraflow
