#include "plan/step_facts.h"

#include <algorithm>
#include <limits>

namespace contraflow {

StepFacts::StepFacts(const Step& step, std::size_t first_tile) {
    const auto end = static_cast<std::int32_t>(step.kernels.size()) - 1;
    uses.reserve(step.kernels.size());
    lifetimes.assign(step.tensors.size(), {std::numeric_limits<std::int32_t>::max(), -1});
    for (std::int32_t kernel = 0; kernel <= end; ++kernel) {
        uses.push_back(tensor_uses(step, step.kernels[static_cast<std::size_t>(kernel)]));
        const TensorUses& own = uses.back();
        for (const auto* ids : {&own.reads, &own.writes, &own.read_modify_writes}) {
            for (const TensorId id : *ids) {
                auto& [first, last] = lifetimes[index_of(id)];
                first = std::min(first, kernel);
                last = std::max(last, kernel);
            }
        }
    }
    for (std::size_t i = 0; i < step.tensors.size(); ++i) {
        const TensorClass tensor_class = step.tensors[i].tensor_class;
        const bool passing =
            tensor_class == TensorClass::Activation || tensor_class == TensorClass::Scratch || i >= first_tile;
        if (!passing || lifetimes[i].second < 0) {
            lifetimes[i] = {0, end};
        }
    }
}

}  // namespace contraflow
