#include "config/validate.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/address_order.h"

namespace contraflow::config {

namespace {

constexpr std::int64_t kAxiBoundaryBytes = 4096;               // an AXI burst may not cross it
constexpr std::int64_t kMaxPes = 1 << 20;                      // of all engines together
constexpr int kMaxBanks = 64;                                  // of a DRAM channel
constexpr std::int64_t kMaxHostWords = std::int64_t{1} << 31;  // tensors of a step: 8 GiB on the host

// Saturates, so that absurd modes cannot wrap around to the right product.
std::int64_t product(const std::vector<int>& modes) {
    constexpr std::int64_t kLimit = std::int64_t{1} << 40;
    std::int64_t result = 1;
    for (const int mode : modes) {
        result = std::min(result * mode, kLimit);
    }
    return result;
}

std::string product_text(const std::vector<int>& modes) {
    return fmt::format("{} = {}", fmt::join(modes, " x "), product(modes));
}

class Rules {
public:
    explicit Rules(const Config& config) : config_(config) {}

    std::vector<Conflict> check() {
        heads();
        if (config_.network.flow != Flow::Mm) {
            tt_modes();
            tt_ranks();
            ttm_modes();
        }
        machine();
        memory_controller();
        if (conflicts_.empty()) {
            host_memory();
        }
        return std::move(conflicts_);
    }

private:
    void add(std::vector<std::string> keys, std::string text) {
        conflicts_.push_back({std::move(keys), std::move(text)});
    }

    void modes_of(const std::string& key, const std::vector<int>& modes, const std::string& of, int wanted) {
        if (product(modes) != wanted) {
            add({key, of}, fmt::format("{} is not {} = {}; expected modes whose product is {}", product_text(modes), of,
                                       wanted, wanted));
        }
    }

    void memory_controller() {
        const DramConfig& dram = config_.dram;
        const std::string mapping = address_order_problem(dram);
        if (!mapping.empty()) {
            add({"dram.mapping"}, mapping);
        }
        if (dram.drain_low_percent >= dram.drain_high_percent) {
            add({"dram.drain_low_percent", "dram.drain_high_percent"},
                fmt::format("{} is not below drain_high_percent = {}", dram.drain_low_percent,
                            dram.drain_high_percent));
        }
        if (dram.interleave_bytes > dram.channel_bytes) {
            add({"dram.interleave_bytes"}, fmt::format("{} is more than a channel holds; expected at most {}",
                                                       dram.interleave_bytes, dram.channel_bytes));
        }
        if (dram.interleave_bytes < dram.burst_bytes()) {
            add({"dram.interleave_bytes"}, fmt::format("{} is less than a burst of the memory; expected at least {}",
                                                       dram.interleave_bytes, dram.burst_bytes()));
        }
    }

    void heads() {
        const NetworkConfig& network = config_.network;
        if (network.d_model % network.heads != 0) {
            add({"network.heads", "network.d_model"},
                fmt::format("{} heads do not divide network.d_model = {}; expected a divisor of it", network.heads,
                            network.d_model));
        }
    }

    void tt_modes() {
        const NetworkConfig& network = config_.network;
        const TtConfig& tt = config_.tt;
        modes_of("tt.out_modes", tt.out_modes, "network.d_model", network.d_model);
        modes_of("tt.in_modes", tt.in_modes, "network.d_model", network.d_model);
        if (!tt.ffn_modes.empty()) {
            modes_of("tt.ffn_modes", tt.ffn_modes, "network.d_ff", network.d_ff);
        } else if (network.d_ff != network.d_model) {
            add({"tt.ffn_modes", "network.d_ff", "network.d_model"},
                fmt::format("is missing, and network.d_ff = {} differs from network.d_model = {}; expected modes whose "
                            "product is {}",
                            network.d_ff, network.d_model, network.d_ff));
        }
    }

    // Every TT linear has as many bonds as it has cores, less one.
    void tt_ranks() {
        const TtConfig& tt = config_.tt;
        if (tt.ranks.empty()) {
            return;
        }
        const std::size_t bonds = tt.out_modes.size() + tt.in_modes.size() - 1;
        if (tt.ranks.size() != bonds) {
            add({"tt.ranks", "tt.out_modes", "tt.in_modes"},
                fmt::format("has {} ranks; expected {}, one per bond of {} output and {} input cores", tt.ranks.size(),
                            bonds, tt.out_modes.size(), tt.in_modes.size()));
        }
        if (!tt.ffn_modes.empty() &&
            (tt.ffn_modes.size() != tt.out_modes.size() || tt.ffn_modes.size() != tt.in_modes.size())) {
            add({"tt.ffn_modes", "tt.ranks"},
                fmt::format(
                    "has {} modes, so that the feed-forward linears have other bonds than tt.ranks; expected as "
                    "many as tt.out_modes and tt.in_modes ({} and {}), or tt.rank instead of tt.ranks",
                    tt.ffn_modes.size(), tt.out_modes.size(), tt.in_modes.size()));
        }
    }

