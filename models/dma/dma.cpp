#include "dma/dma.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace contraflow {

namespace {

constexpr std::uint64_t kAxiBoundary = 4096;  // an AXI burst stays inside 4 KB
constexpr std::int64_t kWordBytes = 4;

}  // namespace

Dma::Dma(const sc_core::sc_module_name& name, ClockDomain& clock, const Config& config)
    : Block(name, clock),
      start_in("start_in"),
      grant_in("grant_in"),
      request_out("request_out"),
      done_out("done_out"),
      dram_initiator("dram_initiator"),
      config_(config),
      starts_(*this),
      grants_(*this),
      responses_(*this),
      request_ends_(*this),
      request_ps_(static_cast<std::uint64_t>(std::llround(config.dma.interconnect_ns * 500))),
      response_ps_(static_cast<std::uint64_t>(std::llround(config.dma.interconnect_ns * 1000)) - request_ps_) {
    start_in.bind(starts_);
    grant_in.bind(grants_);
    dram_initiator.register_nb_transport_bw(this, &Dma::nb_transport_bw);
}

void Dma::start_of_simulation() {
    memory.resolve(config_.program->rams);
}

void Dma::edge() {
    // 1. A command starts a transfer.
    if (!s_.active) {
        if (!starts_.ready()) {
            ++stats_.idle_cycles;
            return;
        }
        start_kernel(starts_.take());
    }
    // 2. What the others answered.
    take_grant();
    take_responses();
    // 3. The last beat of a port burst.
    const bool moves = s_.moving;
    if (s_.moving && cycle() + 1 == s_.move_end) {
        end_move();
    }
    // 4. At most one request to the DRAM.
    issue();
    // 5. The next port burst.
    request_port();
    // 6. Every edge is accounted for.
    count(1, cycle() + 1, moves);
    // 7. The last word is where it belongs.
    if (cycle() == s_.done_at) {
        finish_kernel();
    }
}

Cycle Dma::next_event() const {
    if (!s_.active) {
        return kNever;
    }
    Cycle next = kNever;
    const auto consider = [&](Cycle at) {
        if (at > cycle() && at != kNever) {
            next = std::min(next, at - cycle());
        }
    };
    consider(s_.done_at);
    consider(s_.issue_allowed);
    if (s_.moving) {
        consider(s_.move_end - 1);
        consider(s_.move_end);
        consider(s_.move_end > kGrantEdges ? s_.move_end - kGrantEdges : 0);
    }
    for (const Due& due : arrived_) {
        consider(due.at);
        consider(due.at > kGrantEdges ? due.at - kGrantEdges : 0);
    }
    for (const Due& due : to_send_) {
        consider(due.at);
    }
    if (!landing_.empty()) {
        consider(clock().first_edge_after(landing_.front().ps));
    }
    // Something may be issued or sent one per edge.
    const bool more = command().to_chip ? s_.next_issue < bursts_.size() &&
                                              s_.in_flight < static_cast<std::size_t>(config_.dma.outstanding)
                                        : !to_send_.empty() && to_send_.front().at <= cycle();
    if (more && !s_.refused) {
        consider(std::max(cycle() + 1, s_.issue_allowed));
    }
    return next;
}

void Dma::advance(Cycle n) {
    if (!s_.active) {
        stats_.idle_cycles += n;
    } else {
        count(n, cycle() + 1 + n, s_.moving);
    }
}

tlm::tlm_sync_enum Dma::nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& tlm_phase,
                                        sc_core::sc_time& delay) {
    if (tlm_phase == tlm::END_REQ) {
        request_ends_.post(true);
        return tlm::TLM_ACCEPTED;
    }
    SIM_CHECK(tlm_phase == tlm::BEGIN_RESP, "only END_REQ and BEGIN_RESP are expected on the backward path");
    SIM_CHECK(payload.is_response_ok(),
              "the DRAM answered " << payload.get_response_string() << " at address " << payload.get_address());
    const auto asked = std::find_if(asked_.begin(), asked_.end(),
                                    [&](std::size_t burst) { return bursts_[burst].payload == &payload; });
    SIM_CHECK(asked != asked_.end(), "a response without a request");
    responses_.post({*asked, ClockDomain::now_ps() + delay.value() + response_ps_});
    asked_.erase(asked);
    return tlm::TLM_COMPLETED;
}

void Dma::free(tlm::tlm_generic_payload* payload) {
    free_payloads_.push_back(payload);
}

