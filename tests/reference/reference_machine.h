// A plain C++ interpreter of a training step: the oracle the SystemC machine is held to, bit for bit.
//
// It executes the kernels one after another in program order with straightforward loops, in the order of sums that
// contraflow/step.h states; products and sums round separately, subnormals are zero. Nothing is shared with the machine
// but exp, erf, tanh and log (contraflow/special_functions.h). Every address is checked against its tensor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "contraflow/sample.h"
#include "contraflow/step.h"

namespace contraflow {

class ReferenceMachine {
public:
    // Tensors start as +0. REQUIRES: partial_sums >= 1; the step outlives the machine.
    explicit ReferenceMachine(const Step& step, int partial_sums = 1);

    // Values of an F32 (I32) tensor, row-major. REQUIRES: the tensor has that element type.
    [[nodiscard]] std::vector<float>& tensor(TensorId id);
    [[nodiscard]] std::vector<std::int32_t>& integers(TensorId id);
    // By name or alias; throws std::out_of_range if there is none.
    [[nodiscard]] std::vector<float>& tensor(const std::string& name);

    // Puts a sample where the host puts it (DRAM), and in the sample buffer for steps that do not load it.
    // REQUIRES: every list of the sample has seq_len entries.
    void load_sample(const Sample& sample);

    // Executes all kernels once. Throws std::logic_error naming the kernel if an access leaves its tensor, if the
    // digits of an index do not multiply to its extent, or if two results of one batch share a word.
    void run_step();

    // The loss as the host reads it back from DRAM: intent, slot, total. REQUIRES: the step stores it.
    [[nodiscard]] std::vector<float> stored_loss() const;

private:
    void run(const Contraction& work);
    void run(const VectorKernel& work);
    void run(const DmaTransfer& work);

    const Step& step_;
    std::size_t partial_sums_;
    std::vector<std::vector<float>> floats_;           // by tensor; empty for integers
    std::vector<std::vector<std::int32_t>> integers_;  // by tensor; empty for floats
    std::vector<std::uint32_t> dram_;                  // words
};

}  // namespace contraflow
