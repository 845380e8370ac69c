#include "random_design.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "contraflow/error.h"
#include "process/child_process.h"

namespace contraflow::test {
namespace {

constexpr int kSteps = 2;

class Generator {
public:
    explicit Generator(std::uint64_t seed) : random_(seed) {}

    Overrides design(std::uint64_t seed) {
        set("train.seed", std::to_string(seed));
        network();
        machine();
        return keys_;
    }

private:
    int between(int low, int high) {
        return low + static_cast<int>(random_() % static_cast<std::uint64_t>(high - low + 1));
    }
    bool chance(int percent) { return between(1, 100) <= percent; }
    template <class Value>
    const Value& one_of(const std::vector<Value>& values) {
        return values[static_cast<std::size_t>(between(0, static_cast<int>(values.size()) - 1))];
    }
    void set(const std::string& key, const std::string& text) { keys_.emplace_back(key, text); }
    void set(const std::string& key, int value) { set(key, std::to_string(value)); }
    void maybe_set(int percent, const std::string& key, int low, int high) {
        if (chance(percent)) {
            set(key, between(low, high));
        }
    }
    static std::string joined(const std::vector<int>& values) {
        std::string text;
        for (const int value : values) {
            text += (text.empty() ? "" : ",") + std::to_string(value);
        }
        return text;
    }
    // `count` factors of `product`, in a random order; some may be 1.
    std::vector<int> factors(int product, int count) {
        std::vector<int> result(static_cast<std::size_t>(count), 1);
        for (int prime = 2; product > 1;) {
            if (product % prime == 0) {
                result[static_cast<std::size_t>(between(0, count - 1))] *= prime;
                product /= prime;
            } else {
                ++prime;
            }
        }
        return result;
    }
    int divisor(int number) {
        int result = 0;
        do {
            result = between(1, std::min(number, 4));
        } while (number % result != 0);
        return result;
    }

    void network() {
        const std::vector<int> widths{4, 6, 8, 12, 15, 16, 18, 24};
        const int d_model = one_of(widths);
        const int d_ff = chance(60) ? d_model : one_of(widths);
        const int vocab = one_of<int>({4, 9, 12, 27, 30});
        const int out_cores = between(1, 3);
        const int in_cores = chance(60) ? out_cores : between(1, 3);
        const int table_cores = between(2, 3);
        set("network.flow", one_of<std::string>({"btt", "btt", "tt", "mm"}));
        set("network.encoders", chance(80) ? 1 : 2);
        set("network.seq_len", between(2, 8));
        set("network.vocab", vocab);
        set("network.d_model", d_model);
        set("network.d_ff", d_ff);
        set("network.heads", divisor(d_model));
        set("network.intents", between(1, 9));
        set("network.slots", between(1, 12));
        set("tt.out_modes", joined(factors(d_model, out_cores)));
        set("tt.in_modes", joined(factors(d_model, in_cores)));
        bool ffn_fits = true;
        if (d_ff != d_model) {
            const int ffn_cores = chance(60) ? out_cores : between(1, 3);
            set("tt.ffn_modes", joined(factors(d_ff, ffn_cores)));
            ffn_fits = ffn_cores == out_cores && ffn_cores == in_cores;
        }
        if (ffn_fits && chance(60)) {
            std::vector<int> ranks;
            for (int bond = 0; bond + 1 < out_cores + in_cores; ++bond) {
                ranks.push_back(between(1, 6));
            }
            set("tt.ranks", joined(ranks));
        } else {
            set("tt.rank", between(1, 6));
        }
        set("ttm.vocab_modes", joined(factors(vocab, table_cores)));
        set("ttm.hidden_modes", joined(factors(d_model, table_cores)));
        set("ttm.rank", between(1, 4));
    }

