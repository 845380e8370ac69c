#include "report/estimates.h"

namespace contraflow {

namespace {

// FP32 operators on UltraScale+ at 100 MHz. Adder, multiplier, divider, exp and comparator from Vitis HLS and Vivado
// reports (adder and multiplier between the reported clocks), square root and logarithm from memory. tanh as
// hls::tanh reports on a Zynq-7000 at 10 ns; no report of an erf was found, it counts as a tanh.
struct Operator {
    std::int64_t dsp, lut, ff;
};
constexpr Operator kAdd{2, 220, 190};
constexpr Operator kMultiply{3, 78, 130};
constexpr Operator kCompare{0, 46, 66};
constexpr Operator kDivide{0, 770, 420};
constexpr Operator kSquareRoot{0, 460, 400};
constexpr Operator kExp{7, 750, 300};
constexpr Operator kLog{5, 750, 350};
constexpr Operator kTanh{32, 7700, 10600};
constexpr Operator kErf = kTanh;

// Dynamic energy per operation or access in pJ, 16 nm at 0.85 V, composed from Vivado power reports.
constexpr double kAddPj = 32;
constexpr double kMultiplyPj = 24;
constexpr double kSpecialPj = 90;  // of an exp; erf and tanh count the same
constexpr double kBram36Pj = 15;   // read or write of up to 36 bits
constexpr double kUramPj = 20;     // read or write of up to 72 bits
constexpr double kLutramPj = 2;    // 32 bits
// Per cycle of a clocked but idle primitive.
constexpr double kIdleFfPj = 0.025;
constexpr double kIdleDspPj = 0.5;
constexpr double kIdleBram36Pj = 1.5;
constexpr double kIdleUramPj = 1;
constexpr double kJoulesPerPj = 1e-12;

void add(ResourceEstimate& sum, std::int64_t count, const Operator& unit) {
    sum.dsp += count * unit.dsp;
    sum.lut += count * unit.lut;
    sum.ff += count * unit.ff;
}

}  // namespace

ResourceEstimate estimate_resources(const Config& config, const BlockCount& blocks) {
    ResourceEstimate sum;
    const std::int64_t pes = std::int64_t{config.engine.count} * config.engine.rows * config.engine.cols;
    add(sum, pes, kMultiply);
    add(sum, pes, kAdd);
    const std::int64_t units = config.vector.count;
    const std::int64_t lanes = units * config.vector.lanes;
    for (const Operator& lane_operator : {kMultiply, kAdd, kCompare}) {
        add(sum, lanes, lane_operator);
    }
    add(sum, lanes - units, kAdd);  // the reduction tree
    for (const Operator& special : {kExp, kErf, kTanh}) {
        add(sum, units * config.vector.special_lanes, special);
    }
    for (const Operator& scalar : {kDivide, kSquareRoot, kLog}) {
        add(sum, units, scalar);
    }
    sum.lut += blocks.luts;
    sum.bram36 = blocks.bram36();
    sum.uram = blocks.urams;
    return sum;
}

EnergyEstimate estimate_energy(const EnergyEvents& events, const ResourceEstimate& resources, const Config& config) {
    const auto joules = [](std::uint64_t count, double pj) { return static_cast<double>(count) * pj * kJoulesPerPj; };
    EnergyEstimate energy;
    energy.device_static = config.device.static_power_w * events.seconds;
    energy.shell = config.device.shell_power_w * events.seconds;
    energy.clock = joules(events.cycles, kIdleFfPj * static_cast<double>(resources.ff) +
                                             kIdleDspPj * static_cast<double>(resources.dsp) +
                                             kIdleBram36Pj * static_cast<double>(resources.bram36) +
                                             kIdleUramPj * static_cast<double>(resources.uram));
    energy.pe = joules(events.macs, kAddPj + kMultiplyPj);
    energy.vector = joules(events.vector_adds, kAddPj) + joules(events.vector_multiplies, kMultiplyPj) +
                    joules(events.vector_specials, kSpecialPj);
    energy.bram = joules(events.bram_words, kBram36Pj);
    energy.uram = joules(events.uram_rows, kUramPj);
    energy.lutram = joules(events.lutram_words, kLutramPj);
    energy.dram = joules(events.dram_bytes * 8, config.dram.energy_pj_per_bit);
    return energy;
}

}  // namespace contraflow
