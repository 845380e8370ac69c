// On-chip memory of one kind (LUTRAM, BRAM or URAM): the memories that the plan built of it, each a set of banks.
//
// Ports per bank: 1 or 2, each one read or one write per cycle (true dual port; URAM288's two ports share one clock).
// Width: 32 bits per lane; a URAM row of 72 bits carries two words. Read latency: RamGeometry::read_latency_cycles from
// address to data. A read and a write of the same word in one cycle do not occur: the sequencer orders kernels that
// touch the same words, and within a kernel an accumulation reads and writes in different cycles. The words are stored
// by word address; which bank and row a word is in decides timing and block count alone (common/access_cost.h). Who may
// use a port when is the interconnect's business. Not modelled: ECC, byte enables, output registers beyond the read
// latency.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/memory_if.h"

namespace contraflow {

struct RamStats {
    std::uint64_t num_words_read = 0;
    std::uint64_t num_words_written = 0;
    std::uint64_t num_row_reads = 0;  // accesses of a bank row
    std::uint64_t num_row_writes = 0;
    std::uint64_t num_conflict_cycles = 0;  // cycles lost because a bank was accessed again for the same operation
};

class OnChipMemory : public sc_core::sc_module, public MemoryIf {
public:
    sc_core::sc_export<MemoryIf> port_in;  // word and count access, after a grant

    OnChipMemory(const sc_core::sc_module_name& name, const std::vector<RamGeometry>& rams, RamKind kind);

    [[nodiscard]] const RamGeometry& geometry(RamId ram) const override;
    [[nodiscard]] float* words(RamId ram) override;
    void record_read(RamId ram, std::int64_t words, std::int64_t row_accesses, std::int64_t conflict_cycles) override;
    void record_write(RamId ram, std::int64_t words, std::int64_t row_accesses, std::int64_t conflict_cycles) override;

    [[nodiscard]] const RamStats& stats(RamId ram) const { return stats_[index_of(ram)]; }

private:
    // All zero, and no memory of the host until a word of the page is used: a run without values uses few.
    class Words {
    public:
        explicit Words(std::size_t count);
        ~Words();
        Words(const Words&) = delete;
        Words& operator=(const Words&) = delete;

        [[nodiscard]] float* get() const { return words_; }

    private:
        float* words_ = nullptr;
        std::size_t bytes_ = 0;
    };

    const std::vector<RamGeometry>& rams_;
    RamKind kind_;
    std::vector<std::size_t> first_;  // word of each memory; memories of another kind have none
    Words words_;                     // of all memories
    std::vector<RamStats> stats_;
};

}  // namespace contraflow