void Dma::start_kernel(const KernelStart& start) {
    s_ = State{};
    s_.active = true;
    s_.start = start;
    kernel_cycles_ = UnitCycles{};
    bursts_.clear();
    asked_.clear();
    arrived_.clear();
    to_send_.clear();
    row_starts_.clear();
    ++stats_.num_kernels;
    if (command().token.modulus != 0) {
        s_.tokens_pending = true;
        s_.issue_allowed = kNever;
        return;
    }
    make_bursts();
    s_.issue_allowed = cycle() + static_cast<Cycle>(config_.dma.request_latency_cycles);
}

// Rows of the transfer, cut where AXI demands it.
void Dma::make_bursts() {
    const auto burst_bytes = static_cast<std::uint64_t>(
        std::min(config_.dma.burst_beats * config_.dma.beat_bytes, config_.port_burst_bytes));
    for (std::int64_t row = 0; row * command().row_words < command().words; ++row) {
        const std::int64_t by_token = row_starts_.empty() ? 0 : row_starts_[static_cast<std::size_t>(row)];
        auto address = static_cast<std::uint64_t>(command().dram_address + row * command().row_pitch_bytes +
                                                  by_token * kWordBytes);
        std::int64_t word = row * command().row_words;
        const std::int64_t end = word + command().row_words;
        while (word < end) {
            const std::uint64_t to_boundary = kAxiBoundary - address % kAxiBoundary;
            const auto room = static_cast<std::int64_t>(std::min(burst_bytes, to_boundary)) / kWordBytes;
            Burst burst;
            burst.address = address;
            burst.first_word = word;
            burst.words = std::min(room, end - word);
            word += burst.words;
            address += static_cast<std::uint64_t>(burst.words * kWordBytes);
            bursts_.push_back(std::move(burst));
        }
    }
}

// The ids of the tokens that choose the rows pass through a port of the sample's memory, one per cycle.
void Dma::start_tokens() {
    const Program& program = *config_.program;
    const std::int64_t rows = command().words / command().row_words;
    const float* sample = memory.words(program.sample.ram) + program.sample.base;
    for (std::int64_t row = 0; row < rows; ++row) {
        std::int32_t id = 0;
        std::memcpy(&id, sample + AccessTable::at(program.sample.col, command().first_position + row), sizeof id);
        const TokenDigit& token = command().token;
        row_starts_.push_back(token.stride * ((id / token.divisor) % token.modulus));
    }
    memory.of(program.sample.ram).record_read(program.sample.ram, rows, rows, 0);
    stats_.num_words_read += static_cast<std::uint64_t>(rows);
    s_.move_end = cycle() + static_cast<Cycle>(rows);
}

void Dma::end_tokens() {
    s_.tokens_pending = false;
    make_bursts();
    const RamGeometry& ram = config_.program->rams[index_of(config_.program->sample.ram)];
    s_.issue_allowed = cycle() + static_cast<Cycle>(ram.read_latency_cycles + config_.dma.request_latency_cycles);
}

void Dma::take_grant() {
    while (grants_.ready()) {
        (void)grants_.take();
        s_.requested = false;
        s_.moving = true;
        s_.move_begin = cycle();
        s_.token_burst = s_.tokens_pending;
        if (s_.tokens_pending) {
            start_tokens();
            continue;
        }
        s_.moving_burst = command().to_chip ? arrived_.front().burst : s_.next_move;
        if (command().to_chip) {
            arrived_.pop_front();
        } else {
            ++s_.next_move;
        }
        std::int64_t rows = 0;
        std::int64_t conflicts = 0;
        const Burst& burst = bursts_[s_.moving_burst];
        s_.move_end = cycle() + move_cycles(burst, &rows, &conflicts);
        MemoryIf& owner = memory.of(command().chip.ram);
        if (command().to_chip) {
            owner.record_write(command().chip.ram, burst.words, rows, conflicts);
            stats_.num_words_written += static_cast<std::uint64_t>(burst.words);
        } else {
            owner.record_read(command().chip.ram, burst.words, rows, conflicts);
            stats_.num_words_read += static_cast<std::uint64_t>(burst.words);
        }
    }
}

void Dma::take_responses() {
    if (request_ends_.ready()) {
        s_.refused = !request_ends_.take();
    }
    while (responses_.ready()) {
        landing_.push_back(responses_.take());
    }
    for (; !landing_.empty() && landing_.front().ps < now_ps(); landing_.pop_front()) {
        const std::size_t index = landing_.front().burst;
        Burst& burst = bursts_[index];
        burst.payload->release();
        burst.payload = nullptr;
        if (command().to_chip) {
            arrived_.push_back({index, cycle() + static_cast<Cycle>(config_.dma.response_latency_cycles)});
            continue;
        }
        --s_.in_flight;
        if (++s_.completed == bursts_.size()) {
            s_.done_at = cycle() + static_cast<Cycle>(config_.dma.write_response_latency_cycles);
        }
    }
}

