#include "interconnect/interconnect.h"

#include <algorithm>
#include <string>

namespace contraflow {

Interconnect::Interconnect(const sc_core::sc_module_name& name, ClockDomain& clock,
                           const std::vector<RamGeometry>& rams, std::size_t num_clients)
    : Block(name, clock),
      busy_until_(rams.size(), {0, 0}),
      claim_mark_(rams.size(), 0),
      holds_(rams.size()),
      grants_(num_clients, {0, 0}) {
    for (const RamGeometry& ram : rams) {
        ram_ports_.push_back(ram.ports);
    }
    for (std::size_t i = 0; i < num_clients; ++i) {
        requests_.push_back(std::make_unique<RequestIn>(*this));
        request_in.push_back(
            std::make_unique<sc_core::sc_export<MailboxIf<PortRequest>>>(("request_in_" + std::to_string(i)).c_str()));
        request_in.back()->bind(*requests_.back());
        grant_out.push_back(
            std::make_unique<sc_core::sc_port<MailboxIf<PortGrant>>>(("grant_out_" + std::to_string(i)).c_str()));
    }
}

std::uint64_t Interconnect::num_requests_received() const {
    return stats_.num_requests;
}

void Interconnect::edge() {
    take_requests();
    if (waiting_.empty()) {
        return;
    }
    if (grant_waiting()) {
        ++stats_.busy_cycles;
    } else {
        ++stats_.stall_port_cycles;
    }
}

// Nothing changes while requests wait for ports that are busy; the counter of such edges does.
Cycle Interconnect::next_event() const {
    if (waiting_.empty()) {
        return kNever;
    }
    Cycle first = kNever;
    for (const PortRequest& request : waiting_) {
        for (std::size_t i = 0; i < request.num_rams; ++i) {
            for (const Cycle until : busy_until_[index_of(request.rams[i])]) {
                if (until > cycle()) {
                    first = std::min(first, until - cycle());
                }
            }
        }
    }
    return first == kNever ? 1 : first;
}

void Interconnect::advance(Cycle n) {
    if (!waiting_.empty()) {
        stats_.stall_port_cycles += n;
    }
}

void Interconnect::take_requests() {
    for (const auto& mailbox : requests_) {
        while (mailbox->ready()) {
            waiting_.push_back(mailbox->take());
            ++stats_.num_requests;
            const PortRequest& request = waiting_.back();
            for (std::size_t i = 0; i < request.num_rams; ++i) {
                const std::size_t ram = index_of(request.rams[i]);
                SIM_CHECK(request.ports[i] <= ram_ports_[ram],
                          "a burst asks memory " << ram << " for more ports than it has");
            }
        }
    }
}

bool Interconnect::grant_waiting() {
    bool granted = false;
    ++round_;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
        const PortRequest& request = waiting_[i];
        if (!claimed(request) && ports_free(request)) {
            grant(request);
            granted = true;
            continue;
        }
        for (std::size_t r = 0; r < request.num_rams; ++r) {
            claim_mark_[index_of(request.rams[r])] = round_;
        }
        if (kept != i) {
            waiting_[kept] = request;
        }
        ++kept;
    }
    waiting_.resize(kept);
    return granted;
}

bool Interconnect::ports_free(const PortRequest& request) const {
    for (std::size_t i = 0; i < request.num_rams; ++i) {
        const std::size_t ram = index_of(request.rams[i]);
        int free = 0;
        for (int port = 0; port < ram_ports_[ram]; ++port) {
            free += busy_until_[ram][static_cast<std::size_t>(port)] <= cycle() ? 1 : 0;
        }
        if (free < request.ports[i]) {
            return false;
        }
    }
    return true;
}

bool Interconnect::claimed(const PortRequest& request) const {
    for (std::size_t i = 0; i < request.num_rams; ++i) {
        if (claim_mark_[index_of(request.rams[i])] == round_) {
            return true;
        }
    }
    return false;
}

void Interconnect::grant(const PortRequest& request) {
    for (std::size_t i = 0; i < request.num_rams; ++i) {
        const std::size_t ram = index_of(request.rams[i]);
        int wanted = request.ports[i];
        for (int port = 0; port < ram_ports_[ram] && wanted > 0; ++port) {
            Cycle& until = busy_until_[ram][static_cast<std::size_t>(port)];
            if (until <= cycle()) {
                until = cycle() + request.cycles;
                auto& holds = holds_[ram][static_cast<std::size_t>(port)];
                holds[1] = holds[0];
                holds[0] = {cycle(), until, request.first_client, request.channel};
                --wanted;
            }
        }
        stats_.granted_port_cycles += request.ports[i] * request.cycles;
    }
    ++stats_.num_grants;
    grants_[request.first_client][request.channel] = cycle() + 1;
    for (std::uint16_t i = 0; i < request.num_clients; ++i) {
        (*grant_out[request.first_client + i])->post(PortGrant{request.channel});
    }
}

const Interconnect::Hold* Interconnect::holder(RamId ram, int port, Cycle edge) const {
    for (const Hold& hold : holds_[index_of(ram)][static_cast<std::size_t>(port)]) {
        if (hold.covers(edge)) {
            return &hold;
        }
    }
    return nullptr;
}

}  // namespace contraflow
