// The signals of a machine: plain members, registered with sc_trace and brought up to date from what the blocks show of
// themselves (their observe functions). Nothing of a block's behaviour is repeated here.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "top/machine.h"
#include "trace/vcd_file.h"

namespace contraflow {

class MachineProbes {
public:
    using Wanted = std::function<bool(const std::string& signal)>;

    // Registers the signals that are wanted by name (top.engine0.tile). REQUIRES: machine, program and file stay.
    MachineProbes(Machine& machine, const Program& program, const Config& config, bool values, VcdFile& file,
                  const Wanted& wanted);
    ~MachineProbes();

    // The latest edge of the fabric clock, and of the DRAM's, in a window of both. The file then looks at the signals
    // of the updated domain alone, until settle().
    void update();
    void update_dram();
    void settle();
    // The DRAM's commands are noted from now on, or no longer.
    void follow_dram(bool on);
    [[nodiscard]] bool dram_traced() const { return dram_traced_; }

    bool clk = false, clk_mem = false;  // driven by the caller

private:
    static constexpr std::size_t kPorts = 2;  // of a memory at most

    struct SequencerProbe;
    struct UnitProbe;
    struct EngineProbe;
    struct VectorProbe;
    struct DmaProbe;
    struct ClientProbe;
    struct MemoryProbe;
    struct DramProbe;
    struct Burst;

    template <typename T>
    bool add(T& member, const std::string& name, int width);
    bool add(bool& member, const std::string& name);
    bool add(float& member, const std::string& name);
    bool add(unsigned& member, const std::string& name, std::vector<const char*>& literals);
    void add_unit(UnitProbe& unit, const std::string& path);

    void add_sequencer();
    void add_engine(std::size_t index, const Config& config, bool values);
    void add_vector_unit(std::size_t index);
    void add_dma();
    void add_interconnect();
    void add_memory(RamId ram);
    void add_dram(const Config& config);

    void update_sequencer();
    void update_engine(EngineProbe& probe);
    void update_vector_unit(VectorProbe& probe);
    void update_dma();
    void update_interconnect();
    void update_memories();
    void set_unit(UnitProbe& unit, bool active, std::uint32_t kernel, Activity activity) const;
    // Lists the burst when it is new; plays its accesses of this edge.
    template <typename List>
    void follow(Burst& burst, const BurstView& view, std::size_t client, const List& list);
    void play(Burst& burst);

    Machine& machine_;
    const Program& program_;
    VcdFile& file_;
    Wanted wanted_;
    Cycle now_ = 0;
    std::uint32_t cycle_ = 0;
    bool memories_traced_ = false, interconnect_traced_ = false, dram_traced_ = false;
    bool fabric_live_ = false, dram_live_ = false;  // the file is to look at the domain's signals
    AccessCounter counter_{true};

    std::vector<std::string> names_;  // what literals point to
    std::vector<const char*> kernel_names_, activities_, engine_stages_, write_stages_, vector_stages_, waits_, owners_;
    std::unique_ptr<SequencerProbe> sequencer_;
    std::vector<std::unique_ptr<EngineProbe>> engines_;
    std::vector<std::unique_ptr<VectorProbe>> vectors_;
    std::unique_ptr<DmaProbe> dma_;
    std::vector<std::unique_ptr<ClientProbe>> clients_;
    std::uint32_t waiting_ = 0;
    std::vector<std::unique_ptr<MemoryProbe>> memories_;  // by memory; null: not traced

    struct NotedCommand {
        std::size_t channel = 0;
        Cycle cycle = 0;
        DramCommand command = DramCommand::Act;
        std::uint32_t rank = 0, bank = 0, row = 0, column = 0;
        bool placed = false;  // bank, row and column are known: not for all banks
    };
    std::vector<const char*> row_commands_, column_commands_;
    std::vector<std::unique_ptr<DramProbe>> drams_;  // by channel
    std::vector<NotedCommand> noted_;                // since the latest edge
};

}  // namespace contraflow
