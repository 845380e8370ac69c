// What each vector operation does in hardware: its passes over the data, and what an element of each pass costs.
// Plain C++; the numbers behind docs/timing.md, "Vector unit".
//
// A pass streams rows of `cols` elements through the lanes. One beat is up to `lanes` neighbouring elements of a row;
// it takes as long as its slowest part:
//   - lanes: max(adds + compares, multiplies) cycles (each lane starts one add or compare and one multiply per cycle);
//   - specials: special operations x ceil(elements / special_lanes);
//   - memory: for every memory, the access costs of the beat's operands, through the ports the pass holds of it;
//   - row reductions: an accumulator takes one add per add_latency cycles (at most 128 accumulators, see step.h);
//   - column sums: likewise, one accumulator per column.
// A row reduction's tree is a pipelined tree beside the lanes: its latency ends the pass, its throughput is one beat of
// partial results per cycle.
// Approximation: the operations of a pass form one chain for its latency, even where two could start together;
// pessimistic by less than 20 cycles per pass.
#pragma once

#include <cstdint>
#include <vector>

#include "common/access_cost.h"
#include "common/command.h"
#include "contraflow/config.h"

namespace contraflow {

enum class StreamShape : std::uint8_t {
    Elements,   // one word per element
    RowScalar,  // one word per row
};

struct StreamUse {
    bool output = false;
    std::uint8_t operand = 0;  // index into in or out of the segment
    StreamShape shape = StreamShape::Elements;
};

// The operand of a segment that a stream moves.
[[nodiscard]] const AccessTable& access_of(const VectorSegmentCommand& segment, const StreamUse& stream);

struct VectorPass {
    std::vector<StreamUse> reads, writes;
    int adds = 0, compares = 0, multiplies = 0;  // per element, on the lanes
    int exps = 0, erfs = 0, tanhs = 0;           // per element, on the special lanes
    int row_reductions = 0;
    bool reduces_to_maximum = false;  // by compares, not adds
    bool column_reduction = false;
    int scalar_latency_cycles = 0;  // after a row's reduction: divide, square root, ...
    bool scalars_only = false;      // no elements: one beat
    bool single_row = false;        // one row whatever the segment's rows: writing a column sum
    bool serial_rows = false;       // rows follow each other through memory: each drains before the next
    std::int64_t serial_adds = 0;   // dependent adds at the end of the pass
};

// The passes of a segment, in order. Segments with more rows than row_registers run all passes on one group of rows
// after another.
[[nodiscard]] std::vector<VectorPass> vector_passes(const VectorConfig& config, const EngineConfig& engine,
                                                    const VectorSegmentCommand& segment);

// P of step.h: accumulators of a row reduction over n elements.
inline constexpr std::int64_t kReductionAccumulators = 128;
[[nodiscard]] std::int64_t reduction_accumulators(std::int64_t n);

struct RowCost {
    std::uint64_t cycles = 0, busy = 0, dependency = 0, bank = 0;
    struct Access {
        std::int64_t words = 0, rows = 0, conflicts = 0;
    };
    std::vector<Access> reads, writes;  // by stream of the pass
};

// Sees how a row's cycles come about; for waveforms.
class RowObserver {
public:
    virtual ~RowObserver() = default;
    // The rows of the words that `counter` counted last pass through a port of memory `ram` from cycle `at` on.
    virtual void access(RamId ram, AccessCounter& counter, std::int64_t at, std::size_t port, bool write) = 0;
    // The next cycles go to: work, waits for an accumulator, more accesses of a bank.
    virtual void cycles(std::int64_t busy, std::int64_t dependency, std::int64_t bank) = 0;
};

// Cost of one row of a pass. `residues`: address of the row modulo the row width of its memory, one per stream (reads,
// then writes); an observer needs the addresses themselves, which cost the same.
[[nodiscard]] RowCost vector_row_cost(const VectorConfig& config, const EngineConfig& engine,
                                      const std::vector<RamGeometry>& rams, const VectorSegmentCommand& segment,
                                      const VectorPass& pass, const std::vector<std::int64_t>& residues,
                                      AccessCounter& counter, RowObserver* observer = nullptr);

// Edges from the last beat of a pass to its last result: reading, the chain of operations, reductions, the write.
[[nodiscard]] std::uint64_t vector_pass_latency(const VectorConfig& config, const EngineConfig& engine,
                                                const std::vector<RamGeometry>& rams,
                                                const VectorSegmentCommand& segment, const VectorPass& pass);

}  // namespace contraflow