void Dma::end_move() {
    s_.moving = false;
    if (s_.tokens_pending) {
        end_tokens();
        return;
    }
    Burst& burst = bursts_[s_.moving_burst];
    burst.data.resize(static_cast<std::size_t>(burst.words * kWordBytes));
    const AccessTable& chip = command().chip;
    float* words = memory.words(chip.ram) + chip.base;
    for (std::int64_t i = 0; i < burst.words; ++i) {
        float& word = words[AccessTable::at(chip.col, burst.first_word + i)];
        unsigned char* bytes = burst.data.data() + i * kWordBytes;
        if (command().to_chip) {
            std::memcpy(&word, bytes, sizeof word);
        } else {
            std::memcpy(bytes, &word, sizeof word);
        }
    }
    if (!command().to_chip) {
        const auto latency = static_cast<Cycle>(config_.program->rams[index_of(chip.ram)].read_latency_cycles +
                                                config_.dma.request_latency_cycles);
        to_send_.push_back({s_.moving_burst, cycle() + latency});
        return;
    }
    --s_.in_flight;
    if (++s_.completed == bursts_.size()) {
        s_.done_at = cycle() + 1;
    }
}

void Dma::issue() {
    if (s_.refused) {
        return;
    }
    if (command().to_chip) {
        if (s_.next_issue < bursts_.size() && cycle() >= s_.issue_allowed &&
            s_.in_flight < static_cast<std::size_t>(config_.dma.outstanding)) {
            ++s_.in_flight;
            s_.issue_allowed = cycle() + 1;
            send(s_.next_issue++);
        }
    } else if (!to_send_.empty() && to_send_.front().at <= cycle()) {
        const std::size_t burst = to_send_.front().burst;
        to_send_.pop_front();
        send(burst);
    }
}

void Dma::send(std::size_t index) {
    Burst& burst = bursts_[index];
    burst.data.resize(static_cast<std::size_t>(burst.words * kWordBytes));
    if (free_payloads_.empty()) {
        pool_.push_back(std::make_unique<tlm::tlm_generic_payload>(this));
        free_payloads_.push_back(pool_.back().get());
    }
    tlm::tlm_generic_payload* payload = free_payloads_.back();
    free_payloads_.pop_back();
    payload->acquire();
    payload->set_command(command().to_chip ? tlm::TLM_READ_COMMAND : tlm::TLM_WRITE_COMMAND);
    payload->set_address(burst.address);
    payload->set_data_ptr(burst.data.data());
    payload->set_data_length(static_cast<unsigned>(burst.data.size()));
    payload->set_streaming_width(static_cast<unsigned>(burst.data.size()));
    payload->set_byte_enable_ptr(nullptr);
    payload->set_dmi_allowed(false);
    payload->set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    burst.payload = payload;
    tlm::tlm_phase tlm_phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay = sc_core::sc_time::from_value(request_ps_);
    asked_.push_back(index);
    const tlm::tlm_sync_enum answer = dram_initiator->nb_transport_fw(*payload, tlm_phase, delay);
    s_.refused = answer == tlm::TLM_ACCEPTED;
    SIM_CHECK(answer != tlm::TLM_COMPLETED, "the DRAM refused a burst of " << burst.data.size() << " bytes at "
                                                                           << burst.address << ": "
                                                                           << payload->get_response_string());
    ++stats_.num_bursts;
    sent_before_ = cycle() + 1;
    sent_address_ = burst.address;
    sent_bytes_ = burst.data.size();
    (command().to_chip ? stats_.read_bytes : stats_.written_bytes) += burst.data.size();
}

