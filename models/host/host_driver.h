// The host: feeds samples to the machine and reads the losses back.
//
// For each training step it writes the sample into DRAM over the host link (TLM transport_dbg), rings the doorbell,
// waits for completion and reads the loss. A step lasts from the edge that rings the doorbell to the edge that sees
// completion; the link itself takes no fabric cycles (its time is reported apart as host_link_s).
#pragma once

#include <tlm_utils/simple_initiator_socket.h>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/mailbox.h"
#include "common/messages.h"
#include "contraflow/sample.h"

namespace contraflow {

struct HostStep {
    Cycle start = 0;  // edge that rings the doorbell
    Cycle end = 0;    // edge that sees completion
    float intent_loss = 0, slot_loss = 0, loss = 0;
};

class HostDriver : public Block {
public:
    sc_core::sc_port<MailboxIf<Doorbell>> doorbell_out;             // to the sequencer
    sc_core::sc_export<MailboxIf<StepDone>> done_in;                // from the sequencer
    tlm_utils::simple_initiator_socket<HostDriver> dram_initiator;  // host link

    HostDriver(const sc_core::sc_module_name& name, ClockDomain& clock);

    // Queues training steps; the next sc_start runs them and returns (sc_pause) when they are done.
    void queue(const std::vector<Sample>& samples);
    [[nodiscard]] bool finished() const { return next_ == samples_.size() && !waiting_; }
    [[nodiscard]] const std::vector<HostStep>& steps() const { return steps_; }
    // Called after each completed step.
    std::function<void(const HostStep&)> on_step;

    // Words of a sample as they lie in DRAM: tokens, slot labels, real, intent, words.
    [[nodiscard]] static std::vector<std::int32_t> sample_words(const Sample& sample);

    // Reads or writes DRAM without time: samples and losses, and tensors before and after a run.
    void access_dram(bool read, std::uint64_t address, void* data, std::size_t bytes);

private:
    void edge() override;
    [[nodiscard]] Cycle next_event() const override;
    void advance(Cycle) override {}

    Mailbox<StepDone> done_;
    std::vector<Sample> samples_;
    std::size_t next_ = 0;
    bool waiting_ = false;
    std::vector<HostStep> steps_;
};

}  // namespace contraflow
