#include "report/estimates.h"

#include <algorithm>

#include "common/integer_math.h"

namespace contraflow {

namespace {

constexpr int kEngineStreams = 5;  // a, b, output, bias, residual
constexpr int kVectorStreams = 6;  // the most that a pass moves
constexpr int kWordBits = 32;
constexpr std::int64_t kAccumulatorsPerLutram = 64;
constexpr double kJoulesPerPj = 1e-12;

class Sum {
public:
    explicit Sum(const ResourceCosts& costs) : costs_(costs) {}

    void add(const char* part, const char* component, const ComponentCost& cost, double count) {
        if (count > 0) {
            estimate_.rows.push_back({part,
                                      component,
                                      count,
                                      {count * cost.dsp, count * cost.lut, count * cost.ff, count * cost.bram36, 0}});
        }
    }

    void add_pes(const EngineConfig& engine) {
        const double engines = engine.count;
        const double pes = engines * engine.rows * engine.cols;
        add("pe", "multiply", costs_.multiply, pes);
        add("pe", "add", costs_.add, pes);
        const std::int64_t words = std::int64_t{2} * engine.interleave * engine.partial_sums;  // double buffered
        add("pe", "accumulators", costs_.accumulators,
            pes * static_cast<double>(ceil_div(words, kAccumulatorsPerLutram)));
        // Write-back adds bias and residual to one PE row at a time.
        add("pe", "add", costs_.add, engines * 2 * engine.cols);
        add("pe", "address_generator", costs_.address_generator, engines * kEngineStreams);
        add("pe", "unit_control", costs_.unit_control, engines);
        // Operand registers at the edges of the array.
        add("pe", "register_bit", costs_.register_bit, engines * kWordBits * (engine.rows + engine.cols));
    }

    void add_vector(const VectorConfig& vector) {
        const double units = vector.count;
        const double lanes = units * vector.lanes;
        add("vector", "multiply", costs_.multiply, lanes);
        add("vector", "add", costs_.add, lanes);
        add("vector", "compare", costs_.compare, lanes);
        add("vector", "add", costs_.add, lanes - units);  // the reduction tree
        const double specials = units * vector.special_lanes;
        add("vector", "exp", costs_.exp, specials);
        add("vector", "erf", costs_.erf, specials);
        add("vector", "tanh", costs_.tanh, specials);
        add("vector", "divide", costs_.divide, units);
        add("vector", "sqrt", costs_.sqrt, units);
        add("vector", "log", costs_.log, units);
        add("vector", "address_generator", costs_.address_generator, units * kVectorStreams);
        add("vector", "unit_control", costs_.unit_control, units);
    }

    void add_memory(const BlockCount& blocks) {
        Primitives use;
        use.lut = static_cast<double>(blocks.luts);
        use.bram36 = static_cast<double>(blocks.bram36());
        use.uram = static_cast<double>(blocks.urams);
        estimate_.rows.push_back({"memory", "blocks", 1, use});
    }

    // Every port chooses among the clients' write data, every client among the memories' read data, bit by bit; one
    // register behind each choice.
    void add_interconnect(const Config& config, const std::vector<RamGeometry>& rams) {
        const double clients = config.engine.count + config.vector.count + 1;
        double port_bits = 0;
        double widest = 0;
        for (const RamGeometry& ram : rams) {
            const double bits = static_cast<double>(ram.banks) * ram.lanes * kWordBits;
            port_bits += bits * ram.ports;
            widest = std::max(widest, bits);
        }
        const double memories = static_cast<double>(rams.size());
        const double read_bits = clients * widest * 2;  // two operands at once
        add("interconnect", "mux_input", costs_.mux_input,
            port_bits * (clients - 1) + read_bits * std::max(0.0, memories - 1));
        add("interconnect", "register_bit", costs_.register_bit, port_bits + read_bits);
    }

    void add_dram(const Config& config) {
        add("dma", "dma", costs_.dma, 1);
        switch (config.device.dram_attachment) {
            case DramAttachment::Hbm:
                add("dram_controller", "hbm_port", costs_.hbm_port, config.dram.channels);
                break;
            case DramAttachment::Soft:
                add("dram_controller", "dram_controller", costs_.dram_controller, config.dram.channels);
                break;
            case DramAttachment::Hard:
                break;
        }
    }

    void add_sequencer() { add("sequencer", "unit_control", costs_.unit_control, 1); }

