// The on-chip memories as the other blocks see them: a port of a memory is granted by the interconnect for a burst,
// then its words are read and written through this interface. Data moves at the edges that the burst's timing says; the
// memory keeps the counts.
#pragma once

#include <cstdint>
#include <systemc>

#include "common/command.h"

namespace contraflow {

class MemoryIf : public virtual sc_core::sc_interface {
public:
    [[nodiscard]] virtual const RamGeometry& geometry(RamId ram) const = 0;
    // The words of one memory, by word address.
    [[nodiscard]] virtual float* words(RamId ram) = 0;
    // Counts `words` words of a burst that moved through a port, in `row_accesses` bank row accesses, of which
    // `conflict_cycles` cycles were lost because a bank had to be accessed again.
    virtual void record_read(RamId ram, std::int64_t words, std::int64_t row_accesses,
                             std::int64_t conflict_cycles) = 0;
    virtual void record_write(RamId ram, std::int64_t words, std::int64_t row_accesses,
                              std::int64_t conflict_cycles) = 0;
};

}  // namespace contraflow
