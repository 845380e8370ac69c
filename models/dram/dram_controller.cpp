#include "dram/dram_controller.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace contraflow {

namespace {

std::uint64_t ps_of(double ns) {
    return static_cast<std::uint64_t>(std::llround(ns * 1000));
}

}  // namespace

DramController::DramController(const sc_core::sc_module_name& name, ClockDomain& clock, const DramConfig& config)
    : Block(name, clock, Clocking::Gated),
      dma_target("dma_target"),
      host_target("host_target"),
      config_(config),
      request_ps_(ps_of(config.controller_ns) / 2),
      response_ps_(ps_of(config.controller_ns) - request_ps_),
      requests_(*this),
      refused_(*this) {
    dma_target.register_nb_transport_fw(this, &DramController::nb_transport_fw);
    dma_target.register_transport_dbg(this, &DramController::transport_dbg);
    host_target.register_transport_dbg(this, &DramController::transport_dbg);
    lanes_.reserve(static_cast<std::size_t>(config.channels));
    for (int i = 0; i < config.channels; ++i) {
        lanes_.emplace_back(config);
    }
}

void DramController::observe(const Observer& observer) {
    observed_ = static_cast<bool>(observer);
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
        if (!observed_) {
            lanes_[i].channel.observe({});
            continue;
        }
        lanes_[i].channel.observe([i, observer](const DramChannel::IssuedCommand& command) { observer(i, command); });
    }
}

void DramController::edge() {
    // 1. Transactions that arrived before this edge.
    take_arrivals();
    // 2. Every channel: commands that are due, then one burst enters.
    for (Lane& lane : lanes_) {
        run_lane(lane);
    }
    // 3. Transactions whose last byte is through.
    respond();
    // 4. The one that found the port full.
    admit_refused();
}

Cycle DramController::next_event() const {
    Cycle next = kNever;
    const auto consider = [&](Cycle at) { next = std::min(next, at > cycle() ? at - cycle() : 1); };
    if (!arriving_.empty()) {
        consider(clock().first_edge_after(arriving_.front().ps));
    }
    for (const Lane& lane : lanes_) {
        if (!lane.waiting.empty() && lane.channel.has_room(lane.waiting.front().write)) {
            consider(cycle() + 1);
        }
        if (!lane.channel.idle()) {
            consider(lane.channel.next_event());
        }
    }
    if (!responses_.empty()) {
        consider(responses_.top().done);
    }
    return next;
}

// Refreshes go on while nothing is asked of the DRAM.
void DramController::advance(Cycle n) {
    for (Lane& lane : lanes_) {
        lane.channel.tick(cycle() + n);
    }
}

void DramController::take_arrivals() {
    while (requests_.ready()) {
        arriving_.push_back(requests_.take());
    }
    while (!arriving_.empty() && arriving_.front().ps < now_ps()) {
        accept(*arriving_.front().payload);
        arriving_.pop_front();
    }
}

void DramController::run_lane(Lane& lane) {
    lane.channel.tick(cycle());
    if (!lane.waiting.empty()) {
        const Piece& piece = lane.waiting.front();
        lane.head_since = std::min(lane.head_since, cycle());
        if (lane.channel.has_room(piece.write)) {
            lane.channel.accept(piece.open, piece.address, piece.bytes, piece.write, cycle());
            lane.channel.count_full(cycle() - lane.head_since);
            lane.head_since = kNever;
            if (--open_[piece.open].outside == 0) {
                release();
            }
            lane.waiting.pop_front();
        }
    }
    for (const DramChannel::Completion& completion : lane.channel.completions()) {
        Open& open = open_[completion.id];
        open.done = std::max(open.done, completion.done);
        if (--open.pieces == 0) {
            responses_.push({open.done, num_scheduled_++, completion.id});
        }
    }
    lane.channel.clear_completions();
}

void DramController::respond() {
    while (!responses_.empty() && responses_.top().done <= cycle()) {
        const std::size_t index = responses_.top().open;
        responses_.pop();
        tlm::tlm_generic_payload* payload = open_[index].payload;
        free_.push_back(index);
        --num_open_;
        tlm::tlm_phase tlm_phase = tlm::BEGIN_RESP;
        sc_core::sc_time delay = sc_core::sc_time::from_value(response_ps_);
        const tlm::tlm_sync_enum answer = dma_target->nb_transport_bw(*payload, tlm_phase, delay);
        SIM_CHECK(answer == tlm::TLM_COMPLETED, "the initiator must complete a response at once");
    }
}

