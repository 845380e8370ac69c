// Validated configuration of a run: plain structs, units in the names, defaults in the initialisers. The key table
// (src/config/key_table.cpp) reads the defaults from here, so a default stands in one place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "contraflow/tt_shape.h"

namespace contraflow {

enum class Flow { Btt, Tt, Mm };
enum class SchedulePolicy { Serial, Overlap };
enum class RunMode { Clocked, Leap };
enum class RamPlace { Auto, Bram, Uram, Lutram, Dram };
enum class LayoutPolicy { Naive, Auto };

struct NetworkConfig {
    int encoders = 2;
    Flow flow = Flow::Btt;
    int seq_len = 32;
    int vocab = 1000;
    int d_model = 768;
    int d_ff = 768;
    int heads = 12;
    int intents = 26;
    int slots = 129;
    double ln_eps = 1e-12;
};

struct TtConfig {
    int rank = 12;
    std::vector<int> ranks;  // one per internal bond; empty: `rank` everywhere
    std::vector<int> out_modes{12, 8, 8};
    std::vector<int> in_modes{8, 8, 12};
    std::vector<int> ffn_modes;  // output modes of fc1 (reversed: input modes of fc2); empty when d_ff == d_model
};

struct TtmConfig {
    int rank = 30;
    std::vector<int> vocab_modes{10, 10, 10};
    std::vector<int> hidden_modes{12, 8, 8};
};

// Forces how contractions lie on the PEs.
struct MappingRule {
    std::string pattern;                  // of kernel names; * and ? as in file names
    bool transposed = false;              // form "cols": the output's columns run down the PE rows; "rows": its rows
    int rows = 0, cols = 0, batches = 0;  // outputs side by side in a PE; 0: chosen
};

struct EngineConfig {
    int count = 4;
    int rows = 8;
    int cols = 12;
    int interleave = 8;    // outputs per PE and accumulator buffer that may be in flight
    int partial_sums = 1;  // accumulators per output, contraction index mod count
    int multiply_latency_cycles = 2;
    int add_latency_cycles = 3;
    int broadcast_latency_cycles = 1;  // operand register from bank output to the PE row or column
    std::vector<MappingRule> mapping;  // the first that matches a kernel's name counts
};

struct VectorConfig {
    int count = 1;
    int lanes = 32;
    int special_lanes = 8;
    int burst_beats = 32;     // beats of one port grant, at least one row
    int row_registers = 512;  // rows whose scalars (mean, maximum, ...) fit in the unit
    int exp_latency_cycles = 7;
    int erf_latency_cycles = 30;
    int tanh_latency_cycles = 22;
    int log_latency_cycles = 8;
    int divide_latency_cycles = 8;
    int sqrt_latency_cycles = 7;
    int compare_latency_cycles = 1;
};

// One dimension of a tensor spread over `banks` banks: element i is in bank i mod banks (cyclic), or in bank
// i / ceil(extent / banks) (block).
struct Partition {
    enum class Kind { Cyclic, Block };
    int dimension = 0;  // from 0, the slowest
    Kind kind = Kind::Cyclic;
    int banks = 1;
};
[[nodiscard]] std::string to_string(const Partition& partition);  // as memory.tensors has it: cyclic.0=12

// What memory.tensors says of the tensors whose names match a pattern; what it leaves open the other keys decide.
struct TensorRule {
    std::string pattern;  // with the wildcards * ? [...]
    std::optional<RamPlace> place;
    std::vector<Partition> partitions;
    int reshape = 0;    // words side by side in a row of a bank; 0: open
    std::string group;  // memory that these tensors share; empty: open
};

struct MemoryPolicy {
    RamPlace parameters = RamPlace::Auto;
    RamPlace gradients = RamPlace::Auto;
    RamPlace activations = RamPlace::Auto;
    RamPlace scratch = RamPlace::Auto;
    std::vector<TensorRule> tensors;  // by name; a later rule wins over an earlier one
    LayoutPolicy layout = LayoutPolicy::Auto;
    bool grouping = true;  // layout auto: several tensors may share a memory
    int banks = 32;        // words an on-chip memory can deliver per port and cycle (at most one per bank or lane)
    int ports = 2;         // ports per bank: 1 or 2
    int lutram_max_words = 128;  // bank depth up to which a memory is built of LUTRAM
    int lutram_max_bits = 4096;  // and bank bits up to which it is
    int bram_read_latency_cycles = 1;
    int uram_read_latency_cycles = 2;
    int lutram_read_latency_cycles = 1;
    std::int64_t stream_words = 131'072;  // most words of a tile of a tensor in DRAM
    int stream_buffers = 4;               // on-chip buffers that tiles pass through in turn
};

struct DmaConfig {
    int burst_beats = 16;                   // AXI beats per burst
    int beat_bytes = 32;                    // AXI data width
    int outstanding = 16;                   // bursts in flight
    int request_latency_cycles = 6;         // fabric-side adapter, request path
    int response_latency_cycles = 18;       // fabric-side adapter, read data
    int write_response_latency_cycles = 3;  // fabric-side adapter, write response
    double interconnect_ns = 68;            // interconnect and clock crossings, request and response together
};

struct SequencerConfig {
    int decode_cycles = 1;  // descriptor fetch to issue
};

// What one unit of a component takes on the device. Sources and trust: the key table's rows.
struct ComponentCost {
    double dsp = 0, lut = 0, ff = 0, bram36 = 0;
};

struct ResourceCosts {
    ComponentCost add{2, 220, 190, 0};
    ComponentCost multiply{3, 78, 130, 0};
    ComponentCost compare{0, 46, 66, 0};
    ComponentCost divide{0, 770, 420, 0};
    ComponentCost sqrt{0, 460, 400, 0};
    ComponentCost exp{7, 750, 300, 0};
    ComponentCost log{5, 750, 350, 0};
    ComponentCost tanh{11, 1960, 1100, 0};
    ComponentCost erf{42, 2836, 2540, 0};
    ComponentCost accumulators{0, 33, 32, 0};         // up to 64 words of 32 bits
    ComponentCost address_generator{0, 200, 200, 0};  // of one operand stream
    ComponentCost unit_control{0, 1000, 1500, 0};     // of an engine, a vector unit or the sequencer
    ComponentCost mux_input{0, 1.0 / 3, 0, 0};        // one more bit to choose from
    ComponentCost register_bit{0, 0, 1, 0};
    ComponentCost dma{0, 3000, 4000, 4};
    ComponentCost hbm_port{0, 10700, 21800, 4};            // fabric side of an HBM pseudo channel
    ComponentCost dram_controller{3, 33000, 45000, 99.5};  // of a channel, in the fabric
};

// pJ of one event, 16 nm at 0.85 V. Sources and trust: the key table's rows.
struct EnergyCosts {
    double add_pj = 32, multiply_pj = 24, compare_pj = 6;
    double exp_pj = 90, tanh_pj = 224, erf_pj = 482;
    double lutram_pj = 2;        // access of up to 32 bits
    double bram_pj = 15;         // of up to 36 bits
    double uram_pj = 20;         // of up to 72 bits
    double word_pj = 2;          // a 32-bit word through the interconnect
    double clock_ff_pj = 0.025;  // per cycle of a clocked primitive, idle or not
    double clock_dsp_pj = 0.5;
    double clock_bram36_pj = 1.5;
    double clock_uram_pj = 1;
};

struct TrainConfig {
    double lr = 0.005;
    std::uint64_t seed = 1;
};

struct DataConfig {
    std::string path = "traces/atis_like";  // directory with train/ and test/ folders in the ATIS three-file format
    std::string split = "train";
    std::int64_t first = 0;  // index of the first sample used
    bool shuffle = false;
};

// Where a device's DRAM channels are controlled: hard blocks with a port into the fabric (Hbm), soft controllers in the
// fabric, or the processor's hard controller, which takes nothing of it.
enum class DramAttachment { Hbm, Soft, Hard };

// An FPGA device; the numbers and their sources are in configs/devices/*.ini.
struct DeviceConfig {
    std::string file = "devices/u50.ini";  // where the numbers below were read
    std::string name;
    std::int64_t luts = 0, ffs = 0, dsps = 0, bram36 = 0, urams = 0;         // whole chip
    std::int64_t available_luts = 0, available_ffs = 0, available_dsps = 0;  // after the shell
    std::int64_t available_bram36 = 0, available_urams = 0;
    double static_power_w = 0;
    double shell_power_w = 0;
    double link_seconds_per_buffer = 14e-6;  // host link, one buffer
    std::string memory_file;                 // default DRAM of the board
    DramAttachment dram_attachment = DramAttachment::Soft;
};

enum class DramScheduler { Fcfs, FrFcfs };
enum class PagePolicy { Open, Closed, Timeout };

// Fields of a DRAM address, most significant first. bits = 0: what the field's other parts leave of it.
enum class DramField { Row, Rank, BankGroup, Bank, Column };
struct MappingPart {
    DramField field = DramField::Row;
    int bits = 0;
};
using AddressOrder = std::vector<MappingPart>;

// A DRAM channel (configs/memories/*.ini; JEDEC names in memory-clock cycles) and how its controller uses it (design
// keys). A gap between two commands counts from the last cycle of one to the last cycle of the other.
struct DramConfig {
    std::string file;  // where the numbers of the channel were read; given empty: the device's memory_file
    std::string name;
    std::int64_t clock_hz = 1'200'000'000;  // memory clock (two beats per cycle)
    int bus_bits = 64;
    int burst_length = 8;
    int ranks = 1, bank_groups = 4, banks = 4;                              // banks of a group
    int rows = 65'536, columns = 1024;                                      // columns of bus_bits
    bool row_bus = false;                                                   // row commands have a bus of their own
    int act_cycles = 1, pre_cycles = 1, column_cycles = 1, ref_cycles = 1;  // on the command bus
    int nRCD = 17, nRCDW = 17, nRP = 17, nRPab = 17, nRAS = 39, nRC = 56, nRRD_S = 4, nRRD_L = 6, nFAW = 26;
    int nCCD_S = 4, nCCD_L = 6, nCL = 17, nCWL = 12, nDQSCK = 0, nDQSS = 0, nDQS2DQ = 0, nRTP = 9, nWR = 18;
    int nWTR_S = 3, nWTR_L = 9, nRTW = 11, nRTRS = 2, nPPD = 1, nREFI = 9360, nRFC = 420;
    std::int64_t channel_bytes = std::int64_t{8} << 30;
    double controller_ns = 57;    // controller and PHY, request and response together
    int port_burst_bytes = 4096;  // longest AXI burst that its port takes
    double energy_pj_per_bit = 20;
    double energy_activate_pj = 3465, energy_refresh_pj = 695'520;  // of all devices of a rank

