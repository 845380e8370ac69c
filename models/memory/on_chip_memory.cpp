#include "memory/on_chip_memory.h"

#include <sys/mman.h>

#include <new>

#include "common/sim_check.h"

namespace contraflow {

namespace {

// Where the words of each memory of this kind begin when they lie one behind the other; at the end, their number.
std::vector<std::size_t> first_words(const std::vector<RamGeometry>& rams, RamKind kind) {
    std::vector<std::size_t> first{0};
    for (const RamGeometry& ram : rams) {
        first.push_back(first.back() + (ram.kind == kind ? static_cast<std::size_t>(ram.words()) : 0));
    }
    return first;
}

}  // namespace

// Pages of the kernel's own: what malloc hands out may have been used before, and would have to be zeroed word by word.
OnChipMemory::Words::Words(std::size_t count) : bytes_(count * sizeof(float)) {
    if (bytes_ == 0) {
        return;
    }
    void* pages = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        throw std::bad_alloc();
    }
    words_ = static_cast<float*>(pages);
}

OnChipMemory::Words::~Words() {
    if (words_ != nullptr) {
        munmap(words_, bytes_);
    }
}

OnChipMemory::OnChipMemory(const sc_core::sc_module_name& name, const std::vector<RamGeometry>& rams, RamKind kind)
    : sc_core::sc_module(name),
      port_in("port_in"),
      rams_(rams),
      kind_(kind),
      first_(first_words(rams, kind)),
      words_(first_.back()),
      stats_(rams.size()) {
    port_in.bind(*this);
}

const RamGeometry& OnChipMemory::geometry(RamId ram) const {
    return rams_[index_of(ram)];
}

float* OnChipMemory::words(RamId ram) {
    SIM_CHECK(rams_[index_of(ram)].kind == kind_, name() << " holds no memory " << index_of(ram));
    return words_.get() + first_[index_of(ram)];
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
