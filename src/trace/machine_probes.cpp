#include "trace/machine_probes.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/sim_check.h"

namespace contraflow {

namespace {

std::vector<const char*> literals_of(std::initializer_list<const char*> names) {
    return names;
}

// Bits that hold the values 0 .. count - 1.
int bits_for(std::int64_t count) {
    int bits = 1;
    while (bits < 63 && (std::int64_t{1} << bits) < count) {
        ++bits;
    }
    return bits;
}

constexpr int kWordAddressBits = 32;
constexpr int kCountBits = 32;

}  // namespace

// What any unit that runs kernels shows.
struct MachineProbes::UnitProbe {
    unsigned kernel = 0;  // 0: none, else kernel + 1
    unsigned activity = 0;
};

struct MachineProbes::SequencerProbe {
    unsigned kernel = 0, waits_for = 0;
    bool issue = false;
    std::uint32_t ready = 0, running = 0, completed = 0;
    bool traced = false;
};

// A burst that is followed: its accesses, and which port of a memory those of its grant are.
struct MachineProbes::Burst {
    BurstView view;
    bool known = false;
    BurstAccesses accesses;
    std::vector<Activity> activities;
    std::vector<std::array<std::size_t, kPorts>> ports;  // by memory
};

struct MachineProbes::EngineProbe {
    struct Pe {
        std::int64_t row = 0, col = 0;
        float acc = 0, acc0 = 0;
    };
    UnitProbe unit;
    unsigned stage = 0, write_stage = 0;
    std::uint32_t tile = 0, write_tile = 0, k = 0, slot = 0;
    bool a_valid = false, b_valid = false;
    std::uint32_t a_addr = 0, b_addr = 0;
    std::vector<std::unique_ptr<Pe>> pes;
    bool traced = false;
    std::size_t index = 0;
    Burst operands, write;
};

struct MachineProbes::VectorProbe {
    UnitProbe unit;
    unsigned stage = 0;
    std::uint32_t segment = 0, pass = 0, row = 0;
    bool traced = false;
    std::size_t index = 0;
    Burst burst;
};

struct MachineProbes::DmaProbe {
    UnitProbe unit;
    bool dram_request = false, dram_write = false;
    std::uint64_t dram_addr = 0;
    std::uint32_t dram_bytes = 0, in_flight = 0, completed = 0;
    bool traced = false;
    Burst burst;
};

struct MachineProbes::ClientProbe {
    std::array<bool, 2> request{}, grant{};  // by channel
};

struct MachineProbes::MemoryProbe {
    struct Port {
        unsigned owner = 0;
        // By bank. Arrays, because sc_trace wants references that stay.
        std::unique_ptr<bool[]> en, we;
        std::unique_ptr<std::uint32_t[]> addr;
    };
    std::array<Port, kPorts> ports;
    std::vector<std::pair<std::uint8_t, std::uint16_t>> touched;  // ports and banks accessed at the latest edge
    bool live = false;                                            // something changed at the latest edge
    bool banks_traced = false;
};

struct MachineProbes::DramProbe {
    // Of the commands of an edge; places stay until the next command. HBM has a bus for each kind.
    unsigned row_command = 0, column_command = 0;
    std::uint32_t row_rank = 0, row_bank = 0, row = 0, column_rank = 0, column_bank = 0, column = 0;
};

MachineProbes::MachineProbes(Machine& machine, const Program& program, const Config& config, bool values, VcdFile& file,
                             const Wanted& wanted)
    : machine_(machine),
      program_(program),
      file_(file),
      wanted_(wanted),
      activities_(literals_of({"idle", "busy", "dependency", "bank", "port", "write_back", "dram", "pipeline"})),
      engine_stages_(literals_of({"idle", "token_ids", "wait", "stream", "drain"})),
      write_stages_(literals_of({"idle", "request", "write"})),
      vector_stages_(literals_of({"idle", "token_ids", "request", "stream", "drain"})),
      waits_(literals_of({"idle", "dependence", "units", "decode"})),
      row_commands_(literals_of({"none"})),
      column_commands_(row_commands_) {
    kernel_names_.push_back("none");
    for (const KernelCommand& kernel : program.kernels) {
        kernel_names_.push_back(kernel.name.c_str());
    }
    for (std::size_t i = 0; i < machine.engines.size(); ++i) {
        names_.push_back(fmt::format("engine{}.operands", i));
        names_.push_back(fmt::format("engine{}.write", i));
    }
    for (std::size_t i = 0; i < machine.vector_units.size(); ++i) {
        names_.insert(names_.end(), 2, fmt::format("vector{}", i));
    }
    names_.insert(names_.end(), 2, "dma");
    owners_.push_back("none");
    for (const std::string& name : names_) {
        owners_.push_back(name.c_str());
    }
    file_.look_while(&fabric_live_);
    add(clk, "top.clk");
    add(cycle_, "top.cycle", kCountBits);
    add_sequencer();
    for (std::size_t i = 0; i < machine.engines.size(); ++i) {
        add_engine(i, config, values);
    }
    for (std::size_t i = 0; i < machine.vector_units.size(); ++i) {
        add_vector_unit(i);
    }
    add_dma();
    add_interconnect();
    for (std::uint32_t i = 0; i < program.rams.size(); ++i) {
        add_memory(RamId{i});
    }
    add_dram(config);
}

MachineProbes::~MachineProbes() = default;

template <typename T>
bool MachineProbes::add(T& member, const std::string& name, int width) {
    if (!wanted_(name)) {
        return false;
    }
    sc_core::sc_trace(&file_, member, name, width);
    return true;
}

bool MachineProbes::add(bool& member, const std::string& name) {
    if (!wanted_(name)) {
        return false;
    }
    sc_core::sc_trace(&file_, member, name);
    return true;
}

bool MachineProbes::add(float& member, const std::string& name) {
    if (!wanted_(name)) {
        return false;
    }
    sc_core::sc_trace(&file_, member, name);
    return true;
}

// Not by sc_trace, whose form with literals warns that it is deprecated: other files drop them.
bool MachineProbes::add(unsigned& member, const std::string& name, std::vector<const char*>& literals) {
    if (!wanted_(name)) {
        return false;
    }
    static_cast<sc_core::sc_trace_file&>(file_).trace(member, name, literals.data());
    return true;
}

void MachineProbes::add_unit(UnitProbe& unit, const std::string& path) {
    add(unit.kernel, path + ".kernel", kernel_names_);
    add(unit.activity, path + ".activity", activities_);
}

void MachineProbes::add_sequencer() {
    sequencer_ = std::make_unique<SequencerProbe>();
    SequencerProbe& probe = *sequencer_;
    const std::size_t before = file_.signals().size();
    add(probe.waits_for, "top.sequencer.waits_for", waits_);
    add(probe.kernel, "top.sequencer.kernel", kernel_names_);
    add(probe.issue, "top.sequencer.issue");
    const int bits = bits_for(static_cast<std::int64_t>(program_.kernels.size()) + 1);
    add(probe.ready, "top.sequencer.ready", bits);
    add(probe.running, "top.sequencer.running", bits);
    add(probe.completed, "top.sequencer.completed", bits);
    probe.traced = file_.signals().size() != before;
}

void MachineProbes::add_engine(std::size_t index, const Config& config, bool values) {
    engines_.push_back(std::make_unique<EngineProbe>());
    EngineProbe& probe = *engines_.back();
    probe.index = index;
    const std::string path = fmt::format("top.engine{}", index);
    const std::size_t before = file_.signals().size();
    add_unit(probe.unit, path);
    add(probe.stage, path + ".state", engine_stages_);
    add(probe.tile, path + ".tile", kCountBits);
    add(probe.k, path + ".k", kCountBits);
    add(probe.slot, path + ".slot", kCountBits);
    add(probe.a_valid, path + ".a_valid");
    add(probe.a_addr, path + ".a_addr", kWordAddressBits);
    add(probe.b_valid, path + ".b_valid");
    add(probe.b_addr, path + ".b_addr", kWordAddressBits);
    add(probe.write_stage, path + ".write_state", write_stages_);
    add(probe.write_tile, path + ".write_tile", kCountBits);
    for (std::int64_t row = 0; values && row < config.engine.rows; ++row) {
        for (std::int64_t col = 0; col < config.engine.cols; ++col) {
            auto pe = std::make_unique<EngineProbe::Pe>();
            pe->row = row;
            pe->col = col;
            const std::string name = fmt::format("{}.pe_{}_{}", path, row, col);
            const bool acc = add(pe->acc, name + ".acc");
            if (add(pe->acc0, name + ".acc0") || acc) {
                probe.pes.push_back(std::move(pe));
            }
        }
    }
    probe.traced = file_.signals().size() != before;
}

void MachineProbes::add_vector_unit(std::size_t index) {
    vectors_.push_back(std::make_unique<VectorProbe>());
    VectorProbe& probe = *vectors_.back();
    probe.index = index;
    const std::string path = fmt::format("top.vector{}", index);
    const std::size_t before = file_.signals().size();
    add_unit(probe.unit, path);
    add(probe.stage, path + ".state", vector_stages_);
    add(probe.segment, path + ".segment", kCountBits);
    add(probe.pass, path + ".pass", kCountBits);
    add(probe.row, path + ".row", kCountBits);
    probe.traced = file_.signals().size() != before;
}

void MachineProbes::add_dma() {
    dma_ = std::make_unique<DmaProbe>();
    const std::size_t before = file_.signals().size();
    add_unit(dma_->unit, "top.dma");
    add(dma_->dram_request, "top.dma.dram_request");
    add(dma_->dram_write, "top.dma.dram_write");
    add(dma_->dram_addr, "top.dma.dram_addr", 40);
    add(dma_->dram_bytes, "top.dma.dram_bytes", kCountBits);
    add(dma_->in_flight, "top.dma.in_flight", kCountBits);
    add(dma_->completed, "top.dma.completed", kCountBits);
    dma_->traced = file_.signals().size() != before;
}

void MachineProbes::add_interconnect() {
    const std::size_t before = file_.signals().size();
    add(waiting_, "top.interconnect.waiting", kCountBits);
    const std::size_t engines = machine_.engines.size();
    const std::size_t units = engines + machine_.vector_units.size();
    for (std::size_t i = 0; i <= units; ++i) {
        clients_.push_back(std::make_unique<ClientProbe>());
        ClientProbe& probe = *clients_.back();
        const auto add_channel = [&](std::size_t channel, const std::string& name) {
            add(probe.request[channel], fmt::format("top.interconnect.{}_request", name));
            add(probe.grant[channel], fmt::format("top.interconnect.{}_grant", name));
        };
        if (i < engines) {
            add_channel(kOperandBurst, fmt::format("engine{}_operands", i));
            add_channel(kWriteBurst, fmt::format("engine{}_write", i));
        } else {
            add_channel(kOperandBurst, i < units ? fmt::format("vector{}", i - engines) : "dma");
        }
    }
    interconnect_traced_ = file_.signals().size() != before;
}

void MachineProbes::add_memory(RamId ram) {
    const RamGeometry& geometry = program_.rams[index_of(ram)];
    auto probe = std::make_unique<MemoryProbe>();
    const std::string path = fmt::format("top.{}.{}", to_string(geometry.kind), geometry.name);
    const std::size_t before = file_.signals().size();
    const auto banks = static_cast<std::size_t>(geometry.banks);
    const auto num_ports = static_cast<std::size_t>(geometry.ports);
    constexpr std::array<char, kPorts> kPortNames{'a', 'b'};
    for (std::size_t p = 0; p < num_ports; ++p) {
        add(probe->ports[p].owner, fmt::format("{}.port_{}", path, kPortNames[p]), owners_);
        probe->ports[p].en = std::make_unique<bool[]>(banks);
        probe->ports[p].we = std::make_unique<bool[]>(banks);
        probe->ports[p].addr = std::make_unique<std::uint32_t[]>(banks);
    }
    const std::size_t before_banks = file_.signals().size();
    file_.look_while(&probe->live);
    for (std::size_t bank = 0; bank < banks; ++bank) {
        for (std::size_t p = 0; p < num_ports; ++p) {
            MemoryProbe::Port& port = probe->ports[p];
            const std::string name = fmt::format("{}.bank{}_{}", path, bank, kPortNames[p]);
            add(port.en[bank], name + "_en");
            add(port.we[bank], name + "_we");
            add(port.addr[bank], name + "_addr", bits_for(geometry.rows));
        }
    }
    file_.look_while(&fabric_live_);
    probe->banks_traced = file_.signals().size() != before_banks;
    memories_traced_ = memories_traced_ || probe->banks_traced;
    memories_.push_back(file_.signals().size() != before ? std::move(probe) : nullptr);
}

void MachineProbes::add_dram(const Config& config) {
    for (std::size_t i = 0; i < kNumDramCommands; ++i) {
        const auto command = static_cast<DramCommand>(i);
        (is_column_command(command) ? column_commands_ : row_commands_).push_back(to_string(command));
    }
    file_.look_while(&dram_live_);
    const std::size_t before = file_.signals().size();
    add(clk_mem, "top.clk_mem");
    const int bank_bits = bits_for(static_cast<std::int64_t>(machine_.dram->device(0).num_banks()));
    const int rank_bits = bits_for(static_cast<std::int64_t>(machine_.dram->device(0).num_ranks()));
    for (int i = 0; i < config.dram.channels; ++i) {
        drams_.push_back(std::make_unique<DramProbe>());
        DramProbe& probe = *drams_.back();
        const std::string path = fmt::format("top.dram.channel{}", i);
        add(probe.row_command, path + ".row_command", row_commands_);
        add(probe.row_rank, path + ".row_rank", rank_bits);
        add(probe.row_bank, path + ".row_bank", bank_bits);
        add(probe.row, path + ".row", kCountBits);
        add(probe.column_command, path + ".column_command", column_commands_);
        add(probe.column_rank, path + ".column_rank", rank_bits);
        add(probe.column_bank, path + ".column_bank", bank_bits);
        add(probe.column, path + ".column", kCountBits);
    }
    file_.look_while(nullptr);
    dram_traced_ = file_.signals().size() != before;
}

void MachineProbes::follow_dram(bool on) {
    if (!on || !dram_traced_) {
        machine_.dram->observe({});
        return;
    }
    machine_.dram->observe([this](std::size_t channel, const DramChannel::IssuedCommand& command) {
        NotedCommand noted;
        noted.channel = channel;
        noted.cycle = command.cycle;
        noted.command = command.command;
        noted.rank = static_cast<std::uint32_t>(command.rank);
        if (command.command != DramCommand::PreAll && command.command != DramCommand::Ref) {
            noted.placed = true;
            noted.bank = static_cast<std::uint32_t>(command.bank);
        }
        if (command.request != nullptr) {
            noted.row = command.request->row;
            noted.column = command.request->column;
        }
        noted_.push_back(noted);
    });
}

void MachineProbes::update_dram() {
    dram_live_ = true;
    for (const auto& probe : drams_) {
        probe->row_command = 0;
        probe->column_command = 0;
    }
    for (const NotedCommand& noted : noted_) {
        if (noted.cycle != machine_.clk_mem.cycle()) {
            continue;  // from before the window
        }
        DramProbe& probe = *drams_[noted.channel];
        const bool column = is_column_command(noted.command);
        // The place of the command among those of its kind, whose names stand in the order of the enumeration.
        unsigned place = 1;
        for (std::size_t i = 0; i < static_cast<std::size_t>(noted.command); ++i) {
            place += is_column_command(static_cast<DramCommand>(i)) == column ? 1 : 0;
        }
        (column ? probe.column_command : probe.row_command) = place;
        (column ? probe.column_rank : probe.row_rank) = noted.rank;
        if (noted.placed) {
            (column ? probe.column_bank : probe.row_bank) = noted.bank;
        }
        if (column) {
            probe.column = noted.column;
        } else if (noted.command == DramCommand::Act) {
            probe.row = noted.row;
        }
    }
    noted_.clear();
}

void MachineProbes::settle() {
    fabric_live_ = false;
    dram_live_ = false;
    for (const auto& memory : memories_) {
        if (memory != nullptr) {
            memory->live = false;
        }
    }
}

void MachineProbes::update() {
    fabric_live_ = true;
    now_ = machine_.clk.cycle();
    cycle_ = static_cast<std::uint32_t>(now_);
    for (const auto& memory : memories_) {
        if (memory != nullptr) {
            memory->live = !memory->touched.empty();
            for (const auto& [port, bank] : memory->touched) {
                memory->ports[port].en[bank] = false;
                memory->ports[port].we[bank] = false;
            }
            memory->touched.clear();
        }
    }
    if (sequencer_->traced) {
        update_sequencer();
    }
    for (const auto& engine : engines_) {
        update_engine(*engine);
    }
    for (const auto& unit : vectors_) {
        update_vector_unit(*unit);
    }
    update_dma();
    if (interconnect_traced_) {
        update_interconnect();
    }
    update_memories();
}

void MachineProbes::set_unit(UnitProbe& unit, bool active, std::uint32_t kernel, Activity activity) const {
    unit.kernel = active ? kernel + 1 : 0;
    unit.activity = static_cast<unsigned>(activity);
}

void MachineProbes::update_sequencer() {
    const Sequencer::Observation seen = machine_.sequencer->observe();
    SequencerProbe& probe = *sequencer_;
    probe.waits_for = static_cast<unsigned>(seen.waits_for);
    probe.kernel = seen.any_kernel ? seen.kernel + 1 : 0;
    probe.issue = seen.issues;
    probe.ready = static_cast<std::uint32_t>(seen.ready);
    probe.running = static_cast<std::uint32_t>(seen.running);
    probe.completed = static_cast<std::uint32_t>(seen.completed);
}

void MachineProbes::update_engine(EngineProbe& probe) {
    if (!probe.traced && !memories_traced_) {
        return;
    }
    ContractionEngine& engine = *machine_.engines[probe.index];
    const ContractionEngine::Observation seen = engine.observe();
    set_unit(probe.unit, seen.active, seen.kernel, seen.activity);
    probe.stage = static_cast<unsigned>(seen.stage);
    probe.write_stage = static_cast<unsigned>(seen.write_back);
    probe.tile = static_cast<std::uint32_t>(seen.tile);
    probe.write_tile = static_cast<std::uint32_t>(seen.write_tile);
    probe.k = static_cast<std::uint32_t>(seen.k);
    probe.slot = static_cast<std::uint32_t>(seen.slot);
    probe.a_valid = seen.a_valid;
    probe.b_valid = seen.b_valid;
    if (seen.a_valid) {
        probe.a_addr = static_cast<std::uint32_t>(seen.a_address);
    }
    if (seen.b_valid) {
        probe.b_addr = static_cast<std::uint32_t>(seen.b_address);
    }
    for (const auto& pe : probe.pes) {
        pe->acc = seen.accumulating ? engine.latest_sum(pe->row, pe->col) : 0;
        pe->acc0 = seen.accumulating ? engine.first_sum(pe->row, pe->col) : 0;
    }
    if (memories_traced_ && seen.leads) {
        const auto follow_channel = [&](Burst& burst, const BurstView& view) {
            follow(burst, view, probe.index,
                   [&](Burst& own) { engine.list_burst(view.channel, counter_, own.accesses); });
        };
        follow_channel(probe.operands, seen.operands);
        follow_channel(probe.write, seen.write);
    }
}

void MachineProbes::update_vector_unit(VectorProbe& probe) {
    if (!probe.traced && !memories_traced_) {
        return;
    }
    VectorUnit& unit = *machine_.vector_units[probe.index];
    const VectorUnit::Observation seen = unit.observe();
    follow(probe.burst, seen.burst, machine_.engines.size() + probe.index,
           [&](Burst& own) { unit.list_burst(counter_, own.accesses, own.activities); });
    const Activity activity =
        seen.streaming ? probe.burst.activities[static_cast<std::size_t>(now_ - seen.burst.begin)] : seen.activity;
    set_unit(probe.unit, seen.active, seen.kernel, activity);
    probe.stage = static_cast<unsigned>(seen.stage);
    probe.segment = static_cast<std::uint32_t>(seen.segment);
    probe.pass = static_cast<std::uint32_t>(seen.pass);
    probe.row = static_cast<std::uint32_t>(seen.first_row);
}

void MachineProbes::update_dma() {
    if (!dma_->traced && !memories_traced_) {
        return;
    }
    const Dma::Observation seen = machine_.dma->observe();
    set_unit(dma_->unit, seen.active, seen.kernel, seen.activity);
    dma_->dram_request = seen.sends;
    dma_->dram_write = seen.sends && !seen.to_chip;
    if (seen.sends) {
        dma_->dram_addr = seen.address;
        dma_->dram_bytes = static_cast<std::uint32_t>(seen.bytes);
    }
    dma_->in_flight = static_cast<std::uint32_t>(seen.in_flight);
    dma_->completed = static_cast<std::uint32_t>(seen.completed);
    if (memories_traced_) {
        follow(dma_->burst, seen.burst, machine_.engines.size() + machine_.vector_units.size(),
               [&](Burst& own) { machine_.dma->list_burst(counter_, own.accesses); });
    }
}

void MachineProbes::update_interconnect() {
    const Interconnect& interconnect = *machine_.interconnect;
    waiting_ = static_cast<std::uint32_t>(interconnect.waiting().size());
    for (std::size_t i = 0; i < clients_.size(); ++i) {
        clients_[i]->request.fill(false);
        for (const std::uint8_t channel : {kOperandBurst, kWriteBurst}) {
            clients_[i]->grant[channel] = interconnect.granted(i, channel);
        }
    }
    for (const PortRequest& request : interconnect.waiting()) {
        clients_[request.first_client]->request[request.channel] = true;
    }
}

void MachineProbes::update_memories() {
    for (std::uint32_t ram = 0; ram < memories_.size(); ++ram) {
        if (memories_[ram] == nullptr) {
            continue;
        }
        for (int port = 0; port < program_.rams[ram].ports; ++port) {
            const Interconnect::Hold* hold = machine_.interconnect->holder(RamId{ram}, port, now_);
            memories_[ram]->ports[static_cast<std::size_t>(port)].owner =
                hold == nullptr ? 0 : 1 + 2 * unsigned{hold->client} + hold->channel;
        }
    }
}

template <typename List>
void MachineProbes::follow(Burst& burst, const BurstView& view, std::size_t client, const List& list) {
    if (!view.covers(now_)) {
        burst.known = false;
        return;
    }
    if (!burst.known || burst.view.begin != view.begin) {
        burst.known = true;
        burst.view = view;
        list(burst);
        // The ports of the grant, in ascending order.
        burst.ports.assign(program_.rams.size(), {kPorts, kPorts});
        for (std::uint32_t ram = 0; ram < program_.rams.size(); ++ram) {
            std::size_t next = 0;
            for (int port = 0; port < program_.rams[ram].ports; ++port) {
                const Interconnect::Hold* hold = machine_.interconnect->holder(RamId{ram}, port, now_);
                if (hold != nullptr && hold->client == client && hold->channel == view.channel) {
                    burst.ports[ram][next++] = static_cast<std::size_t>(port);
                }
            }
        }
    }
    play(burst);
}

void MachineProbes::play(Burst& burst) {
    burst.accesses.take(now_ - burst.view.begin, [&](const RowAccess& access) {
        MemoryProbe* memory = memories_[index_of(access.ram)].get();
        if (memory == nullptr || !memory->banks_traced) {
            return;
        }
        const std::size_t port = burst.ports[index_of(access.ram)][access.port];
        SIM_CHECK(port < kPorts, "a burst accesses " << program_.rams[index_of(access.ram)].name << " without a port");
        MemoryProbe::Port& own = memory->ports[port];
        SIM_CHECK(!own.en[access.bank], "two accesses of bank " << access.bank << " of "
                                                                << program_.rams[index_of(access.ram)].name
                                                                << " through one port at edge " << now_);
        own.en[access.bank] = true;
        own.we[access.bank] = access.write;
        own.addr[access.bank] = access.row;
        memory->touched.emplace_back(static_cast<std::uint8_t>(port), access.bank);
        memory->live = true;
    });
}

}  // namespace contraflow