    int channels = 1;
    int interleave_bytes = 512;  // bytes in a row that one channel holds
    AddressOrder mapping{
        {DramField::Row}, {DramField::Rank}, {DramField::Bank}, {DramField::Column}, {DramField::BankGroup}};
    DramScheduler scheduler = DramScheduler::FrFcfs;
    PagePolicy page_policy = PagePolicy::Open;
    int page_timeout_cycles = 200;
    int lookahead = 33;                                    // oldest requests among which frfcfs chooses
    int read_queue = 32, write_queue = 64;                 // requests of one burst
    int port_queue = 16;                                   // AXI bursts that wait for room in them
    int drain_high_percent = 100, drain_low_percent = 50;  // of write_queue: only writes are served from, and down to

    [[nodiscard]] int burst_bytes() const { return bus_bits / 8 * burst_length; }
    [[nodiscard]] int burst_cycles() const { return burst_length / 2; }
    [[nodiscard]] int read_latency() const { return nCL + nDQSCK; }             // RD to first beat
    [[nodiscard]] int write_latency() const { return nCWL + nDQSS + nDQS2DQ; }  // WR to first beat
    [[nodiscard]] int banks_per_rank() const { return bank_groups * banks; }
    // How many values a field of an address takes: a power of two. A column counts bursts.
    [[nodiscard]] int values_of(DramField field) const {
        switch (field) {
            case DramField::Row:
                return rows;
            case DramField::Rank:
                return ranks;
            case DramField::BankGroup:
                return bank_groups;
            case DramField::Bank:
                return banks;
            case DramField::Column:
                break;
        }
        return columns / burst_length;
    }
    [[nodiscard]] std::int64_t capacity_bytes() const { return channel_bytes * channels; }
};

struct Config {
    NetworkConfig network;
    TtConfig tt;
    TtmConfig ttm;
    EngineConfig engine;
    VectorConfig vector;
    MemoryPolicy memory;
    DmaConfig dma;
    SequencerConfig sequencer;
    SchedulePolicy schedule_policy = SchedulePolicy::Overlap;
    bool schedule_split = true;
    bool schedule_look_ahead = true;
    std::int64_t fabric_hz = 100'000'000;
    TrainConfig train;
    DataConfig data;
    DeviceConfig device;
    DramConfig dram;
    ResourceCosts resources;
    EnergyCosts energy;

    // Shape of the TT linear d_model -> d_model, d_model -> d_ff (fc1) and d_ff -> d_model (fc2), and of the embedding.
    [[nodiscard]] TtShape tt_model() const;
    [[nodiscard]] TtShape tt_fc1() const;
    [[nodiscard]] TtShape tt_fc2() const;
    [[nodiscard]] TtmShape ttm_table() const;
};

}  // namespace contraflow
