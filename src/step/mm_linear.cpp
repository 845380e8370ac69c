// The dense matrix W (M x N): the uncompressed baseline, and the last layer of each head in every flow.
#include "step/linear.h"

namespace contraflow {
namespace {

class MmLinear : public Linear {
public:
    MmLinear(StepBuilder& builder, const std::string& name, std::int64_t outputs, std::int64_t inputs,
             std::int64_t rows)
        : Linear(builder, name, rows, outputs), inputs_(inputs) {
        weight_ = builder.add_parameter(name, "weight", {outputs, inputs});
        bias_ = builder.add_parameter(name, "bias", {outputs});
    }

private:
    void add_forward(const View& y) override {
        add(Phase::Forward, "Y", KernelClass::Dense,
            with_bias(product({1, rows_, outputs_, inputs_}, y, x_, matrix(weight_.value, inputs_).transposed())));
    }

    void add_backward(const View& dy, const View& dx, const View& residual) override {
        add(Phase::Backward, "dX", KernelClass::Dense,
            product({1, rows_, inputs_, outputs_}, dx, dy, matrix(weight_.value, inputs_), residual));
        add(Phase::Backward, "dW", KernelClass::Dense,
            product({1, outputs_, inputs_, rows_}, matrix(weight_.gradient, inputs_), dy.transposed(), x_));
    }

    std::int64_t inputs_;
    Variable weight_;
};

}  // namespace

std::unique_ptr<Linear> make_mm_linear(StepBuilder& builder, const std::string& name, std::int64_t outputs,
                                       std::int64_t inputs, std::int64_t rows) {
    return std::make_unique<MmLinear>(builder, name, outputs, inputs, rows);
}

}  // namespace contraflow
