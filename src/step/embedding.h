// Token rows of the embedding table, the learned positions and the layer normalisation over their sum.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "contraflow/config.h"
#include "contraflow/tt_shape.h"
#include "step/layer_norm.h"
#include "step/step_builder.h"

namespace contraflow {

// Looks up the rows of the tokens in the sample buffer.
class TokenTable {
public:
    virtual ~TokenTable() = default;
    // rows: positions x hidden.
    virtual void forward(TensorId rows) = 0;
    // The gradients of the table, from that of the rows; a token that occurs several times adds up.
    virtual void backward(TensorId drows) = 0;
};

// A table in TTM format, contracted position by position: P_1 is the slice of core 0 that the token selects,
// P_{k+1} = P_k times the slice of core k, and the last is the row.
[[nodiscard]] std::unique_ptr<TokenTable> make_ttm_table(StepBuilder& builder, const std::string& name,
                                                         const TtmShape& shape, std::int64_t positions);
// A dense table (vocab x hidden): rows are copied, and the gradient is a whole table.
[[nodiscard]] std::unique_ptr<TokenTable> make_dense_table(StepBuilder& builder, const std::string& name,
                                                           std::int64_t vocab, std::int64_t hidden,
                                                           std::int64_t positions);

class Embedding {
public:
    Embedding(StepBuilder& builder, const Config& config);

    void forward();
    void backward();

    [[nodiscard]] const Variable& output() const { return output_; }

private:
    std::unique_ptr<TokenTable> table_;
    Variable position_;
    TensorId rows_;
    LayerNorm layer_norm_;
    Variable output_;
};

}  // namespace contraflow
