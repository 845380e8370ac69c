// A trace of a machine's run: decides when its window is open, has the signals written, and leaves a GTKWave save file.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "contraflow/config.h"
#include "contraflow/trace.h"
#include "top/machine.h"
#include "trace/machine_probes.h"
#include "trace/vcd_file.h"

namespace contraflow {

// A kernel that the pattern matches, as it ran in the traced step.
struct TracedKernel {
    std::uint32_t kernel = 0;
    Cycle start = 0, end = 0;  // end 0: still runs
    std::uint16_t unit = 0;
};

class Trace {
public:
    // REQUIRES: constructed between the machine and the start of simulation; all references stay. Throws ConfigError if
    // the options match no kernel or no signal, or the file cannot be written.
    Trace(Machine& machine, const Program& program, const Config& config, bool values, const TraceOptions& options);
    ~Trace();
    Trace(const Trace&) = delete;
    Trace& operator=(const Trace&) = delete;

    // After the run: closes the file and writes the save file. Throws ConfigError if no cycle of the run was in the
    // window (nothing is left behind then), std::runtime_error if a file could not be written.
    TraceSummary finish();

private:
    class Alarm;

    [[nodiscard]] std::vector<bool> matching_kernels() const;
    [[nodiscard]] bool wants_signal(const std::string& name) const;
    [[nodiscard]] std::vector<bool> memories_of_kernels() const;
    [[nodiscard]] bool shows_dram() const;
    [[nodiscard]] std::vector<std::string> focus() const;
    [[nodiscard]] bool wanted(Cycle edge) const;
    void note_step(std::uint32_t step);
    void note_issue(const KernelRecord& record);
    void note_done(const KernelRecord& record);
    void open_if_wanted(Cycle edge);
    void time_step();
    void sample(bool fabric, bool dram);
    void let_fall(std::uint64_t until);
    void close_window();
    void check_interrupt();
    [[nodiscard]] std::string miss() const;
    void write_save_file() const;

    Machine& machine_;
    const Program& program_;
    TraceOptions options_;
    std::vector<bool> matches_;       // by kernel
    std::vector<bool> shown_memory_;  // by memory, without --scope
    std::map<std::string, std::size_t> memory_named_;
    std::unique_ptr<Alarm> alarm_;
    std::unique_ptr<VcdFile> file_;
    std::unique_ptr<MachineProbes> probes_;
    bool finished_ = false;

    bool in_step_ = false;
    std::size_t running_ = 0;  // matching kernels
    bool open_ = false, sampled_ = false;
    Cycle last_sample_ = 0, last_dram_sample_ = 0;
    std::optional<std::uint64_t> clk_falls_, clk_mem_falls_;  // falling edges that are not written yet
    std::vector<TracedKernel> kernels_;
    TraceSummary summary_;
};

}  // namespace contraflow