tlm::tlm_sync_enum DramController::nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& tlm_phase,
                                                   sc_core::sc_time& delay) {
    SIM_CHECK(tlm_phase == tlm::BEGIN_REQ, "only BEGIN_REQ is expected on the forward path");
    if (payload.get_command() == tlm::TLM_IGNORE_COMMAND) {
        payload.set_response_status(tlm::TLM_COMMAND_ERROR_RESPONSE);
        return tlm::TLM_COMPLETED;
    }
    if (!in_range(payload)) {
        payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
        return tlm::TLM_COMPLETED;
    }
    if (payload.get_data_length() == 0 || payload.get_streaming_width() < payload.get_data_length()) {
        payload.set_response_status(tlm::TLM_BURST_ERROR_RESPONSE);
        return tlm::TLM_COMPLETED;
    }
    if (payload.get_byte_enable_ptr() != nullptr) {
        payload.set_response_status(tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
        return tlm::TLM_COMPLETED;
    }
    const Arrival arrival{&payload, ClockDomain::now_ps() + delay.value() + request_ps_};
    if (port_is_full()) {
        refused_.post(arrival);
        return tlm::TLM_ACCEPTED;
    }
    ++held_;
    requests_.post(arrival);
    tlm_phase = tlm::END_REQ;
    return tlm::TLM_UPDATED;
}

// What left at this very time still counts: the request may come before or after the edge at which it left.
bool DramController::port_is_full() const {
    const std::size_t leaving = released_ps_ == ClockDomain::now_ps() ? num_released_ : 0;
    return held_ + leaving >= static_cast<std::size_t>(config_.port_queue);
}

void DramController::release() {
    if (released_ps_ != now_ps()) {
        released_ps_ = now_ps();
        num_released_ = 0;
    }
    ++num_released_;
    --held_;
}

void DramController::admit_refused() {
    if (!refused_.ready() || held_ >= static_cast<std::size_t>(config_.port_queue)) {
        return;
    }
    Arrival arrival = refused_.take();
    arrival.ps = std::max(arrival.ps, now_ps());
    arriving_.push_back(arrival);
    ++held_;
    tlm::tlm_phase tlm_phase = tlm::END_REQ;
    sc_core::sc_time delay;
    const tlm::tlm_sync_enum answer = dma_target->nb_transport_bw(*arrival.payload, tlm_phase, delay);
    SIM_CHECK(answer == tlm::TLM_ACCEPTED, "END_REQ is only to be taken note of");
}

unsigned DramController::transport_dbg(tlm::tlm_generic_payload& payload) {
    if (!in_range(payload)) {
        return 0;
    }
    move_data(payload);
    return payload.get_data_length();
}

void DramController::accept(tlm::tlm_generic_payload& payload) {
    if (free_.empty()) {
        free_.push_back(open_.size());
        open_.emplace_back();
    }
    const std::size_t index = free_.back();
    free_.pop_back();
    ++num_open_;
    open_[index] = {&payload, 0, 0, 0};
    const auto burst = static_cast<std::uint64_t>(config_.burst_bytes());
    const std::uint64_t end = payload.get_address() + payload.get_data_length();
    for (std::uint64_t address = payload.get_address(); address < end;) {
        const std::uint64_t next = std::min((address / burst + 1) * burst, end);
        const ChannelAddress place = channel_of(config_, address);
        lanes_[place.channel].waiting.push_back(
            {index, place.address, static_cast<std::uint32_t>(next - address), payload.is_write()});
        ++open_[index].pieces;
        address = next;
    }
    open_[index].outside = open_[index].pieces;
    move_data(payload);
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
    if (payload.is_read()) {
        ++stats_.num_reads;
        stats_.read_bytes += payload.get_data_length();
    } else {
        ++stats_.num_writes;
        stats_.written_bytes += payload.get_data_length();
    }
}

void DramController::move_data(tlm::tlm_generic_payload& payload) {
    std::uint64_t address = payload.get_address();
    unsigned char* data = payload.get_data_ptr();
    std::size_t left = payload.get_data_length();
    while (left > 0) {
        std::vector<unsigned char>& page = pages_[address / kPageBytes];
        if (page.empty()) {
            page.assign(kPageBytes, 0);
        }
        const std::size_t offset = address % kPageBytes;
        const std::size_t count = std::min(left, kPageBytes - offset);
        if (payload.is_read()) {
            std::memcpy(data, page.data() + offset, count);
        } else {
            std::memcpy(page.data() + offset, data, count);
        }
        address += count;
        data += count;
        left -= count;
    }
}

bool DramController::in_range(const tlm::tlm_generic_payload& payload) const {
    const auto capacity = static_cast<std::uint64_t>(config_.capacity_bytes());
    const std::uint64_t bytes = payload.get_data_length();
    return bytes <= capacity && payload.get_address() <= capacity - bytes;
}

DramStats DramController::sum_of_channels() const {
    DramStats sum;
    for (const Lane& lane : lanes_) {
        sum += lane.channel.stats();
    }
    return sum;
}

std::string DramController::state_text() const {
    if (!has_work()) {
        return "idle";
    }
    std::string text = std::to_string(num_open_ + arriving_.size()) + " transactions";
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
        text += ", channel " + std::to_string(i) + ": " + std::to_string(lanes_[i].channel.num_waiting()) +
                " bursts queued, " + std::to_string(lanes_[i].waiting.size()) + " before the queues";
    }
    return text;
}

}  // namespace contraflow
