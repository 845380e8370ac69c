#include "config/key_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "config/address_order.h"
#include "config/nearest.h"
#include "config/tensor_rules.h"
#include "config/values.h"

namespace contraflow::config {

namespace {

const Words<Flow> kFlows{{"btt", Flow::Btt}, {"tt", Flow::Tt}, {"mm", Flow::Mm}};
const Words<SchedulePolicy> kPolicies{{"serial", SchedulePolicy::Serial}, {"overlap", SchedulePolicy::Overlap}};
const Words<LayoutPolicy> kLayouts{{"naive", LayoutPolicy::Naive}, {"auto", LayoutPolicy::Auto}};
const Words<DramAttachment> kDramAttachments{
    {"hbm", DramAttachment::Hbm}, {"soft", DramAttachment::Soft}, {"hard", DramAttachment::Hard}};
const Words<DramScheduler> kSchedulers{{"fcfs", DramScheduler::Fcfs}, {"frfcfs", DramScheduler::FrFcfs}};
const Words<PagePolicy> kPagePolicies{
    {"open", PagePolicy::Open}, {"closed", PagePolicy::Closed}, {"timeout", PagePolicy::Timeout}};

std::string one_of(const std::vector<std::string>& words) {
    std::string text = words.front();
    for (std::size_t i = 1; i < words.size(); ++i) {
        text += (i + 1 == words.size() ? " or " : ", ") + words[i];
    }
    return text;
}

// From a Config to one of its members. Plain functions and literals instead of a lambda type and strings per row: the
// table is long, and its compile time would be minutes.
template <class Value>
using Binding = Value& (*)(Config&);

// The same for reading.
template <class Value>
const Value& value_of(Binding<Value> member, const Config& config) {
    return member(const_cast<Config&>(config));  // it only finds its place
}

template <class Value>
using Printer = std::function<std::string(const Value&)>;

template <class Value>
Key make_key(Binding<Value> member, std::function<Value(const std::string&)> parse, const Printer<Value>& print) {
    Key key;
    key.set = [=](Config& config, const std::string& text) { member(config) = parse(text); };
    key.text = [=](const Config& config) { return print(value_of(member, config)); };
    key.json = [=](const Config& config) -> nlohmann::json {
        if constexpr (std::is_enum_v<Value> || std::is_same_v<Value, std::vector<TensorRule>> ||
                      std::is_same_v<Value, std::vector<MappingRule>>) {
            return print(value_of(member, config));
        } else {
            return value_of(member, config);
        }
    };
    return key;
}

template <class Integer>
std::string integer_text(const Integer& value) {
    return std::to_string(value);
}

// Builds the rows of one section. The default of a row is read from the bound member of a default-constructed Config.
class Section {
public:
    Section(KeyTable& table, const char* name) : table_(table), name_(name) {}

    template <class Value>
    Section& whole(const char* name, const char* unit, std::int64_t min, std::int64_t max, const char* meaning,
                   Binding<Value> member) {
        const auto parse = [=](const std::string& text) { return static_cast<Value>(parse_whole(text, min, max)); };
        return add(make_key<Value>(member, parse, integer_text<Value>), name, "whole number", unit,
                   fmt::format("{} to {}", min, max), meaning);
    }

    // A whole number that must be a power of two.
    template <class Value>
    Section& power(const char* name, const char* unit, std::int64_t min, std::int64_t max, const char* meaning,
                   Binding<Value> member) {
        const auto parse = [=](const std::string& text) {
            const std::int64_t value = parse_whole(text, min, max);
            if ((value & (value - 1)) != 0) {
                throw BadValue(fmt::format("{} is not a power of two", value));
            }
            return static_cast<Value>(value);
        };
        return add(make_key<Value>(member, parse, integer_text<Value>), name, "whole number", unit,
                   fmt::format("a power of two, {} to {}", min, max), meaning);
    }

    Section& whole_unsigned(const char* name, const char* meaning, Binding<std::uint64_t> member) {
        return add(make_key<std::uint64_t>(member, parse_unsigned, integer_text<std::uint64_t>), name, "whole number",
                   "", fmt::format("0 to {}", std::numeric_limits<std::uint64_t>::max()), meaning);
    }

    Section& number(const char* name, const char* unit, double min, double max, const char* meaning,
                    Binding<double> member) {
        const auto parse = [=](const std::string& text) { return parse_number(text, min, max); };
        return add(make_key<double>(member, parse, number_text), name, "number", unit,
                   fmt::format("{} to {}", number_text(min), number_text(max)), meaning);
    }

    Section& on_off(const char* name, const char* meaning, Binding<bool> member) {
        const auto print = [](bool value) { return std::string(value ? "on" : "off"); };
        return add(make_key<bool>(member, parse_switch, print), name, "switch", "", "on or off", meaning);
    }