    void ttm_modes() {
        const TtmConfig& ttm = config_.ttm;
        modes_of("ttm.vocab_modes", ttm.vocab_modes, "network.vocab", config_.network.vocab);
        modes_of("ttm.hidden_modes", ttm.hidden_modes, "network.d_model", config_.network.d_model);
        if (ttm.vocab_modes.size() != ttm.hidden_modes.size()) {
            add({"ttm.hidden_modes", "ttm.vocab_modes"},
                fmt::format("has {} modes and ttm.vocab_modes {}; expected as many, one of each per core",
                            ttm.hidden_modes.size(), ttm.vocab_modes.size()));
        }
    }

    void machine() {
        const EngineConfig& engine = config_.engine;
        const std::int64_t pes = std::int64_t{engine.count} * engine.rows * engine.cols;
        if (pes > kMaxPes) {
            add({"engine.count", "engine.rows", "engine.cols"},
                fmt::format("{} x {} x {} PEs are {}; expected at most {} in all", engine.count, engine.rows,
                            engine.cols, pes, kMaxPes));
        }
        const std::int64_t burst_bytes = std::int64_t{config_.dma.burst_beats} * config_.dma.beat_bytes;
        if (burst_bytes > kAxiBoundaryBytes) {
            add({"dma.burst_beats", "dma.beat_bytes"},
                fmt::format("{} beats of {} bytes are {} bytes; expected at most {}, the boundary an AXI burst may not "
                            "cross",
                            config_.dma.burst_beats, config_.dma.beat_bytes, burst_bytes, kAxiBoundaryBytes));
        }
    }

    // The key behind the largest of some word counts.
    static std::string largest(const std::vector<std::pair<std::string, std::int64_t>>& parts) {
        return std::max_element(parts.begin(), parts.end(),
                                [](const auto& a, const auto& b) { return a.second < b.second; })
            ->first;
    }

    // Rough count of the words a step's tensors take, to refuse what would exhaust the host instead of simulating.
    void host_memory() {
        const NetworkConfig& network = config_.network;
        const std::int64_t s = network.seq_len, d = network.d_model, ff = network.d_ff;
        const std::int64_t attention = 2 * s * s * network.heads;
        const std::int64_t activations = network.encoders * (attention + s * (12 * d + 4 * ff));
        // Cores and merged halves, or the dense matrices; each with its gradient.
        std::int64_t linear = 4 * d * d + 2 * d * ff;
        std::int64_t table = std::int64_t{network.vocab} * d;
        if (network.flow != Flow::Mm) {
            const TtShape model = config_.tt_model();
            const TtShape fc1 = config_.tt_fc1();
            const std::int64_t merged = model.middle_rank() * (10 * d + 2 * ff);
            linear = 2 * (4 * model.parameter_words() + 2 * fc1.parameter_words() + merged);
            const TtmConfig& ttm = config_.ttm;
            table = s * d * ttm.rank;
            for (std::size_t k = 0; k < ttm.vocab_modes.size(); ++k) {
                const bool end = k == 0 || k + 1 == ttm.vocab_modes.size();
                table += std::int64_t{ttm.vocab_modes[k]} * ttm.hidden_modes[k] * ttm.rank * (end ? 1 : ttm.rank);
            }
        }
        const std::int64_t heads = d * (std::int64_t{network.intents} + network.slots) + s * network.slots;
        const std::int64_t words = activations + 2 * (network.encoders * linear + table + heads);
        if (words > kMaxHostWords) {
            add({largest({{"network.seq_len", network.encoders * attention},
                          {"network.d_model", (network.flow == Flow::Mm ? network.encoders * 2 * linear : 0) +
                                                  activations - network.encoders * attention},
                          {config_.tt.ranks.empty() ? "tt.rank" : "tt.ranks",
                           network.flow == Flow::Mm ? 0 : network.encoders * 2 * linear + 1},
                          {network.flow == Flow::Mm ? "network.vocab" : "ttm.rank", 2 * table},
                          {"network.slots", 2 * heads}})},
                fmt::format("the network's tensors need about {} GiB on the host; expected at most {} GiB",
                            (words >> 28) + 1, kMaxHostWords >> 28));
        }
    }

