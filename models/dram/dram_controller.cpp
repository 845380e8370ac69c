#include "dram/dram_controller.h"

#include <algorithm>
#include <cstring>

namespace contraflow {

DramController::DramController(const sc_core::sc_module_name& name, ClockDomain& clock, const DramConfig& config)
    : Block(name, clock, Clocking::Gated),
      dma_target("dma_target"),
      host_target("host_target"),
      config_(config),
      requests_(*this),
      bus_free_(static_cast<std::size_t>(config.channels), 0) {
    dma_target.register_nb_transport_fw(this, &DramController::nb_transport_fw);
    dma_target.register_transport_dbg(this, &DramController::transport_dbg);
    host_target.register_transport_dbg(this, &DramController::transport_dbg);
}

void DramController::edge() {
    // 1. Requests that arrived before this edge.
    while (requests_.ready()) {
        accept(*requests_.take());
    }
    // 2. Requests whose last beat is through.
    for (std::size_t i = 0; i < pending_.size();) {
        if (pending_[i].done > cycle()) {
            ++i;
            continue;
        }
        tlm::tlm_generic_payload* payload = pending_[i].payload;
        pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
        tlm::tlm_phase tlm_phase = tlm::BEGIN_RESP;
        sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
        const tlm::tlm_sync_enum answer = dma_target->nb_transport_bw(*payload, tlm_phase, delay);
        SIM_CHECK(answer == tlm::TLM_COMPLETED, "the initiator must complete a response at once");
    }
}

Cycle DramController::next_event() const {
    Cycle next = kNever;
    for (const Pending& pending : pending_) {
        next = std::min(next, pending.done > cycle() ? pending.done - cycle() : 1);
    }
    return next;
}

void DramController::advance(Cycle) {}

tlm::tlm_sync_enum DramController::nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& tlm_phase,
                                                   sc_core::sc_time&) {
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
    requests_.post(&payload);
    tlm_phase = tlm::END_REQ;
    return tlm::TLM_UPDATED;
}

unsigned DramController::transport_dbg(tlm::tlm_generic_payload& payload) {
    if (!in_range(payload)) {
        return 0;
    }
    move_data(payload);
    return payload.get_data_length();
}

void DramController::accept(tlm::tlm_generic_payload& payload) {
    const std::uint64_t bytes = payload.get_data_length();
    const bool is_read = payload.is_read();
    const auto channel = static_cast<std::size_t>(payload.get_address() / kInterleaveBytes) % bus_free_.size();
    const auto granule = static_cast<std::uint64_t>(config_.bus_bits / 8 * config_.burst_length);
    const std::uint64_t first = payload.get_address() / granule;
    const std::uint64_t last = (payload.get_address() + bytes - 1) / granule;
    const Cycle transfer = (last - first + 1) * static_cast<Cycle>(config_.burst_length / 2);
    const auto access = static_cast<Cycle>(config_.nRCD) + static_cast<Cycle>(is_read ? config_.nCL : config_.nCWL);
    Cycle start = std::max(cycle() + access, bus_free_[channel]);
    // A refresh that is running at the activation, or begins before the transfer ends, comes first.
    const auto interval = static_cast<Cycle>(config_.nREFI);
    const auto refresh = static_cast<Cycle>(config_.nRFC);
    const Cycle due = (start + transfer) / interval * interval;
    if (due >= interval && start - access < due + refresh) {
        const Cycle resumed = due + refresh + access;
        stats_.stall_refresh_cycles += resumed - start;
        start = resumed;
    }
    bus_free_[channel] = start + transfer;
    stats_.busy_cycles += transfer;
    move_data(payload);
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
    pending_.push_back({&payload, bus_free_[channel]});
    if (is_read) {
        ++stats_.num_reads;
        stats_.read_bytes += bytes;
    } else {
        ++stats_.num_writes;
        stats_.written_bytes += bytes;
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
    const auto capacity =
        static_cast<std::uint64_t>(config_.channel_bytes) * static_cast<std::uint64_t>(config_.channels);
    const std::uint64_t bytes = payload.get_data_length();
    return bytes <= capacity && payload.get_address() <= capacity - bytes;
}

std::uint64_t DramController::num_refreshes(std::uint64_t until_ps) const {
    const Cycle cycles = clock().first_edge_after(until_ps) - 1;
    return cycles / static_cast<Cycle>(config_.nREFI) * static_cast<Cycle>(config_.channels);
}

std::string DramController::state_text() const {
    return pending_.empty() ? "idle" : std::to_string(pending_.size()) + " requests in flight";
}

}  // namespace contraflow