void Dma::request_port() {
    const Cycle start = cycle() + kGrantEdges;
    if (s_.requested || (s_.moving && s_.move_end > start)) {
        return;
    }
    if (s_.tokens_pending) {
        if (s_.moving) {
            return;
        }
        PortRequest request;
        request.first_client = static_cast<std::uint16_t>(config_.client);
        request.cycles = static_cast<Cycle>(command().words / command().row_words);
        request.add(config_.program->sample.ram, 1);
        s_.requested = true;
        request_out->post(request);
        ++stats_.num_requests;
        return;
    }
    std::size_t index = 0;
    if (command().to_chip) {
        if (arrived_.empty() || arrived_.front().at > start) {
            return;
        }
        index = arrived_.front().burst;
    } else {
        if (s_.next_move >= bursts_.size() || s_.in_flight >= static_cast<std::size_t>(config_.dma.outstanding)) {
            return;
        }
        index = s_.next_move;
        ++s_.in_flight;
    }
    PortRequest request;
    request.first_client = static_cast<std::uint16_t>(config_.client);
    request.cycles = move_cycles(bursts_[index], nullptr, nullptr);
    request.add(command().chip.ram, 1);
    s_.requested = true;
    request_out->post(request);
    ++stats_.num_requests;
}

void Dma::finish_kernel() {
    s_.active = false;
    stats_.cycles += kernel_cycles_;
    KernelDone done;
    done.kernel = s_.start.kernel;
    done.cycles = kernel_cycles_;
    done_out->post(done);
}

// Moving words is work; then a port that is awaited, data on the way, and the adapters' latency.
void Dma::count(Cycle n, Cycle until, bool moves) {
    if (moves) {
        counted_as_ = Activity::Busy;
    } else if (s_.requested) {
        counted_as_ = Activity::Port;
    } else if (s_.refused || (s_.in_flight > 0 && arrived_.empty() && to_send_.empty())) {
        counted_as_ = Activity::Dram;
    } else {
        counted_as_ = Activity::Pipeline;
    }
    counted_until_ = until;
    kernel_cycles_.of(counted_as_) += n;
}

// visit(cost, cycle of the burst at which it begins) for each AXI beat of a port burst.
template <typename Visit>
std::uint64_t Dma::for_each_beat(const Burst& burst, AccessCounter& counter, const Visit& visit) const {
    const AccessTable& chip = command().chip;
    const RamGeometry& ram = config_.program->rams[index_of(chip.ram)];
    const std::int64_t beat_words = std::max<std::int64_t>(1, config_.dma.beat_bytes / kWordBytes);
    std::uint64_t cycles = 0;
    for (std::int64_t i = 0; i < burst.words; i += beat_words) {
        const std::int64_t count = std::min(beat_words, burst.words - i);
        const std::int64_t begin = burst.first_word + i;
        const AccessCost cost = counter.cost(ram, chip.base, chip.col, begin, begin + count);
        visit(cost, cycles);
        cycles += static_cast<std::uint64_t>(cost.cycles);
    }
    return cycles;
}

std::uint64_t Dma::move_cycles(const Burst& burst, std::int64_t* rows, std::int64_t* conflicts) {
    return for_each_beat(burst, counter_, [&](const AccessCost& cost, std::uint64_t) {
        if (rows != nullptr) {
            *rows += cost.rows;
            *conflicts += cost.conflict_cycles();
        }
    });
}

Dma::Observation Dma::observe() const {
    Observation seen;
    seen.active = s_.active;
    seen.in_flight = s_.in_flight;
    seen.completed = s_.completed;
    seen.sends = sent_before_ == cycle() + 1;
    seen.address = sent_address_;
    seen.bytes = sent_bytes_;
    seen.burst = {kOperandBurst, s_.move_begin, s_.move_end};
    if (cycle() < counted_until_) {
        seen.activity = counted_as_;
    }
    if (s_.active) {
        seen.kernel = s_.start.kernel;
        seen.to_chip = command().to_chip;
    }
    return seen;
}

void Dma::list_burst(AccessCounter& counter, BurstAccesses& accesses) const {
    accesses.clear();
    if (s_.token_burst) {
        list_token_reads(*config_.program, command().first_position, command().words / command().row_words, counter,
                         accesses);
        return;
    }
    const RamId id = command().chip.ram;
    (void)for_each_beat(bursts_[s_.moving_burst], counter, [&](const AccessCost&, std::uint64_t at) {
        accesses.add(counter, config_.program->rams[index_of(id)], id, static_cast<std::int64_t>(at), 0,
                     command().to_chip);
    });
    accesses.sort();
}

std::string Dma::state_text() const {
    if (!s_.active) {
        return "idle";
    }
    return config_.program->kernels[s_.start.kernel].name + ": " + std::to_string(s_.completed) + "/" +
           std::to_string(bursts_.size()) + " bursts" + (s_.requested ? ", waits for a port" : "") +
           (s_.in_flight > 0 ? ", " + std::to_string(s_.in_flight) + " in flight" : "");
}

}  // namespace contraflow
