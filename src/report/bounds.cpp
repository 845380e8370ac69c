#include "report/bounds.h"

#include <algorithm>
#include <optional>

namespace contraflow {

namespace {

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) {
    return (a + b - 1) / b;
}

std::uint64_t count_pes(const Config& config) {
    return static_cast<std::uint64_t>(config.engine.count) * static_cast<std::uint64_t>(config.engine.rows) *
           static_cast<std::uint64_t>(config.engine.cols);
}

std::uint64_t transfer_bytes(const DmaCommand& transfer) {
    return static_cast<std::uint64_t>(transfer.words) * sizeof(std::uint32_t);
}

// Fabric cycles in which the DRAM can move this many bytes at two beats per memory clock on every channel.
std::uint64_t dram_cycles(std::uint64_t bytes, const Config& config) {
    const std::uint64_t bytes_per_second = static_cast<std::uint64_t>(config.dram.bus_bits / 8) * 2 *
                                           static_cast<std::uint64_t>(config.dram.clock_hz) *
                                           static_cast<std::uint64_t>(config.dram.channels);
    return ceil_div(bytes * static_cast<std::uint64_t>(config.fabric_hz), bytes_per_second);
}

std::uint64_t best_cycles(const Program& program, const Config& config, const KernelRecord& record) {
    const KernelCommand& kernel = program.kernels[record.kernel];
    switch (kernel.unit) {
        case UnitKind::Engine: {
            // An output stays on its PE: its sum takes a cycle per contraction index, however many PEs there are.
            const ContractionCommand& contraction = program.contractions[kernel.command];
            return std::max(ceil_div(static_cast<std::uint64_t>(kernel.macs), count_pes(config)),
                            static_cast<std::uint64_t>(contraction.depth));
        }
        case UnitKind::Vector:
            return record.cycles.busy;
        case UnitKind::Dma:
            break;
    }
    const std::uint64_t bytes = transfer_bytes(program.transfers[kernel.command]);
    return std::max(ceil_div(bytes, static_cast<std::uint64_t>(config.dma.beat_bytes)), dram_cycles(bytes, config));
}

// True when the two kernels ran on a common unit.
bool share_unit(const Program& program, const KernelRecord& a, const KernelRecord& b) {
    return program.kernels[a.kernel].unit == program.kernels[b.kernel].unit && a.unit < b.unit + b.gang_size &&
           b.unit < a.unit + a.gang_size;
}

}  // namespace

LowerBound lower_bound(const Program& program, const Config& config, const std::vector<KernelRecord>& records) {
    LowerBound bound;
    std::uint64_t macs = 0;
    std::uint64_t vector_cycles = 0;
    std::uint64_t bytes = 0;
    std::vector<std::uint64_t> own(program.kernels.size(), 0);
    for (const KernelRecord& record : records) {
        const KernelCommand& kernel = program.kernels[record.kernel];
        own[record.kernel] = best_cycles(program, config, record);
        macs += static_cast<std::uint64_t>(kernel.macs);
        vector_cycles += kernel.unit == UnitKind::Vector ? own[record.kernel] : 0;
        bytes += kernel.unit == UnitKind::Dma ? transfer_bytes(program.transfers[kernel.command]) : 0;
    }
    bound.macs = ceil_div(macs, count_pes(config));
    bound.vector = ceil_div(vector_cycles, static_cast<std::uint64_t>(config.vector.count));
    bound.bytes = dram_cycles(bytes, config);
    std::vector<std::uint64_t> chain(program.kernels.size(), 0);  // up to and with each kernel
    for (std::size_t kernel = 0; kernel < program.kernels.size(); ++kernel) {
        for (const std::uint32_t dependence : program.kernels[kernel].dependences) {
            chain[kernel] = std::max(chain[kernel], chain[dependence]);
        }
        chain[kernel] += own[kernel];
        bound.chain = std::max(bound.chain, chain[kernel]);
    }
    bound.cycles = std::max({bound.macs, bound.vector, bound.bytes, bound.chain});
    return bound;
}

std::vector<std::size_t> critical_path(const Program& program, const Config& config,
                                       const std::vector<KernelRecord>& records) {
    std::vector<std::size_t> path;
    if (records.empty()) {
        return path;
    }
    std::vector<std::size_t> record_of(program.kernels.size(), 0);
    for (std::size_t i = 0; i < records.size(); ++i) {
        record_of[records[i].kernel] = i;
    }
    const auto ends_earlier = [](const KernelRecord& a, const KernelRecord& b) { return a.end < b.end; };
    std::optional<std::size_t> current =
        static_cast<std::size_t>(std::max_element(records.begin(), records.end(), ends_earlier) - records.begin());
    const bool serial = config.schedule_policy == SchedulePolicy::Serial;
    while (current) {
        path.push_back(*current);
        const KernelRecord& record = records[*current];
        std::optional<std::size_t> before;
        const auto is_later = [&](std::size_t i) {  // than `before`, of those that ended before the record began
            const bool earlier = records[i].end <= record.start && records[i].start < record.start;
            return earlier && (!before || records[i].end > records[*before].end);
        };
        for (const std::uint32_t dependence : program.kernels[record.kernel].dependences) {
            if (is_later(record_of[dependence])) {
                before = record_of[dependence];
            }
        }
        for (std::size_t i = 0; i < records.size(); ++i) {
            if (is_later(i) && (serial || share_unit(program, records[i], record))) {
                before = i;
            }
        }
        current = before;
    }
    std::reverse(path.begin(), path.end());
    return path;
}

}  // namespace contraflow