    const Config& config_;
    std::vector<Conflict> conflicts_;
};

}  // namespace

std::vector<Conflict> find_conflicts(const Config& config) {
    return Rules(config).check();
}

std::vector<Conflict> find_device_conflicts(const DeviceConfig& device) {
    std::vector<Conflict> conflicts;
    const auto within = [&](const std::string& name, std::int64_t available, std::int64_t chip) {
        if (available > chip) {
            conflicts.push_back(
                {{"device.available_" + name, "device." + name},
                 fmt::format("{} is more than the chip has; expected at most {} = {}", available, name, chip)});
        }
    };
    within("luts", device.available_luts, device.luts);
    within("ffs", device.available_ffs, device.ffs);
    within("dsps", device.available_dsps, device.dsps);
    within("bram36", device.available_bram36, device.bram36);
    within("urams", device.available_urams, device.urams);
    return conflicts;
}

std::vector<Conflict> find_memory_conflicts(const DramConfig& dram) {
    std::vector<Conflict> conflicts;
    const auto at_least = [&](const char* name, int value, const std::string& what, int least,
                              std::vector<std::string> others) {
        if (value < least) {
            others.insert(others.begin(), std::string("dram.") + name);
            conflicts.push_back({std::move(others), fmt::format("{} is shorter than {} = {}; expected at least as much",
                                                                value, what, least)});
        }
    };
    at_least("nCCD_L", dram.nCCD_L, "nCCD_S", dram.nCCD_S, {"dram.nCCD_S"});
    at_least("nRRD_L", dram.nRRD_L, "nRRD_S", dram.nRRD_S, {"dram.nRRD_S"});
    at_least("nWTR_L", dram.nWTR_L, "nWTR_S", dram.nWTR_S, {"dram.nWTR_S"});
    at_least("nCCD_S", dram.nCCD_S, "burst_length / 2", dram.burst_cycles(), {"dram.burst_length"});
    at_least("nRPab", dram.nRPab, "nRP", dram.nRP, {"dram.nRP"});
    at_least("nRC", dram.nRC, "nRAS", dram.nRAS, {"dram.nRAS"});
    const int turnaround = dram.read_latency() + dram.burst_cycles() - dram.write_latency();
    at_least("nRTW", dram.nRTW, "what keeps the data apart, nCL + nDQSCK + burst_length / 2 - write latency",
             turnaround, {"dram.nCL", "dram.nCWL"});
    const int recovery = std::max(dram.nRAS, dram.nCWL + dram.nDQSS + dram.burst_cycles() + dram.nWR);
    const int busy = dram.nRPab + dram.nRFC + dram.nRCD + recovery + dram.ranks * 4 * dram.act_cycles;
    if (dram.nREFI <= busy) {
        conflicts.push_back({{"dram.nREFI", "dram.nRFC"},
                             fmt::format("{} leaves no time for accesses between refreshes; expected more than nRPab + "
                                         "nRFC + nRCD + the longest recovery = {}",
                                         dram.nREFI, busy)});
    }
    if (dram.columns % dram.burst_length != 0) {
        conflicts.push_back(
            {{"dram.columns", "dram.burst_length"},
             fmt::format("{} are fewer than a burst's {}; expected a multiple", dram.columns, dram.burst_length)});
    }
    if (dram.ranks * dram.banks_per_rank() > kMaxBanks) {
        conflicts.push_back({{"dram.banks", "dram.bank_groups", "dram.ranks"},
                             fmt::format("{} ranks x {} bank groups x {} banks; expected at most {} banks", dram.ranks,
                                         dram.bank_groups, dram.banks, kMaxBanks)});
    }
    const std::int64_t capacity =
        std::int64_t{dram.ranks} * dram.banks_per_rank() * dram.rows * dram.columns * (dram.bus_bits / 8);
    if (capacity != dram.channel_bytes) {
        conflicts.push_back({{"dram.channel_bytes", "dram.rows"},
                             fmt::format("{} is not ranks x bank_groups x banks x rows x columns x bus_bits / 8 = {}",
                                         dram.channel_bytes, capacity)});
    }
    return conflicts;
}

}  // namespace contraflow::config
