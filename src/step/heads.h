// The two classifiers on top of the encoder, and the loss.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "contraflow/config.h"
#include "step/linear.h"
#include "step/step_builder.h"

namespace contraflow {

// TT linear, tanh, dense layer: rows x d_model -> rows x classes.
class Head {
public:
    // Reads the first `rows` rows of x.
    Head(StepBuilder& builder, const Config& config, const std::string& name, const Variable& x, std::int64_t rows,
         std::int64_t classes);

    void forward();
    // Writes the gradient of the rows it reads, or adds to it.
    void backward(bool accumulate);

    [[nodiscard]] const Variable& logits() const { return logits_; }

private:
    StepBuilder& builder_;
    std::string name_;
    std::int64_t rows_, d_model_, classes_;
    Variable x_;
    std::unique_ptr<Linear> fc_, out_;
    Variable fc_out_, tanh_out_, logits_;
};

// Mean cross entropy over rows of the logits; its gradient goes to logits.gradient.
struct LossRows {
    std::int64_t rows = 1, classes = 1;
    std::int64_t labels_offset = 0;  // in the sample buffer, one label per row
    std::int64_t first_row = 0;
    std::int64_t row_count = 1;  // 0: the sample's number of words
    int loss_slot = 0;
};
void add_cross_entropy(StepBuilder& builder, const std::string& name, const Variable& logits, const LossRows& rows);

// Intent (position 0) and slots (every position).
class Heads {
public:
    Heads(StepBuilder& builder, const Config& config, const Variable& x);

    void forward();
    // The loss and its way back to x.
    void backward();

private:
    StepBuilder& builder_;
    std::int64_t seq_len_, intents_, slots_;
    Head intent_, slot_;
};

}  // namespace contraflow