    ResourceEstimate take() { return std::move(estimate_); }

private:
    const ResourceCosts& costs_;
    ResourceEstimate estimate_;
};

}  // namespace

Primitives& Primitives::operator+=(const Primitives& other) {
    dsp += other.dsp;
    lut += other.lut;
    ff += other.ff;
    bram36 += other.bram36;
    uram += other.uram;
    return *this;
}

Primitives ResourceEstimate::total() const {
    Primitives sum;
    for (const ResourceRow& row : rows) {
        sum += row.use;
    }
    return sum;
}

Primitives ResourceEstimate::of_part(const std::string& part) const {
    Primitives sum;
    for (const ResourceRow& row : rows) {
        if (row.part == part) {
            sum += row.use;
        }
    }
    return sum;
}

std::vector<std::string> ResourceEstimate::parts() const {
    std::vector<std::string> names;
    for (const ResourceRow& row : rows) {
        if (std::find(names.begin(), names.end(), row.part) == names.end()) {
            names.push_back(row.part);
        }
    }
    return names;
}

ResourceEstimate estimate_resources(const Config& config, const BlockCount& blocks,
                                    const std::vector<RamGeometry>& rams) {
    Sum sum(config.resources);
    sum.add_pes(config.engine);
    sum.add_vector(config.vector);
    sum.add_memory(blocks);
    sum.add_interconnect(config, rams);
    sum.add_dram(config);
    sum.add_sequencer();
    return sum.take();
}

double EnergyEstimate::total() const {
    double joules = 0;
    for (const char* group : kEnergyGroups) {
        joules += of_group(group);
    }
    return joules;
}

double EnergyEstimate::of_group(const std::string& group) const {
    double joules = 0;
    for (const EnergyRow& row : rows) {
        joules += row.group == group ? row.joules : 0;
    }
    return joules;
}

EnergyEstimate estimate_energy(const EnergyEvents& events, const Primitives& resources, const Config& config) {
    EnergyEstimate estimate;
    const EnergyCosts& costs = config.energy;
    const auto add = [&](const char* group, const char* part, const char* constant, double count, double unit_joules) {
        estimate.rows.push_back({group, part, constant, count, count * unit_joules});
    };
    const auto events_of = [&](const char* group, const char* part, const char* constant, std::uint64_t count,
                               double pj) {
        add(group, part, constant, static_cast<double>(count), pj * kJoulesPerPj);
    };
    events_of("kernel", "engine", "energy.add_pj", events.macs + events.write_back_adds, costs.add_pj);
    events_of("kernel", "engine", "energy.multiply_pj", events.macs, costs.multiply_pj);
    events_of("kernel", "vector", "energy.add_pj", events.vector_adds, costs.add_pj);
    events_of("kernel", "vector", "energy.multiply_pj", events.vector_multiplies, costs.multiply_pj);
    events_of("kernel", "vector", "energy.compare_pj", events.vector_compares, costs.compare_pj);
    events_of("kernel", "vector", "energy.exp_pj", events.exps, costs.exp_pj);
    events_of("kernel", "vector", "energy.tanh_pj", events.tanhs, costs.tanh_pj);
    events_of("kernel", "vector", "energy.erf_pj", events.erfs, costs.erf_pj);
    events_of("memory", "lutram", "energy.lutram_pj", events.lutram_words, costs.lutram_pj);
    events_of("memory", "bram", "energy.bram_pj", events.bram_words, costs.bram_pj);
    events_of("memory", "uram", "energy.uram_pj", events.uram_rows, costs.uram_pj);
    events_of("memory", "interconnect", "energy.word_pj", events.moved_words, costs.word_pj);
    events_of("dram", "data", "dram.energy_pj_per_bit", events.dram_bits, config.dram.energy_pj_per_bit);
    events_of("dram", "activate", "dram.energy_activate_pj", events.dram_activates, config.dram.energy_activate_pj);
    events_of("dram", "refresh", "dram.energy_refresh_pj", events.dram_refreshes, config.dram.energy_refresh_pj);
    const auto clock = [&](const char* part, const char* constant, double primitives, double pj) {
        add("clock", part, constant, primitives * static_cast<double>(events.cycles), pj * kJoulesPerPj);
    };
    clock("ff", "energy.clock_ff_pj", resources.ff, costs.clock_ff_pj);
    clock("dsp", "energy.clock_dsp_pj", resources.dsp, costs.clock_dsp_pj);
    clock("bram36", "energy.clock_bram36_pj", resources.bram36, costs.clock_bram36_pj);
    clock("uram", "energy.clock_uram_pj", resources.uram, costs.clock_uram_pj);
    add("static", "device", "device.static_power_w", events.seconds, config.device.static_power_w);
    add("shell", "device", "device.shell_power_w", events.seconds, config.device.shell_power_w);
    return estimate;
}

}  // namespace contraflow
