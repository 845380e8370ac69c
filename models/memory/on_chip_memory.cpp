#include "memory/on_chip_memory.h"

#include "common/sim_check.h"

#include <new>

namespace contraflow {

OnChipMemory::OnChipMemory(const sc_core::sc_module_name& name, const std::vector<RamGeometry>& rams, RamKind kind)
    : sc_core::sc_module(name), port_in("port_in"), rams_(rams), kind_(kind), words_(rams.size()), stats_(rams.size()) {
    port_in.bind(*this);
    for (std::size_t i = 0; i < rams.size(); ++i) {
        if (rams[i].kind == kind) {
            words_[i].reset(static_cast<float*>(std::calloc(static_cast<std::size_t>(rams[i].words()), sizeof(float))));
            if (words_[i] == nullptr && rams[i].words() > 0) {
                throw std::bad_alloc();
            }
        }
    }
}

const RamGeometry& OnChipMemory::geometry(RamId ram) const {
    return rams_[index_of(ram)];
}

float* OnChipMemory::words(RamId ram) {
    SIM_CHECK(rams_[index_of(ram)].kind == kind_, name() << " holds no memory " << index_of(ram));
    return words_[index_of(ram)].get();
}

void OnChipMemory::record_read(RamId ram, std::int64_t words, std::int64_t row_accesses, std::int64_t conflict_cycles) {
    RamStats& stats = stats_[index_of(ram)];
    stats.num_words_read += static_cast<std::uint64_t>(words);
    stats.num_row_reads += static_cast<std::uint64_t>(row_accesses);
    stats.num_conflict_cycles += static_cast<std::uint64_t>(conflict_cycles);
}

void OnChipMemory::record_write(RamId ram, std::int64_t words, std::int64_t row_accesses,
                                std::int64_t conflict_cycles) {
    RamStats& stats = stats_[index_of(ram)];
    stats.num_words_written += static_cast<std::uint64_t>(words);
    stats.num_row_writes += static_cast<std::uint64_t>(row_accesses);
    stats.num_conflict_cycles += static_cast<std::uint64_t>(conflict_cycles);
}

}  // namespace contraflow
