#include "step/heads.h"

#include "step/nonlinearity.h"

namespace contraflow {

Head::Head(StepBuilder& builder, const Config& config, const std::string& name, const Variable& x, std::int64_t rows,
           std::int64_t classes)
    : builder_(builder),
      name_(name),
      rows_(rows),
      d_model_(config.network.d_model),
      classes_(classes),
      x_(x),
      fc_(make_linear(builder, name + ".fc", config.tt_model(), rows, config.network.flow)),
      out_(make_mm_linear(builder, name + ".out", classes, d_model_, rows)),
      fc_out_(builder.add_activation(name + ".fc", {rows, d_model_})),
      tanh_out_(builder.add_activation(name + ".tanh", {rows, d_model_})),
      logits_(builder.add_activation(name + ".logits", {rows, classes})) {}

void Head::forward() {
    fc_->forward(matrix(x_.value, d_model_), matrix(fc_out_.value, d_model_));
    add_tanh_forward(builder_, name_ + ".tanh", rows_, d_model_, fc_out_, tanh_out_);
    out_->forward(matrix(tanh_out_.value, d_model_), matrix(logits_.value, classes_));
}

void Head::backward(bool accumulate) {
    out_->backward(matrix(logits_.gradient, classes_), matrix(tanh_out_.gradient, d_model_));
    add_tanh_backward(builder_, name_ + ".tanh", rows_, d_model_, fc_out_, tanh_out_);
    const View dx = matrix(x_.gradient, d_model_);
    fc_->backward(matrix(fc_out_.gradient, d_model_), dx, accumulate ? dx : View{});
}

void add_cross_entropy(StepBuilder& builder, const std::string& name, const Variable& logits, const LossRows& rows) {
    const Step& step = builder.step();
    VectorSegment segment =
        vector_segment(VectorOp::CrossEntropy, rows.rows, rows.classes,
                       {matrix_operand(logits.value, rows.classes), column_operand(step.sample, rows.labels_offset),
                        rows.row_count == 0 ? row_operand(step.sample, step.words_offset()) : no_operand()},
                       {matrix_operand(logits.gradient, rows.classes), row_operand(step.loss)});
    segment.first_row = rows.first_row;
    segment.row_count = rows.row_count;
    segment.loss_slot = rows.loss_slot;
    builder.add_kernel(name, Phase::Backward, "loss", KernelClass::Loss, std::move(segment));
}

Heads::Heads(StepBuilder& builder, const Config& config, const Variable& x)
    : builder_(builder),
      seq_len_(config.network.seq_len),
      intents_(config.network.intents),
      slots_(config.network.slots),
      intent_(builder, config, "intent", x, 1, intents_),
      slot_(builder, config, "slot", x, seq_len_, slots_) {
    builder.set_loss(builder.add_tensor("loss", {3}, TensorClass::Buffer));
}

void Heads::forward() {
    intent_.forward();
    slot_.forward();
}

void Heads::backward() {
    const Step& step = builder_.step();
    add_cross_entropy(builder_, "intent", intent_.logits(), {1, intents_, step.intent_offset(), 0, 1, 0});
    // Positions 1 .. words carry a slot label: [CLS] and padding do not.
    add_cross_entropy(builder_, "slot", slot_.logits(), {seq_len_, slots_, step.slot_labels_offset(), 1, 0, 1});
    DmaTransfer store;
    store.tensor = step.loss;
    store.words = step.tensor(step.loss).words();
    store.dram_address = kLossDramAddress;
    store.to_chip = false;
    builder_.add_kernel("loss", Phase::Backward, "store", KernelClass::Dma, store);
    slot_.backward(false);
    intent_.backward(true);
}

}  // namespace contraflow
