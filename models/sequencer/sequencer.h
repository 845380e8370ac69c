// Sequencer: runs the step's kernels in the order that their dependences and the policy allow.
//
// Approximation: descriptors are on chip and prefetched, and all of a completion's consequences are worked out in one
// edge; optimistic by a few cycles per kernel. A doorbell starts a step. A kernel whose dependences completed is issued
// at the edge that learns of it, one kernel per sequencer.decode_cycles. Which one, and on which units, is the issue
// policy's choice (issue_policy.h).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/mailbox.h"
#include "common/messages.h"
#include "sequencer/issue_policy.h"

namespace contraflow {

// What became of one kernel of one step.
struct KernelRecord {
    std::uint32_t step = 0;
    std::uint32_t kernel = 0;
    Cycle start = 0;    // edge that posts the command
    Cycle end = 0;      // edge that sees the kernel done
    UnitCycles cycles;  // of the unit (of the gang's first engine); sums to end - start
    std::uint64_t macs = 0;
    std::uint16_t unit = 0;
    std::uint16_t gang_size = 1;
};

struct StepRecord {
    Cycle start = 0;                   // edge that sees the doorbell
    Cycle end = 0;                     // edge that sees the last kernel done
    std::array<Cycle, 3> phase_end{};  // by Phase: edge that sees its last kernel done, 0 if it has none
};

// One kernel over all steps.
struct KernelTotals {
    std::uint64_t count = 0;
    std::uint64_t cycles = 0;  // sum of end - start
    std::uint64_t macs = 0;
};

class Sequencer : public Block {
public:
    struct Config {
        SchedulePolicy policy = SchedulePolicy::Overlap;
        bool look_ahead = true;
        SequencerConfig sequencer;
        const Program* program = nullptr;
        int engines = 1;
        int vector_units = 1;
        std::size_t kept_steps = 16;  // steps whose kernel records are kept; beyond, those of the last step alone
    };

    struct Stats {
        std::uint64_t busy_cycles = 0;              // edges that issued a kernel or took a completion
        std::uint64_t stall_dependence_cycles = 0;  // nothing could be issued: dependences are open or units busy
        std::uint64_t idle_cycles = 0;              // no step
        std::uint64_t num_issued = 0;
        std::uint64_t num_kernels = 0;  // completed
        std::uint64_t num_steps = 0;
    };

    sc_core::sc_export<MailboxIf<Doorbell>> doorbell_in;                                // from the host
    sc_core::sc_port<MailboxIf<StepDone>> done_out;                                     // to the host
    std::vector<std::unique_ptr<sc_core::sc_port<MailboxIf<KernelStart>>>> engine_out;  // commands, one per engine
    std::vector<std::unique_ptr<sc_core::sc_port<MailboxIf<KernelStart>>>> vector_out;  // commands, one per unit
    sc_core::sc_port<MailboxIf<KernelStart>> dma_out;                                   // commands
    std::vector<std::unique_ptr<sc_core::sc_export<MailboxIf<KernelDone>>>> engine_in;  // completions
    std::vector<std::unique_ptr<sc_core::sc_export<MailboxIf<KernelDone>>>> vector_in;  // completions
    sc_core::sc_export<MailboxIf<KernelDone>> dma_in;                                   // completions

    Sequencer(const sc_core::sc_module_name& name, ClockDomain& clock, const Config& config);

    [[nodiscard]] const Stats& stats() const { return stats_; }
    // Records of the first kept_steps steps and of the last one, in order of issue.
    [[nodiscard]] const std::vector<KernelRecord>& kernels() const { return records_; }
    [[nodiscard]] const std::vector<KernelTotals>& totals() const { return totals_; }  // by kernel
    [[nodiscard]] const std::vector<StepRecord>& steps() const { return steps_; }
    [[nodiscard]] std::string state_text() const;

    // For observers: called at the edges that start a step, issue a kernel and see one done.
    std::function<void(std::uint32_t step)> on_step;
    std::function<void(const KernelRecord&)> on_issue, on_done;

    enum class Waits : std::uint8_t { Idle, Dependence, Units, Decode };  // what the next kernel waits for
    // What the latest edge shows, for waveforms.
    struct Observation {
        Waits waits_for = Waits::Idle;
        std::uint32_t step = 0;
        bool issues = false;       // a kernel left
        bool any_kernel = false;   // of this step
        std::uint32_t kernel = 0;  // the latest that left
        std::size_t ready = 0, running = 0, completed = 0;
    };
    [[nodiscard]] Observation observe() const;

private:
    using DoneIn = Mailbox<KernelDone>;

    void edge() override;
    [[nodiscard]] Cycle next_event() const override;
    void advance(Cycle n) override;

    void start_step(const Doorbell& doorbell);
    bool take_completions();
    void complete(const KernelDone& done);
    bool issue();
    void start_kernel(const Issue& issue);
    void occupy(const KernelRecord& record, bool busy);
    void insert_ready(std::uint32_t kernel);

    Config config_;
    Mailbox<Doorbell> doorbells_;
    std::vector<std::unique_ptr<DoneIn>> engine_done_, vector_done_;
    DoneIn dma_done_;

    std::vector<std::vector<std::uint32_t>> dependents_;  // kernels that wait for a kernel
    std::vector<std::uint32_t> open_;                     // open dependences of each kernel
    std::vector<bool> complete_;                          // kernels of the present step
    ReadyKernels ready_;
    std::unique_ptr<IssuePolicyIf> policy_;
    std::vector<std::size_t> record_of_;  // record of each kernel of the present step
    Units units_;
    bool active_ = false;
    bool blocked_ = false;  // the policy waits for a completion
    std::uint32_t step_ = 0;
    std::size_t completed_ = 0;
    Cycle issue_allowed_ = 0;
    std::vector<KernelRecord> records_;
    std::size_t kept_records_ = 0;  // records of the first kept_steps steps
    std::vector<KernelTotals> totals_;
    std::vector<StepRecord> steps_;
    Stats stats_;
};

}  // namespace contraflow
