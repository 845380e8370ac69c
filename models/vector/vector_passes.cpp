#include "vector/vector_passes.h"

#include <algorithm>

#include "common/integer_math.h"

namespace contraflow {

namespace {

StreamUse in(std::uint8_t operand, StreamShape shape = StreamShape::Elements) {
    return {false, operand, shape};
}
StreamUse out(std::uint8_t operand, StreamShape shape = StreamShape::Elements) {
    return {true, operand, shape};
}

// Latency of one operation of a row reduction: a compare for a maximum, an add for a sum.
std::int64_t reduction_latency(const VectorConfig& config, const EngineConfig& engine, const VectorPass& pass) {
    return pass.reduces_to_maximum ? config.compare_latency_cycles : engine.add_latency_cycles;
}

}  // namespace

const AccessTable& access_of(const VectorSegmentCommand& segment, const StreamUse& stream) {
    return stream.output ? segment.out[stream.operand] : segment.in[stream.operand];
}

std::int64_t reduction_accumulators(std::int64_t n) {
    std::int64_t accumulators = 1;
    while (accumulators < n && accumulators < kReductionAccumulators) {
        accumulators *= 2;
    }
    return accumulators;
}

// Each operation's passes, with the operations of step.h counted one by one.
std::vector<VectorPass> vector_passes(const VectorConfig& config, const EngineConfig& engine,
                                      const VectorSegmentCommand& segment) {
    const int multiply = engine.multiply_latency_cycles;
    const int add = engine.add_latency_cycles;
    const int divide = config.divide_latency_cycles;
    std::vector<VectorPass> passes;
    const auto pass = [&passes]() -> VectorPass& {
        passes.emplace_back();
        return passes.back();
    };
    switch (segment.op) {
        case VectorOp::LayerNormForward: {
            const bool residual = segment.in[1].present;
            const bool keeps_sum = segment.out[0].present;
            const StreamUse source = keeps_sum ? out(0) : in(0);
            VectorPass& sum = pass();  // z = x + residual; sum z
            sum.reads.push_back(in(0));
            sum.adds = 1;
            if (residual) {
                sum.reads.push_back(in(1));
                ++sum.adds;
            }
            if (keeps_sum) {
                sum.writes.push_back(out(0));
            }
            sum.row_reductions = 1;
            sum.scalar_latency_cycles = multiply;
            VectorPass& variance = pass();  // (z - mean)^2, summed
            variance.reads = {source};
            variance.adds = 2;
            variance.multiplies = 1;
            variance.row_reductions = 1;
            variance.scalar_latency_cycles = multiply + add + config.sqrt_latency_cycles + divide;
            VectorPass& result = pass();  // xhat = (z - mean) * rstd; y = xhat * gamma + beta
            result.reads = {source, in(2), in(3)};
            result.writes = {out(1), out(3), out(2, StreamShape::RowScalar)};
            result.adds = 2;
            result.multiplies = 2;
            break;
        }
        case VectorOp::LayerNormBackward: {
            VectorPass& sums = pass();  // g = dy * gamma, kept in the place of the result; sum g, sum g * xhat
            sums.reads = {in(0), in(1), in(3)};
            sums.writes = {out(0)};
            sums.adds = 2;
            sums.multiplies = 2;
            sums.row_reductions = 2;
            sums.scalar_latency_cycles = multiply;
            VectorPass& result = pass();  // ((g - s1) - xhat * s2) * rstd
            result.reads = {out(0), in(1), in(2, StreamShape::RowScalar)};
            result.writes = {out(0)};
            result.adds = 2;
            result.multiplies = 2;
            break;
        }
        case VectorOp::LayerNormParameters: {
            VectorPass& sums = pass();
            sums.reads = {in(0), in(1)};
            sums.adds = 2;
            sums.multiplies = 1;
            sums.column_reduction = true;
            VectorPass& gamma = pass();
            gamma.writes = {out(0)};
            gamma.single_row = true;
            VectorPass& beta = pass();
            beta.writes = {out(1)};
            beta.single_row = true;
            break;
        }
        case VectorOp::SoftmaxForward: {
            VectorPass& maximum = pass();
            maximum.reads = {in(0), in(1)};
            maximum.compares = 1;
            maximum.multiplies = 1;
            maximum.row_reductions = 1;
            maximum.reduces_to_maximum = true;
            VectorPass& exponent = pass();  // e = exp(s * scale - max), summed
            exponent.reads = {in(0), in(1)};
            exponent.writes = {out(0)};
            exponent.adds = 2;
            exponent.multiplies = 1;
            exponent.exps = 1;
            exponent.row_reductions = 1;
            exponent.scalar_latency_cycles = divide;
            VectorPass& result = pass();
            result.reads = {out(0)};
            result.writes = {out(0)};
            result.multiplies = 1;
            break;
        }
        case VectorOp::SoftmaxBackward: {
            VectorPass& dot = pass();
            dot.reads = {in(0), in(1)};
            dot.adds = 1;
            dot.multiplies = 1;
            dot.row_reductions = 1;
            VectorPass& result = pass();
            result.reads = {in(0), in(1)};
            result.writes = {out(0)};
            result.adds = 1;
            result.multiplies = 2;
            break;
        }
        case VectorOp::GeluForward: {
            VectorPass& result = pass();
            result.reads = {in(0)};
            result.writes = {out(0)};
            result.adds = 1;
            result.multiplies = 3;
            result.erfs = 1;
            break;
        }
        case VectorOp::GeluBackward: {
            VectorPass& result = pass();
            result.reads = {in(0), in(1)};
            result.writes = {out(0)};
            result.adds = 2;
            result.multiplies = 7;
            result.erfs = 1;
            result.exps = 1;
            break;
        }
        case VectorOp::TanhForward: {
            VectorPass& result = pass();
            result.reads = {in(0)};
            result.writes = {out(0)};
            result.tanhs = 1;
            break;
        }
        case VectorOp::TanhBackward: {
            VectorPass& result = pass();
            result.reads = {in(0), in(1)};
            result.writes = {out(0)};
            result.adds = 1;
            result.multiplies = 2;
            break;
        }
        case VectorOp::CrossEntropy: {
            VectorPass& maximum = pass();
            maximum.reads = {in(0)};
            maximum.compares = 1;
            maximum.row_reductions = 1;
            maximum.reduces_to_maximum = true;
            VectorPass& exponent = pass();  // e = exp(x - max), summed; the label's logit is picked on the way
            exponent.reads = {in(0), in(1, StreamShape::RowScalar)};
            exponent.writes = {out(0)};
            exponent.adds = 2;
            exponent.exps = 1;
            exponent.row_reductions = 1;
            exponent.scalar_latency_cycles = std::max(divide, config.log_latency_cycles + 2 * add);
            VectorPass& result = pass();  // (e * (1 / sum) - one_hot) * w
            result.reads = {out(0), in(1, StreamShape::RowScalar)};
            if (segment.in[2].present) {
                result.reads.push_back(in(2, StreamShape::RowScalar));
            }
            result.writes = {out(0)};
            result.adds = 1;
            result.multiplies = 2;
            VectorPass& loss = pass();  // the rows' losses one after another, times w; the total
            loss.single_row = true;
            loss.scalars_only = true;
            loss.writes = {out(1, StreamShape::RowScalar)};
            if (segment.loss_slot == 1) {
                loss.reads = {out(1, StreamShape::RowScalar)};
            }
            loss.serial_adds = segment.rows + segment.loss_slot;
            loss.scalar_latency_cycles = divide + multiply;
            break;
        }
        case VectorOp::ColumnSum: {
            VectorPass& sums = pass();
            sums.reads = {in(0)};
            sums.adds = 1;
            sums.column_reduction = true;
            VectorPass& result = pass();
            result.writes = {out(0)};
            result.single_row = true;
            break;
        }
        case VectorOp::Fill: {
            VectorPass& result = pass();
            result.writes = {out(0)};
            break;
        }
        case VectorOp::Gather: {
            VectorPass& result = pass();
            result.reads = {in(0)};
            result.writes = {out(0)};
            break;
        }
        case VectorOp::ScatterAdd: {
            VectorPass& result = pass();
            result.reads = {in(0), in(1)};
            result.writes = {out(0)};
            result.adds = 1;
            result.serial_rows = true;
            break;
        }
        case VectorOp::SgdUpdate: {
            VectorPass& result = pass();
            result.reads = {in(0), in(1)};
            result.writes = {out(0)};
            result.adds = 1;
            result.multiplies = 1;
            break;
        }
    }
    return passes;
}

RowCost vector_row_cost(const VectorConfig& config, const EngineConfig& engine, const std::vector<RamGeometry>& rams,
                        const VectorSegmentCommand& segment, const VectorPass& pass,
                        const std::vector<std::int64_t>& residues, AccessCounter& counter, RowObserver* observer) {
    RowCost total;
    total.reads.resize(pass.reads.size());
    total.writes.resize(pass.writes.size());
    const std::int64_t cols = segment.cols;
    const std::int64_t lanes = config.lanes;
    const std::int64_t beats = pass.scalars_only ? 1 : ceil_div(cols, lanes);

    // Cycles between beats that the accumulators of a reduction need.
    std::int64_t accumulate = 1;
    if (pass.row_reductions > 0) {
        const std::int64_t accumulators = reduction_accumulators(cols);
        if (cols > accumulators) {
            const std::int64_t latency = reduction_latency(config, engine, pass);
            accumulate = accumulators >= lanes ? ceil_div(latency, accumulators / lanes)
                                               : latency * ceil_div(lanes, accumulators);
        }
    } else if (pass.column_reduction) {
        accumulate = ceil_div(engine.add_latency_cycles, beats);
    }

    PortCycles ports;
    for (std::int64_t beat = 0; beat < beats; ++beat) {
        const std::int64_t begin = beat * lanes;
        const std::int64_t end = std::min(begin + lanes, cols);
        const std::int64_t count = end - begin;
        const std::int64_t alu = std::max<std::int64_t>({1, pass.adds + pass.compares, pass.multiplies});
        const std::int64_t special = (pass.exps + pass.erfs + pass.tanhs) * ceil_div(count, config.special_lanes);
        const std::int64_t work = std::max(alu, special);
        const std::int64_t paced = std::max(work, accumulate);
        ports.clear();
        const auto charge = [&](const StreamUse& stream, std::int64_t residue, RowCost::Access& access_total,
                                bool is_write) {
            if (stream.shape == StreamShape::RowScalar && beat != 0) {
                return;
            }
            const AccessTable& access = access_of(segment, stream);
            const RamGeometry& ram = rams[index_of(access.ram)];
            static const OffsetTable kSame;  // a row's scalar is one word
            const OffsetTable& table = stream.shape == StreamShape::RowScalar ? kSame : access.col;
            const AccessCost cost = counter.cost(ram, residue, table, begin, begin + count);
            access_total.words += cost.words;
            access_total.rows += cost.rows;
            access_total.conflicts += cost.conflict_cycles();
            const PortCycles::Turn turn = ports.charge(access.ram, ram.ports, cost.cycles);
            if (observer != nullptr) {
                observer->access(access.ram, counter, static_cast<std::int64_t>(total.cycles) + turn.from, turn.port,
                                 is_write);
            }
        };
        for (std::size_t i = 0; i < pass.reads.size(); ++i) {
            charge(pass.reads[i], residues[i], total.reads[i], false);
        }
        for (std::size_t i = 0; i < pass.writes.size(); ++i) {
            charge(pass.writes[i], residues[pass.reads.size() + i], total.writes[i], true);
        }
        const std::int64_t memory = ports.cycles();
        const std::int64_t cycles = std::max(paced, memory);
        total.cycles += static_cast<std::uint64_t>(cycles);
        total.busy += static_cast<std::uint64_t>(work);
        total.dependency += static_cast<std::uint64_t>(paced - work);
        total.bank += static_cast<std::uint64_t>(cycles - paced);
        if (observer != nullptr) {
            observer->cycles(work, paced - work, cycles - paced);
        }
    }
    // The tree takes one beat of partial sums per cycle.
    if (pass.row_reductions > 0) {
        const auto tree =
            static_cast<std::uint64_t>(pass.row_reductions * ceil_div(reduction_accumulators(cols), lanes));
        if (tree > total.cycles) {
            if (observer != nullptr) {
                observer->cycles(0, static_cast<std::int64_t>(tree - total.cycles), 0);
            }
            total.dependency += tree - total.cycles;
            total.cycles = tree;
        }
    }
    return total;
}

std::uint64_t vector_pass_latency(const VectorConfig& config, const EngineConfig& engine,
                                  const std::vector<RamGeometry>& rams, const VectorSegmentCommand& segment,
                                  const VectorPass& pass) {
    std::int64_t read = 0;
    for (const StreamUse& stream : pass.reads) {
        read = std::max<std::int64_t>(read, rams[index_of(access_of(segment, stream).ram)].read_latency_cycles);
    }
    std::int64_t chain = std::int64_t{pass.adds} * engine.add_latency_cycles +
                         std::int64_t{pass.compares} * config.compare_latency_cycles +
                         std::int64_t{pass.multiplies} * engine.multiply_latency_cycles +
                         std::int64_t{pass.exps} * config.exp_latency_cycles +
                         std::int64_t{pass.erfs} * config.erf_latency_cycles +
                         std::int64_t{pass.tanhs} * config.tanh_latency_cycles + pass.scalar_latency_cycles +
                         pass.serial_adds * engine.add_latency_cycles;
    if (pass.row_reductions > 0) {
        const std::int64_t accumulators = reduction_accumulators(segment.cols);
        chain += log2_of(accumulators) * reduction_latency(config, engine, pass) +
                 pass.row_reductions * ceil_div(accumulators, config.lanes) - 1;
    }
    const std::int64_t write = pass.writes.empty() ? 0 : 1;
    return static_cast<std::uint64_t>(read + chain + write);
}

}  // namespace contraflow