    template <class E>
    Section& word(const char* name, const Words<E>& words, const char* meaning, Binding<E> member) {
        std::vector<std::string> names;
        for (const auto& [text, value] : words) {
            names.push_back(text);
        }
        const auto parse = [&words](const std::string& text) {
            for (const auto& [word, value] : words) {
                if (word == text) {
                    return value;
                }
            }
            throw BadValue(text.empty() ? "has no value" : '"' + text + "\" is unknown");
        };
        const auto print = [&words](const E& wanted) {
            for (const auto& [word, value] : words) {
                if (value == wanted) {
                    return word;
                }
            }
            return std::string();
        };
        return add(make_key<E>(member, parse, print), name, "word", "", one_of(names), meaning);
    }

    // A list of min_size to max_size whole numbers of 1 to max.
    Section& list(const char* name, std::size_t min_size, std::size_t max_size, int max, const char* meaning,
                  Binding<std::vector<int>> member) {
        const auto parse = [=](const std::string& text) {
            std::vector<int> values = parse_whole_list(text, 1, max);
            if (values.size() < min_size || values.size() > max_size) {
                throw BadValue(fmt::format("has {} numbers", values.size()));
            }
            return values;
        };
        return add(make_key<std::vector<int>>(member, parse, list_text), name, "list", "",
                   fmt::format("{} to {} whole numbers of 1 to {}, comma-separated", min_size, max_size, max), meaning);
    }

    Section& rules(const char* name, const char* meaning, Binding<std::vector<TensorRule>> member) {
        return add(make_key<std::vector<TensorRule>>(member, parse_tensor_rules, tensor_rules_text), name, "rules", "",
                   kTensorRuleForm, meaning);
    }

    Section& address_order(const char* name, const char* meaning, Binding<AddressOrder> member) {
        Key key;
        key.set = [=](Config& config, const std::string& text) { member(config) = parse_address_order(text); };
        key.text = [=](const Config& config) { return address_order_text(value_of(member, config)); };
        key.json = [=](const Config& config) -> nlohmann::json { return address_order_text(value_of(member, config)); };
        return add(std::move(key), name, "list", "",
                   "A, B, or each of ro, ra, bg, ba, co once or cut into parts as co:3", meaning);
    }

    Section& mapping_rules(const char* name, const char* meaning, Binding<std::vector<MappingRule>> member) {
        return add(make_key<std::vector<MappingRule>>(member, parse_mapping_rules, mapping_rules_text), name, "rules",
                   "", "pattern:rows or pattern:cols, each with or without /RxC or /RxCxB, comma-separated, or empty",
                   meaning);
    }

    // Text of any kind; `type` says of what. Empty text only where the default is empty.
    Section& text(const char* name, const char* type, const char* range, const char* meaning,
                  Binding<std::string> member) {
        Config defaults;
        const bool may_be_empty = member(defaults).empty() && !required_;
        const auto parse = [=](const std::string& value) {
            if (value.empty() && !may_be_empty) {
                throw BadValue("has no value");
            }
            return value;
        };
        const auto print = [](const std::string& value) { return value; };
        return add(make_key<std::string>(member, parse, print), name, type, "", range, meaning);
    }

    // The rows that follow have no default: a file that leaves them out is refused.
    Section& required() {
        required_ = true;
        return *this;
    }

private:
    Section& add(Key key, const char* name, const char* type, const char* unit, std::string range,
                 const char* meaning) {
        key.section = name_;
        key.name = name;
        key.type = type;
        key.unit = unit;
        key.range = std::move(range);
        key.meaning = meaning;
        key.required = required_;
        key.default_text = required_ ? "" : key.text(Config{});
        table_.push_back(std::move(key));
        return *this;
    }

