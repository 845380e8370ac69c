// What a kernel touches, and from that which kernels it waits for.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>

#include "contraflow/step.h"

namespace contraflow {
namespace {

using Ids = std::vector<TensorId>;

void make_set(Ids& ids) {
    ids.erase(std::remove(ids.begin(), ids.end(), kNoTensor), ids.end());
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

// Every read and every write of a kernel; in both lists when it does both.
struct Touched {
    Ids reads;
    Ids writes;
};

Touched touched(const Step& step, const Contraction& c) {
    const bool by_token =
        c.a.token.modulus != 0 || c.b.token.modulus != 0 || c.out.token.modulus != 0 || c.residual.token.modulus != 0;
    return {{c.a.tensor, c.b.tensor, c.bias.tensor, c.residual.tensor, by_token ? step.sample : kNoTensor},
            {c.out.tensor}};
}

Touched touched(const Step& step, const VectorKernel& kernel) {
    Touched result;
    const auto add = [&](Ids& ids, const VectorOperand& operand) {
        ids.push_back(operand.tensor);
        result.reads.push_back(operand.token.modulus != 0 ? step.sample : kNoTensor);
    };
    for (const VectorSegment& segment : kernel.segments) {
        for (const VectorOperand& operand : segment.in) {
            add(result.reads, operand);
        }
        for (const VectorOperand& operand : segment.out) {
            add(result.writes, operand);
        }
        if (segment.op == VectorOp::CrossEntropy && segment.loss_slot == 1) {
            result.reads.push_back(segment.out.at(1).tensor);  // the total adds to the loss of slot 0
        }
    }
    return result;
}

Touched touched(const Step& step, const DmaTransfer& transfer) {
    const TensorId tokens = transfer.token.modulus != 0 ? step.sample : kNoTensor;
    return transfer.to_chip ? Touched{{transfer.home, tokens}, {transfer.tensor}}
                            : Touched{{transfer.tensor, tokens}, {transfer.home}};
}

// Whether two parts of one tensor in DRAM share a word. Parts that are cut differently count as overlapping where
// their address ranges do; so do rows that tokens choose.
bool overlap(const DmaTransfer& a, const DmaTransfer& b) {
    if (a.token.modulus != 0 || b.token.modulus != 0) {
        return true;
    }
    const auto begin = [](const DmaTransfer& part) { return part.dram_address / 4; };
    const auto end = [&](const DmaTransfer& part) {
        return begin(part) + (part.rows() - 1) * part.row_pitch + part.words_per_row();
    };
    if (begin(a) >= end(b) || begin(b) >= end(a)) {
        return false;
    }
    const std::int64_t pitch = a.row_pitch;
    if (a.rows() == 1 || b.rows() == 1 || b.row_pitch != pitch) {
        return true;
    }
    // Both are columns of the same matrix: their first words lie in one row of it.
    const std::int64_t apart = begin(b) - begin(a);
    return apart >= pitch || apart <= -pitch || (apart < a.words_per_row() && -apart < b.words_per_row());
}

// For each kernel a set of earlier ones, as bits.
class EarlierKernels {
public:
    explicit EarlierKernels(std::size_t kernels) : width_((kernels + 63) / 64), words_(kernels * width_) {}

    [[nodiscard]] bool contains(std::size_t kernel, std::size_t earlier) const {
        return ((words_[kernel * width_ + earlier / 64] >> (earlier % 64)) & 1U) != 0;
    }
    // Adds an earlier kernel and all of its own set.
    void insert(std::size_t kernel, std::size_t earlier) {
        std::uint64_t* const words = &words_[kernel * width_];
        const std::uint64_t* const others = &words_[earlier * width_];
        for (std::size_t i = 0; i <= earlier / 64; ++i) {
            words[i] |= others[i];
        }
        words[earlier / 64] |= std::uint64_t{1} << (earlier % 64);
    }

private:
    std::size_t width_;  // words of a set
    std::vector<std::uint64_t> words_;
};

constexpr std::uint32_t kNobody = 0xffffffffU;

struct TensorHistory {
    std::uint32_t last_writer = kNobody;
    std::vector<std::uint32_t> readers;    // since the last write
    std::vector<std::uint32_t> transfers;  // all so far, of a tensor in DRAM
};

}  // namespace

TensorUses tensor_uses(const Step& step, const Kernel& kernel) {
    Touched all = std::visit([&](const auto& work) { return touched(step, work); }, kernel.work);
    make_set(all.reads);
    make_set(all.writes);
    TensorUses uses;
    std::set_intersection(all.reads.begin(), all.reads.end(), all.writes.begin(), all.writes.end(),
                          std::back_inserter(uses.read_modify_writes));
    std::set_difference(all.reads.begin(), all.reads.end(), all.writes.begin(), all.writes.end(),
                        std::back_inserter(uses.reads));
    std::set_difference(all.writes.begin(), all.writes.end(), all.reads.begin(), all.reads.end(),
                        std::back_inserter(uses.writes));
    return uses;
}

std::vector<std::vector<std::uint32_t>> kernel_dependences(const Step& step) {
    std::vector<TensorUses> uses;
    uses.reserve(step.kernels.size());
    for (const Kernel& kernel : step.kernels) {
        uses.push_back(tensor_uses(step, kernel));
    }
    return kernel_dependences(step, uses, {});
}

std::vector<std::vector<std::uint32_t>> kernel_dependences(const Step& step, const std::vector<TensorUses>& uses,
                                                           const std::vector<std::vector<std::uint32_t>>& earlier) {
    const std::size_t count = step.kernels.size();
    std::vector<std::vector<std::uint32_t>> dependences(count);
    EarlierKernels before(count);  // all transitive predecessors
    std::vector<TensorHistory> history(step.tensors.size());
    std::vector<std::uint32_t> candidates;

    for (std::uint32_t kernel = 0; kernel < count; ++kernel) {
        candidates.clear();
        if (!earlier.empty()) {
            candidates = earlier[kernel];
        }
        const auto wait_for_writer = [&](const TensorHistory& past) {
            if (past.last_writer != kNobody) {
                candidates.push_back(past.last_writer);
            }
        };
        const auto* transfer = std::get_if<DmaTransfer>(&step.kernels[kernel].work);
        const TensorId home = transfer != nullptr ? transfer->home : kNoTensor;
        if (home != kNoTensor) {
            TensorHistory& past = history[index_of(home)];
            for (const std::uint32_t before_it : past.transfers) {
                const auto& other = std::get<DmaTransfer>(step.kernels[before_it].work);
                if ((!transfer->to_chip || !other.to_chip) && overlap(*transfer, other)) {
                    candidates.push_back(before_it);
                }
            }
            past.transfers.push_back(kernel);
        }
        for (const TensorId id : uses[kernel].reads) {
            if (id != home) {
                wait_for_writer(history[index_of(id)]);
                history[index_of(id)].readers.push_back(kernel);
            }
        }
        for (const Ids* written : {&uses[kernel].writes, &uses[kernel].read_modify_writes}) {
            for (const TensorId id : *written) {
                if (id != home) {
                    TensorHistory& past = history[index_of(id)];
                    wait_for_writer(past);
                    candidates.insert(candidates.end(), past.readers.begin(), past.readers.end());
                    past.last_writer = kernel;
                    past.readers.clear();
                }
            }
        }
        // Latest first: what precedes a kept candidate need not be listed.
        std::sort(candidates.begin(), candidates.end(), std::greater<>());
        std::size_t kept = 0;
        for (const std::uint32_t candidate : candidates) {
            if (!before.contains(kernel, candidate)) {
                candidates[kept++] = candidate;
                before.insert(kernel, candidate);
            }
        }
        candidates.resize(kept);
        dependences[kernel].assign(candidates.rbegin(), candidates.rend());
    }
    return dependences;
}

}  // namespace contraflow
