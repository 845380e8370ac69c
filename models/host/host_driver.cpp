#include "host/host_driver.h"

#include <array>

#include "contraflow/step.h"

namespace contraflow {

HostDriver::HostDriver(const sc_core::sc_module_name& name, ClockDomain& clock)
    : Block(name, clock),
      doorbell_out("doorbell_out"),
      done_in("done_in"),
      dram_initiator("dram_initiator"),
      done_(*this) {
    done_in.bind(done_);
}

void HostDriver::queue(const std::vector<Sample>& samples) {
    samples_.insert(samples_.end(), samples.begin(), samples.end());
    wake_after(ClockDomain::now_ps());
}

void HostDriver::edge() {
    // 1. Completion: read the loss back.
    if (waiting_ && done_.ready()) {
        (void)done_.take();
        waiting_ = false;
        std::array<float, 3> losses{};
        access_dram(true, kLossDramAddress, losses.data(), sizeof losses);
        HostStep& step = steps_.back();
        step.end = cycle();
        step.intent_loss = losses[0];
        step.slot_loss = losses[1];
        step.loss = losses[2];
        if (on_step) {
            on_step(step);
        }
        if (finished()) {
            sc_core::sc_pause();
        }
    }
    // 2. The next sample and its doorbell.
    if (!waiting_ && next_ < samples_.size()) {
        std::vector<std::int32_t> words = sample_words(samples_[next_]);
        access_dram(false, kSampleDramAddress, words.data(), words.size() * sizeof(std::int32_t));
        HostStep step;
        step.start = cycle();
        steps_.push_back(step);
        doorbell_out->post(Doorbell{static_cast<std::uint32_t>(next_)});
        ++next_;
        waiting_ = true;
    }
}

Cycle HostDriver::next_event() const {
    return kNever;
}

std::vector<std::int32_t> HostDriver::sample_words(const Sample& sample) {
    std::vector<std::int32_t> words;
    for (const auto* part : {&sample.tokens, &sample.slot_labels, &sample.real}) {
        words.insert(words.end(), part->begin(), part->end());
    }
    words.push_back(sample.intent);
    words.push_back(sample.words);
    return words;
}

void HostDriver::access_dram(bool read, std::uint64_t address, void* data, std::size_t bytes) {
    tlm::tlm_generic_payload payload;
    payload.set_command(read ? tlm::TLM_READ_COMMAND : tlm::TLM_WRITE_COMMAND);
    payload.set_address(address);
    payload.set_data_ptr(static_cast<unsigned char*>(data));
    payload.set_data_length(static_cast<unsigned>(bytes));
    payload.set_streaming_width(static_cast<unsigned>(bytes));
    SIM_CHECK(dram_initiator->transport_dbg(payload) == bytes,
              "the DRAM holds no " << bytes << " bytes at address " << address);
}

}  // namespace contraflow