    KeyTable& table_;
    const char* name_;
    bool required_ = false;
};

// Shorthand for a binding; the plus makes it a function pointer.
// clang-format off
#define MEMBER(path) +[](Config& config) -> auto& { return config.path; }
// clang-format on

constexpr std::int64_t kMaxLatencyCycles = 1000;

constexpr double kMaxCost = 1e9;

// The rows of one component.
#define LOGIC(name, meaning)                                                             \
    number(#name "_dsp", "DSP slices", 0, kMaxCost, meaning, MEMBER(resources.name.dsp)) \
        .number(#name "_lut", "LUTs", 0, kMaxCost, meaning, MEMBER(resources.name.lut))  \
        .number(#name "_ff", "flip-flops", 0, kMaxCost, meaning, MEMBER(resources.name.ff))
#define LOGIC_AND_BRAM(name, meaning) \
    LOGIC(name, meaning).number(#name "_bram36", "blocks", 0, kMaxCost, meaning, MEMBER(resources.name.bram36))

// UltraScale+ at 100 MHz. "Report": of Vitis HLS or Vivado, at the clock named; "composed": sums of the rows above.
void add_resource_keys(KeyTable& table) {
    Section(table, "resources")
        .LOGIC(add, "FP32 adder; reports at 4 ns and 3.33 ns, interpolated to 10 ns")
        .LOGIC(multiply, "FP32 multiplier; reports at 3.33 ns, interpolated to 10 ns")
        .LOGIC(compare, "FP32 comparator; report at 4 ns")
        .LOGIC(divide, "FP32 divider; report at 4 ns")
        .LOGIC(sqrt, "FP32 square root; estimate, no report")
        .LOGIC(exp, "FP32 exponential; report at 3.33 ns")
        .LOGIC(log, "FP32 logarithm; estimate, no report")
        .LOGIC(tanh, "FP32 tanh; composed: exponential, two adders, divider")
        .LOGIC(erf, "FP32 erf; composed: exponential, seven multiply-adds of a polynomial")
        .LOGIC(accumulators, "LUTRAM of up to 64 accumulators of a PE; report of a 64 x 32 bit array")
        .LOGIC(address_generator, "address generator of one operand stream; estimate")
        .LOGIC(unit_control, "control of an engine, a vector unit or the sequencer; estimate")
        .LOGIC(mux_input, "one more bit for a multiplexer to choose from; a LUT6 is a 4:1 multiplexer (UG574)")
        .LOGIC(register_bit, "one bit of a register between two blocks")
        .LOGIC_AND_BRAM(dma, "DMA engine with its AXI adapter; estimate from a 512-bit adapter's report")
        .LOGIC_AND_BRAM(hbm_port, "attachment of one HBM pseudo channel; FINN platforms.py")
        .LOGIC_AND_BRAM(dram_controller, "controller of one DDR channel in the fabric; FINN platforms.py");
}

// 16 nm at 0.85 V. "Power": Vivado report_power of routed designs times the operator's resources; bounds in brackets.
void add_energy_keys(KeyTable& table) {
    Section(table, "energy")
        .number("add_pj", "pJ", 0, kMaxCost, "FP32 add; power [15, 60]", MEMBER(energy.add_pj))
        .number("multiply_pj", "pJ", 0, kMaxCost, "FP32 multiply; power [12, 50]", MEMBER(energy.multiply_pj))
        .number("compare_pj", "pJ", 0, kMaxCost, "FP32 comparison; power [3, 12]", MEMBER(energy.compare_pj))
        .number("exp_pj", "pJ", 0, kMaxCost, "FP32 exponential; power [50, 180]", MEMBER(energy.exp_pj))
        .number("tanh_pj", "pJ", 0, kMaxCost, "FP32 tanh; exponential, two adds and a divide of 70 [110, 450]",
                MEMBER(energy.tanh_pj))
        .number("erf_pj", "pJ", 0, kMaxCost, "FP32 erf; exponential, seven multiplies and adds [240, 950]",
                MEMBER(energy.erf_pj))
        .number("lutram_pj", "pJ", 0, kMaxCost, "LUTRAM access of up to 32 bits; estimate [1, 5]",
                MEMBER(energy.lutram_pj))
        .number("bram_pj", "pJ", 0, kMaxCost, "BRAM access of up to 36 bits; power of a BRAM36 [8, 40]",
                MEMBER(energy.bram_pj))
        .number("uram_pj", "pJ", 0, kMaxCost, "URAM access of up to 72 bits; power, of four blocks [10, 60]",
                MEMBER(energy.uram_pj))
        .number("word_pj", "pJ", 0, kMaxCost, "32-bit word through the interconnect; as a register move [1, 5]",
                MEMBER(energy.word_pj))
        .number("clock_ff_pj", "pJ", 0, kMaxCost,
                "a flip-flop's cycle with its share of the clock tree; power [0.02, 0.03]", MEMBER(energy.clock_ff_pj))
        .number("clock_dsp_pj", "pJ", 0, kMaxCost, "cycle of an idle DSP slice; estimate", MEMBER(energy.clock_dsp_pj))
        .number("clock_bram36_pj", "pJ", 0, kMaxCost, "cycle of an idle BRAM36; estimate",
                MEMBER(energy.clock_bram36_pj))
        .number("clock_uram_pj", "pJ", 0, kMaxCost, "cycle of an idle URAM; estimate", MEMBER(energy.clock_uram_pj));
}

#undef LOGIC_AND_BRAM
#undef LOGIC

KeyTable build_design_keys() {
    KeyTable table;
    Section(table, "network")
        .whole("encoders", "encoder blocks", 1, 64, "encoder blocks of the transformer", MEMBER(network.encoders))
        .word("flow", kFlows,
              "how a TT linear is computed: btt merges the output cores to U and the input cores to Vt first, tt "
              "contracts the input with one core after another, mm is the dense matrix",
              MEMBER(network.flow))
        .whole("seq_len", "positions", 2, 4096, "positions per sample: [CLS], words, padding", MEMBER(network.seq_len))
        .whole("vocab", "tokens", 3, 1'000'000, "rows of the embedding table; ids 0 to 2 are [PAD], [UNK] and [CLS]",
               MEMBER(network.vocab))
        .whole("d_model", "features", 1, 65'536, "width of the model", MEMBER(network.d_model))
        .whole("d_ff", "features", 1, 262'144, "width between the two feed-forward linears", MEMBER(network.d_ff))
        .whole("heads", "heads", 1, 1024, "attention heads; must divide network.d_model", MEMBER(network.heads))
        .whole("intents", "classes", 1, 65'536, "classes of the intent head", MEMBER(network.intents))
        .whole("slots", "classes", 1, 65'536, "classes of the slot head", MEMBER(network.slots))
        .number("ln_eps", "", 1e-30, 1, "added to the variance in LayerNorm", MEMBER(network.ln_eps));

    Section tt(table, "tt");
    tt.whole("rank", "", 1, 4096, "TT rank of every bond; given later it overrides tt.ranks", MEMBER(tt.rank));
    table.back().set = [set = table.back().set](Config& config, const std::string& text) {
        set(config, text);
        config.tt.ranks.clear();
    };
    tt.list("ranks", 0, 15, 4096, "TT rank of each bond from the first output core on; empty: tt.rank everywhere",
            MEMBER(tt.ranks))
        .list("out_modes", 1, 8, 65'536, "modes of the output cores, product network.d_model", MEMBER(tt.out_modes))
        .list("in_modes", 1, 8, 65'536, "modes of the input cores, product network.d_model", MEMBER(tt.in_modes))
        .list("ffn_modes", 0, 8, 65'536,
              "output modes of the first feed-forward linear and, reversed, input modes of the second, product "
              "network.d_ff; empty: as the other linears, which needs d_ff = d_model",
              MEMBER(tt.ffn_modes));

    Section(table, "ttm")
        .whole("rank", "", 1, 4096, "rank of every bond of the embedding table", MEMBER(ttm.rank))
        .list("vocab_modes", 2, 8, 65'536, "digits of a token id, most significant first, product network.vocab",
              MEMBER(ttm.vocab_modes))
        .list("hidden_modes", 2, 8, 65'536, "modes of an embedding row, product network.d_model",
              MEMBER(ttm.hidden_modes));

    Section(table, "engine")
        .whole("count", "engines", 1, 256, "contraction engines", MEMBER(engine.count))
        .whole("rows", "PEs", 1, 4096, "rows of PEs in an engine", MEMBER(engine.rows))
        .whole("cols", "PEs", 1, 4096, "columns of PEs in an engine", MEMBER(engine.cols))
        .whole("interleave", "outputs", 1, 1024, "outputs per PE and accumulator buffer that may be in flight",
               MEMBER(engine.interleave))
        .whole("partial_sums", "accumulators", 1, 1024,
               "accumulators per output, contraction index mod count, added in order at the end",
               MEMBER(engine.partial_sums))
        .mapping_rules("mapping",
                       "forces the mapping of contractions by kernel name, the first that matches: which of the "
                       "output's indices runs down the PE rows and, after a slash, the outputs side by side in a PE, "
                       "rows x columns x batches",
                       MEMBER(engine.mapping))
        .whole("multiply_latency_cycles", "cycles", 1, kMaxLatencyCycles, "FP32 multiplier, operands to product",
               MEMBER(engine.multiply_latency_cycles))
        .whole("add_latency_cycles", "cycles", 1, kMaxLatencyCycles, "FP32 adder, operands to sum",
               MEMBER(engine.add_latency_cycles))
        .whole("broadcast_latency_cycles", "cycles", 1, kMaxLatencyCycles,
               "operand registers from the bank's output to the PE row or column",
               MEMBER(engine.broadcast_latency_cycles));

    Section(table, "vector")
        .whole("count", "units", 1, 64, "vector units", MEMBER(vector.count))
        .whole("lanes", "lanes", 1, 4096, "lanes of a unit, each an add and a multiply per cycle", MEMBER(vector.lanes))
        .whole("special_lanes", "lanes", 1, 4096, "lanes for exp, erf, tanh, log, divide and square root",
               MEMBER(vector.special_lanes))
        .whole("burst_beats", "beats", 1, 65'536, "beats of one port grant; at least one row is served",
               MEMBER(vector.burst_beats))
        .whole("row_registers", "rows", 1, 1'048'576, "rows whose scalars (mean, maximum, ...) fit in the unit",
               MEMBER(vector.row_registers))
        .whole("exp_latency_cycles", "cycles", 1, kMaxLatencyCycles, "exponential", MEMBER(vector.exp_latency_cycles))
        .whole("erf_latency_cycles", "cycles", 1, kMaxLatencyCycles, "error function",
               MEMBER(vector.erf_latency_cycles))
        .whole("tanh_latency_cycles", "cycles", 1, kMaxLatencyCycles, "hyperbolic tangent",
               MEMBER(vector.tanh_latency_cycles))
        .whole("log_latency_cycles", "cycles", 1, kMaxLatencyCycles, "natural logarithm",
               MEMBER(vector.log_latency_cycles))
        .whole("divide_latency_cycles", "cycles", 1, kMaxLatencyCycles, "divider", MEMBER(vector.divide_latency_cycles))
        .whole("sqrt_latency_cycles", "cycles", 1, kMaxLatencyCycles, "square root", MEMBER(vector.sqrt_latency_cycles))
        .whole("compare_latency_cycles", "cycles", 1, kMaxLatencyCycles, "comparison (row maximum)",
               MEMBER(vector.compare_latency_cycles));

    Section(table, "memory")
        .word("parameters", kPlaces,
              "where parameters live; auto: BRAM, large ones URAM, and the largest in DRAM if the device is too small",
              MEMBER(memory.parameters))
        .word("gradients", kPlaces, "where gradients live; auto: as parameters", MEMBER(memory.gradients))
        .word("activations", kPlaces,
              "where activations kept for the backward phase live; auto: URAM where there is one",
              MEMBER(memory.activations))
        .word("scratch", kPlaces, "where buffers used inside a phase live; auto: as activations",
              MEMBER(memory.scratch))
        .rules("tensors",
               "place and layout of tensors by name, e.g. *.attn.q.core.*:bram:cyclic.0=12:group=q; a later rule wins",
               MEMBER(memory.tensors))
        .word("layout", kLayouts,
              "naive: every tensor in banks of its own, row-major; auto: rows skewed against bank conflicts, tensors "
              "share banks",
              MEMBER(memory.layout))
        .on_off("grouping", "layout auto: whether tensors may share a memory", MEMBER(memory.grouping))
        .whole("banks", "banks", 1, 4096, "words an on-chip memory delivers per port and cycle, one per bank at most",
               MEMBER(memory.banks))
        .whole("ports", "ports", 1, 2, "ports per bank", MEMBER(memory.ports))
        .whole("lutram_max_words", "words", 0, 65'536, "layout naive: bank depth up to which auto means LUTRAM",
               MEMBER(memory.lutram_max_words))
        .whole("lutram_max_bits", "bits", 0, 1'048'576, "layout naive: bits of a bank up to which auto means LUTRAM",
               MEMBER(memory.lutram_max_bits))
        .whole("bram_read_latency_cycles", "cycles", 1, 16, "address to data of a BRAM bank",
               MEMBER(memory.bram_read_latency_cycles))
        .whole("uram_read_latency_cycles", "cycles", 1, 16, "address to data of a URAM bank",
               MEMBER(memory.uram_read_latency_cycles))
        .whole("lutram_read_latency_cycles", "cycles", 1, 16, "address to data of a LUTRAM bank",
               MEMBER(memory.lutram_read_latency_cycles))
        .whole("stream_words", "words", 1, 1 << 30, "most words of a tile of a tensor that lives in DRAM",
               MEMBER(memory.stream_words))
        .whole("stream_buffers", "buffers", 2, 64, "on-chip buffers that such tiles pass through in turn",
               MEMBER(memory.stream_buffers));

    Section(table, "dma")
        .whole("burst_beats", "beats", 1, 256, "AXI beats per burst", MEMBER(dma.burst_beats))
        .power("beat_bytes", "bytes", 4, 128, "AXI data width", MEMBER(dma.beat_bytes))
        .whole("outstanding", "bursts", 1, 256, "bursts in flight", MEMBER(dma.outstanding))
        .whole("request_latency_cycles", "cycles", 1, kMaxLatencyCycles, "fabric-side adapter, request path",
               MEMBER(dma.request_latency_cycles))
        .whole("response_latency_cycles", "cycles", 1, kMaxLatencyCycles, "fabric-side adapter, read data",
               MEMBER(dma.response_latency_cycles))
        .whole("write_response_latency_cycles", "cycles", 1, kMaxLatencyCycles, "fabric-side adapter, write response",
               MEMBER(dma.write_response_latency_cycles))
        .number("interconnect_ns", "ns", 0, 10'000, "interconnect and clock crossings, request and response together",
                MEMBER(dma.interconnect_ns));

    Section(table, "sequencer")
        .whole("decode_cycles", "cycles", 1, kMaxLatencyCycles, "fetch of a kernel's descriptor to its issue",
               MEMBER(sequencer.decode_cycles));

    Section(table, "schedule")
        .word("policy", kPolicies,
              "serial: one kernel at a time; overlap: independent kernels side by side, merges and transfers ahead",
              MEMBER(schedule_policy))
        .on_off("split", "spread the output tiles of one kernel over free engines", MEMBER(schedule_split))
        .on_off("look_ahead",
                "overlap: a contraction may wait for engines that are still busy, by their predicted ends, instead of "
                "taking those that are free",
                MEMBER(schedule_look_ahead));

    Section(table, "clock").whole("fabric_hz", "Hz", 1'000'000, 1'000'000'000, "fabric clock", MEMBER(fabric_hz));

    Section(table, "device").text("file", "file", "an INI file", "the FPGA; see configs/devices", MEMBER(device.file));

    Section(table, "dram")
        .text("file", "file", "an INI file, or empty",
              "the DRAM; see configs/memories; empty: the one the device carries", MEMBER(dram.file))
        .whole("channels", "channels", 1, 32, "DRAM channels (HBM2: pseudo channels)", MEMBER(dram.channels))
        .power("interleave_bytes", "bytes", 8, std::int64_t{1} << 30, "bytes in a row that one channel holds",
               MEMBER(dram.interleave_bytes))
        .address_order(
            "mapping",
            "fields of a channel's address, most significant first (row, rank, bank group, bank, column). A: "
            "ro,ra,bg,ba,co, a row is contiguous; B: ro,ra,ba,co,bg, neighbouring bursts change bank group",
            MEMBER(dram.mapping))
        .word("scheduler", kSchedulers,
              "fcfs: data in order of acceptance; frfcfs: what can issue first, row hits before other rows",
              MEMBER(dram.scheduler))
        .word("page_policy", kPagePolicies,
              "open: a row stays open; closed: it is closed with its last access; timeout: after being unused",
              MEMBER(dram.page_policy))
        .whole("page_timeout_cycles", "memory cycles", 1, 1'000'000, "page_policy timeout: unused for so long",
               MEMBER(dram.page_timeout_cycles))
        .whole("lookahead", "bursts", 1, 2048, "frfcfs: oldest requests of a channel among which it chooses",
               MEMBER(dram.lookahead))
        .whole("read_queue", "bursts", 1, 1024, "reads that wait in a channel", MEMBER(dram.read_queue))
        .whole("write_queue", "bursts", 1, 1024, "writes that wait in a channel", MEMBER(dram.write_queue))
        .whole("port_queue", "AXI bursts", 1, 256,
               "wait at the controller's port for room in the queues; while so many do, it takes no further one",
               MEMBER(dram.port_queue))
        .whole("drain_high_percent", "%", 1, 100,
               "frfcfs: fill of the write queue from which on only writes are served", MEMBER(dram.drain_high_percent))
        .whole("drain_low_percent", "%", 0, 99, "frfcfs: fill of the write queue at which reads are served again",
               MEMBER(dram.drain_low_percent));

    add_resource_keys(table);
    add_energy_keys(table);

    Section(table, "train")
        .number("lr", "", 0, 1e6, "learning rate of plain SGD", MEMBER(train.lr))
        .whole_unsigned("seed", "seed of the initial parameters and of data.shuffle", MEMBER(train.seed));

    Section(table, "data")
        .text("path", "folder", "a folder",
              "data set with one folder per split, in the ATIS three-file format (seq.in, seq.out, label)",
              MEMBER(data.path))
        .text("split", "text", "a folder's name", "split to train on", MEMBER(data.split))
        .whole("first", "samples", 0, 1'000'000'000,
               "index of the first sample used; after the last one the split starts over", MEMBER(data.first))
        .on_off("shuffle", "draw the samples in a random order", MEMBER(data.shuffle));
    return table;
}

constexpr std::int64_t kMaxResources = 100'000'000;

KeyTable build_device_keys() {
    KeyTable table;
    Section(table, "device")
        .required()
        .text("name", "text", "any text", "board and part", MEMBER(device.name))
        .whole("luts", "LUTs", 1, kMaxResources, "LUTs of the chip", MEMBER(device.luts))
        .whole("ffs", "flip-flops", 1, kMaxResources, "flip-flops of the chip", MEMBER(device.ffs))
        .whole("dsps", "DSP slices", 1, kMaxResources, "DSP slices of the chip", MEMBER(device.dsps))
        .whole("bram36", "blocks", 1, kMaxResources, "36 Kb RAM blocks of the chip", MEMBER(device.bram36))
        .whole("urams", "blocks", 0, kMaxResources, "288 Kb UltraRAM blocks of the chip", MEMBER(device.urams))
        .whole("available_luts", "LUTs", 1, kMaxResources, "LUTs the shell leaves", MEMBER(device.available_luts))
        .whole("available_ffs", "flip-flops", 1, kMaxResources, "flip-flops the shell leaves",
               MEMBER(device.available_ffs))
        .whole("available_dsps", "DSP slices", 1, kMaxResources, "DSP slices the shell leaves",
               MEMBER(device.available_dsps))
        .whole("available_bram36", "blocks", 1, kMaxResources, "36 Kb RAM blocks the shell leaves",
               MEMBER(device.available_bram36))
        .whole("available_urams", "blocks", 0, kMaxResources, "UltraRAM blocks the shell leaves",
               MEMBER(device.available_urams))
        .number("static_power_w", "W", 0, 1000, "leakage of the chip and its memory", MEMBER(device.static_power_w))
        .number("shell_power_w", "W", 0, 1000, "dynamic power of the shell", MEMBER(device.shell_power_w))
        .number("link_seconds_per_buffer", "s", 0, 1, "host link, one buffer", MEMBER(device.link_seconds_per_buffer))
        .text("memory", "file", "an INI file", "DRAM of the board", MEMBER(device.memory_file));
    Section(table, "device")
        .word("dram_attachment", kDramAttachments,
              "what controls the DRAM channels: hard blocks with a port each into the fabric (hbm), the fabric (soft), "
              "or the processor, which takes nothing of the fabric (hard)",
              MEMBER(device.dram_attachment));
    return table;
}

constexpr std::int64_t kMaxTimingCycles = 100'000;

KeyTable build_memory_keys() {
    KeyTable table;
    Section(table, "dram")
        .required()
        .text("name", "text", "any text", "standard and speed grade", MEMBER(dram.name))
        .whole("clock_hz", "Hz", 1'000'000, 10'000'000'000, "memory clock, two beats per cycle", MEMBER(dram.clock_hz))
        .power("bus_bits", "bits", 8, 1024, "data bus of one channel", MEMBER(dram.bus_bits))
        .power("burst_length", "beats", 2, 64, "beats per access", MEMBER(dram.burst_length))
        .power("ranks", "ranks", 1, 8, "ranks of a channel", MEMBER(dram.ranks))
        .power("bank_groups", "bank groups", 1, 16, "bank groups of a rank; 1: none", MEMBER(dram.bank_groups))
        .power("banks", "banks", 1, 64, "banks of a bank group", MEMBER(dram.banks))
        .power("rows", "rows", 1, 1 << 24, "rows of a bank", MEMBER(dram.rows))
        .power("columns", "columns", 2, 1 << 16, "columns of a row, each as wide as the bus", MEMBER(dram.columns))
        .on_off("row_bus", "row commands have a command bus of their own", MEMBER(dram.row_bus))
        .whole("act_cycles", "cycles", 1, 16, "length of ACT on the command bus", MEMBER(dram.act_cycles))
        .whole("pre_cycles", "cycles", 1, 16, "length of PRE", MEMBER(dram.pre_cycles))
        .whole("column_cycles", "cycles", 1, 16, "length of RD and WR", MEMBER(dram.column_cycles))
        .whole("ref_cycles", "cycles", 1, 16, "length of REF", MEMBER(dram.ref_cycles))
        .whole("nRCD", "cycles", 1, kMaxTimingCycles, "activate to read", MEMBER(dram.nRCD))
        .whole("nRCDW", "cycles", 1, kMaxTimingCycles, "activate to write", MEMBER(dram.nRCDW))
        .whole("nRP", "cycles", 1, kMaxTimingCycles, "precharge to activate", MEMBER(dram.nRP))
        .whole("nRPab", "cycles", 1, kMaxTimingCycles, "precharge of all banks to activate", MEMBER(dram.nRPab))
        .whole("nRAS", "cycles", 1, kMaxTimingCycles, "activate to precharge", MEMBER(dram.nRAS))
        .whole("nRC", "cycles", 1, kMaxTimingCycles, "activate to activate of one bank", MEMBER(dram.nRC))
        .whole("nRRD_S", "cycles", 1, kMaxTimingCycles, "activate to activate, other bank group", MEMBER(dram.nRRD_S))
        .whole("nRRD_L", "cycles", 1, kMaxTimingCycles, "activate to activate, same bank group", MEMBER(dram.nRRD_L))
        .whole("nFAW", "cycles", 1, kMaxTimingCycles, "window of at most four activates", MEMBER(dram.nFAW))
        .whole("nCCD_S", "cycles", 1, kMaxTimingCycles, "column command to column command, other bank group",
               MEMBER(dram.nCCD_S))
        .whole("nCCD_L", "cycles", 1, kMaxTimingCycles, "column command to column command, same bank group",
               MEMBER(dram.nCCD_L))
        .whole("nCL", "cycles", 1, kMaxTimingCycles, "read to first data", MEMBER(dram.nCL))
        .whole("nCWL", "cycles", 1, kMaxTimingCycles, "write to first data", MEMBER(dram.nCWL))
        .whole("nDQSCK", "cycles", 0, kMaxTimingCycles, "read data later than nCL says", MEMBER(dram.nDQSCK))
        .whole("nDQSS", "cycles", 0, kMaxTimingCycles, "write strobe later than nCWL says", MEMBER(dram.nDQSS))
        .whole("nDQS2DQ", "cycles", 0, kMaxTimingCycles, "write data behind its strobe", MEMBER(dram.nDQS2DQ))
        .whole("nRTP", "cycles", 1, kMaxTimingCycles, "read to precharge", MEMBER(dram.nRTP))
        .whole("nWR", "cycles", 1, kMaxTimingCycles, "end of write data to precharge", MEMBER(dram.nWR))
        .whole("nWTR_S", "cycles", 1, kMaxTimingCycles, "end of write data to read, other bank group",
               MEMBER(dram.nWTR_S))
        .whole("nWTR_L", "cycles", 1, kMaxTimingCycles, "end of write data to read, same bank group",
               MEMBER(dram.nWTR_L))
        .whole("nRTW", "cycles", 1, kMaxTimingCycles, "read to write", MEMBER(dram.nRTW))
        .whole("nRTRS", "cycles", 0, kMaxTimingCycles, "data of one rank to data of another", MEMBER(dram.nRTRS))
        .whole("nPPD", "cycles", 1, kMaxTimingCycles, "precharge to precharge", MEMBER(dram.nPPD))
        .whole("nREFI", "cycles", 1, 10'000'000, "refresh interval", MEMBER(dram.nREFI))
        .whole("nRFC", "cycles", 1, kMaxTimingCycles, "refresh to any command", MEMBER(dram.nRFC))
        .power("channel_bytes", "bytes", 1'048'576, std::int64_t{1} << 40, "capacity of one channel",
               MEMBER(dram.channel_bytes))
        .number("controller_ns", "ns", 0, 10'000, "controller and PHY beside the DRAM, request and response together",
                MEMBER(dram.controller_ns))
        .power("port_burst_bytes", "bytes", 64, 4096, "longest AXI burst that the controller's port takes",
               MEMBER(dram.port_burst_bytes))
        .number("energy_pj_per_bit", "pJ", 0, 1000, "energy of one bit read or written",
                MEMBER(dram.energy_pj_per_bit));
    Section(table, "dram")
        .number("energy_activate_pj", "pJ", 0, 1e9,
                "one activate with its precharge, all devices of a rank; left out: that of DDR4-2400",
                MEMBER(dram.energy_activate_pj))
        .number("energy_refresh_pj", "pJ", 0, 1e9,
                "one refresh of a rank, all its devices; left out: that of DDR4-2400", MEMBER(dram.energy_refresh_pj));
    return table;
}

#undef MEMBER

}  // namespace

std::string Key::expected() const {
    return "expected " + range + (unit.empty() ? std::string() : " (" + unit + ")");
}

const KeyTable& design_keys() {
    static const KeyTable table = build_design_keys();
    return table;
}

const KeyTable& device_keys() {
    static const KeyTable table = build_device_keys();
    return table;
}

const KeyTable& memory_keys() {
    static const KeyTable table = build_memory_keys();
    return table;
}

const Key* find_key(const KeyTable& table, const std::string& full_name) {
    const std::size_t dot = full_name.find('.');
    const auto found = std::find_if(table.begin(), table.end(), [&](const Key& key) {
        return key.section.size() == dot && full_name.size() == dot + 1 + key.name.size() &&
               full_name.compare(dot + 1, std::string::npos, key.name) == 0 &&
               full_name.compare(0, dot, key.section) == 0;
    });
    return found == table.end() ? nullptr : &*found;
}

std::string unknown_key_text(const KeyTable& table, const std::string& full_name) {
    std::vector<std::string> full_names;
    std::vector<std::string> names;
    for (const Key& key : table) {
        full_names.push_back(key.full_name());
        names.push_back(key.name);
    }
    // The section is usually right, so it must not buy the name more letters. Failing that: the right name elsewhere.
    const std::string bare = full_name.substr(full_name.find('.') + 1);
    std::string meant = nearest(full_name, full_names, typing_limit(bare));
    if (meant.empty()) {
        const std::size_t limit = bare == full_name ? typing_limit(bare) : 0;
        const auto place = std::find(names.begin(), names.end(), nearest(bare, names, limit));
        if (place != names.end()) {
            meant = full_names[static_cast<std::size_t>(place - names.begin())];
        }
    }
    return "unknown key " + full_name +
           (meant.empty() ? "; `contraflow keys` lists the valid ones" : "; did you mean " + meant + "?");
}

}  // namespace contraflow::config