    void machine() {
        maybe_set(80, "engine.count", 1, 6);
        maybe_set(80, "engine.rows", 1, 8);
        maybe_set(80, "engine.cols", 1, 13);
        maybe_set(70, "engine.interleave", 1, 9);
        maybe_set(50, "engine.partial_sums", 1, 4);
        maybe_set(40, "engine.multiply_latency_cycles", 1, 7);
        maybe_set(40, "engine.add_latency_cycles", 1, 9);
        maybe_set(40, "engine.broadcast_latency_cycles", 1, 4);
        maybe_set(50, "vector.count", 1, 3);
        if (chance(70)) {
            set("vector.lanes", one_of<int>({1, 2, 3, 5, 8, 16, 32}));
        }
        if (chance(70)) {
            set("vector.special_lanes", one_of<int>({1, 2, 3, 8, 40}));
        }
        maybe_set(50, "vector.burst_beats", 1, 40);
        if (chance(40)) {
            set("vector.row_registers", one_of<int>({1, 2, 3, 5, 64}));
        }
        for (const char* function : {"exp", "erf", "tanh", "log", "divide", "sqrt", "compare"}) {
            maybe_set(20, std::string("vector.") + function + "_latency_cycles", 1, 35);
        }
        const std::vector<std::string> places{"auto", "bram", "uram", "lutram", "dram"};
        for (const char* group : {"parameters", "gradients", "activations", "scratch"}) {
            if (chance(35)) {
                set(std::string("memory.") + group, one_of(places));
            }
        }
        if (chance(60)) {
            set("memory.layout", one_of<std::string>({"naive", "auto"}));
        }
        // Tiles of the dense flow may be small; the other flows need whole cores.
        const bool dense = std::find(keys_.begin(), keys_.end(),
                                     std::make_pair(std::string("network.flow"), std::string("mm"))) != keys_.end();
        if (chance(40)) {
            set("memory.stream_words", dense ? one_of<int>({300, 400, 700}) : one_of<int>({5000, 20000}));
        }
        maybe_set(30, "memory.stream_buffers", 2, 6);
        if (chance(20)) {
            set("memory.grouping", one_of<std::string>({"on", "off"}));
        }
        if (chance(30)) {
            set("memory.tensors",
                one_of<std::string>({"*:reshape=2", "d.*:reshape=3,encoder.*:reshape=1", "encoder.*.gamma:cyclic.0=3",
                                     "embed.pos:block.1=2:cyclic.0=2", "encoder.*:dram,d.embed.pos:uram"}));
        }
        maybe_set(80, "memory.banks", 1, 33);
        maybe_set(60, "memory.ports", 1, 2);
        if (chance(30)) {
            set("memory.lutram_max_words", one_of<int>({0, 16, 64, 1024}));
        }
        if (chance(20)) {
            set("memory.lutram_max_bits", one_of<int>({0, 512, 65536}));
        }
        for (const char* kind : {"bram", "uram", "lutram"}) {
            maybe_set(25, std::string("memory.") + kind + "_read_latency_cycles", 1, 5);
        }
        maybe_set(50, "dma.burst_beats", 1, 20);
        if (chance(50)) {
            set("dma.beat_bytes", one_of<int>({4, 8, 16, 32, 64, 128}));
        }
        maybe_set(50, "dma.outstanding", 1, 5);
        maybe_set(40, "dma.request_latency_cycles", 1, 9);
        maybe_set(40, "dma.response_latency_cycles", 1, 9);
        maybe_set(40, "sequencer.decode_cycles", 1, 6);
        if (chance(60)) {
            set("schedule.policy", one_of<std::string>({"serial", "overlap"}));
        }
        if (chance(50)) {
            set("schedule.split", one_of<std::string>({"on", "off"}));
        }
        if (chance(70)) {
            set("clock.fabric_hz",
                one_of<std::string>({"133000000", "133333333", "100000001", "97000000", "250000000", "300000000",
                                     "410000000", "999999937", "1000000000", "7000000", "200000000"}));
        }
        if (chance(40)) {
            set("device.file",
                one_of<std::string>({"devices/u50.ini", "devices/u250.ini", "devices/u280.ini", "devices/zcu102.ini",
                                     "devices/kv260.ini",
                                     std::string(CONTRAFLOW_SOURCE_DIR) + "/tests/system/small_device.ini"}));
        }
        if (chance(60)) {
            set("dram.file",
                one_of<std::string>({"memories/ddr3-1600.ini", "memories/ddr4-2400.ini", "memories/ddr4-3200.ini",
                                     "memories/hbm2-u50.ini", "memories/lpddr4-3200.ini"}));
        }
        maybe_set(30, "dram.channels", 1, 4);
        maybe_set(20, "dram.read_queue", 1, 40);
        maybe_set(20, "dram.write_queue", 1, 40);
        maybe_set(20, "dram.port_queue", 1, 8);
        maybe_set(20, "dram.lookahead", 1, 40);
        if (chance(40)) {
            set("dram.scheduler", one_of<std::string>({"fcfs", "frfcfs"}));
            set("dram.page_policy", one_of<std::string>({"open", "closed", "timeout"}));
            set("dram.mapping", one_of<std::string>({"A", "B", "ba,ro:3,co:2,ra,bg,ro,co"}));
        }
    }

