// The three on-chip memories, as a block that reads and writes words sees them.
#pragma once

#include "common/memory_if.h"

namespace contraflow {

class MemoryPorts {
public:
    sc_core::sc_port<MemoryIf> lutram;  // words of LUTRAM memories
    sc_core::sc_port<MemoryIf> bram;    // words of BRAM memories
    sc_core::sc_port<MemoryIf> uram;    // words of URAM memories

    MemoryPorts() : lutram("lutram"), bram("bram"), uram("uram") {}

    // Remembers where each memory is, so that an access costs one look-up. Call at the start of simulation.
    void resolve(const std::vector<RamGeometry>& rams) {
        words_.clear();
        owners_.clear();
        for (std::size_t i = 0; i < rams.size(); ++i) {
            MemoryIf* owner = rams[i].kind == RamKind::Lutram ? lutram.operator->()
                              : rams[i].kind == RamKind::Bram ? bram.operator->()
                                                              : uram.operator->();
            owners_.push_back(owner);
            words_.push_back(owner->words(RamId{static_cast<std::uint32_t>(i)}));
        }
    }
    [[nodiscard]] float* words(RamId ram) const { return words_[index_of(ram)]; }
    [[nodiscard]] MemoryIf& of(RamId ram) const { return *owners_[index_of(ram)]; }

private:
    std::vector<float*> words_;
    std::vector<MemoryIf*> owners_;
};

}  // namespace contraflow