    std::mt19937_64 random_;
    Overrides keys_;
};

// Keys that only make sense together.
bool is_network_key(const std::string& key) {
    return key.compare(0, 8, "network.") == 0 || key.compare(0, 2, "tt") == 0;
}

std::string section_of(const std::string& key) {
    return key.substr(0, key.find('.'));
}

Overrides without(const Overrides& design, const std::set<std::string>& keys) {
    Overrides rest;
    for (const auto& entry : design) {
        if (keys.count(entry.first) == 0) {
            rest.push_back(entry);
        }
    }
    return rest;
}

bool is_valid(const Overrides& design) {
    try {
        (void)tiny_config(design);
        return true;
    } catch (const ConfigError&) {
        return false;
    }
}

}  // namespace

Overrides random_design(std::uint64_t seed) {
    return Generator(seed).design(seed);
}

MachineCase case_of(const Overrides& design) {
    MachineCase machine_case;
    machine_case.config = tiny_config(design);
    machine_case.samples = random_samples(machine_case.config, kSteps);
    machine_case.options.keep_all = machine_case.config.train.seed % 2 == 0;
    return machine_case;
}

std::string difference_of_modes(const Overrides& design) {
    try {
        MachineCase machine_case = case_of(design);
        const std::uint64_t seed = machine_case.config.train.seed;
        machine_case.options.run_mode = RunMode::Clocked;
        const Observations clocked = observe_in_child(machine_case);
        machine_case.options.run_mode = RunMode::Leap;
        const Observations leap = observe_in_child(machine_case);
        std::string found = differences(clocked, leap);
        if (!found.empty()) {
            return "clocked and leap differ:\n" + found;
        }
        if (seed % 4 == 1) {
            machine_case.options.values = false;
            found = differences(without_values(leap), without_values(observe_in_child(machine_case)));
            if (!found.empty()) {
                return "with and without values differ:\n" + found;
            }
        }
        if (seed % 4 == 2) {
            machine_case.options.reversed_blocks = true;
            found = differences(leap, observe_in_child(machine_case));
            if (!found.empty()) {
                return "leap in the two orders of instantiation differs:\n" + found;
            }
        }
        if (seed % 4 == 3) {
            machine_case.options.reversed_blocks = true;
            machine_case.options.run_mode = RunMode::Clocked;
            found = differences(clocked, observe_in_child(machine_case));
            if (!found.empty()) {
                return "clocked in the two orders of instantiation differs:\n" + found;
            }
        }
        return "";
    } catch (const ChildError& error) {
        return std::string("the run failed: ") + error.what();
    }
}

Overrides shrink(Overrides design, const Property& property) {
    const auto try_without = [&](const std::set<std::string>& keys) {
        const Overrides smaller = without(design, keys);
        if (smaller.size() == design.size() || !is_valid(smaller) || property(smaller).empty()) {
            return false;
        }
        design = smaller;
        return true;
    };
    std::map<std::string, std::set<std::string>> groups;
    for (const auto& [key, text] : design) {
        if (key != "train.seed") {  // chooses the samples and the kind of run
            groups[is_network_key(key) ? "network" : section_of(key)].insert(key);
        }
    }
    for (const auto& [name, keys] : groups) {
        try_without(keys);
    }
    for (bool smaller = true; smaller;) {
        smaller = false;
        for (const auto& [key, text] : Overrides(design)) {
            if (key != "train.seed") {
                smaller = try_without({key}) || smaller;
            }
        }
    }
    return design;
}

std::string ini_of(const Overrides& design) {
    std::map<std::string, std::vector<std::string>> sections;
    for (const auto& [key, text] : design) {
        sections[section_of(key)].push_back(key.substr(key.find('.') + 1) + " = " + text);
    }
    std::ostringstream ini;
    for (const auto& [section, lines] : sections) {
        ini << '[' << section << "]\n";
        for (const std::string& line : lines) {
            ini << line << '\n';
        }
    }
    return ini.str();
}

}  // namespace contraflow::test
