// The DRAM controller behind its TLM-2.0 socket: exact response times, refresh, errors, data.
#include <catch2/catch.hpp>

#include <tlm_utils/simple_initiator_socket.h>

#include <memory>
#include <vector>

#include "dram/dram_controller.h"

using namespace contraflow;

namespace {

class Initiator : public sc_core::sc_module, public tlm::tlm_mm_interface {
public:
    tlm_utils::simple_initiator_socket<Initiator> socket{"socket"};
    tlm_utils::simple_initiator_socket<Initiator> host{"host"};
    std::vector<std::uint64_t> done_ps;
    std::vector<std::uint64_t> late_end_ps;  // of requests that were not taken at once

    explicit Initiator(const sc_core::sc_module_name& name) : sc_core::sc_module(name) {
        socket.register_nb_transport_bw(this, &Initiator::respond);
        SC_HAS_PROCESS(Initiator);
        SC_METHOD(send);
        sensitive << send_event_;
        dont_initialize();
    }

    struct Request {
        std::uint64_t ps = 0, address = 0;
        unsigned bytes = 64;
        bool write = false;
    };
    void schedule(const std::vector<Request>& requests) {
        requests_ = requests;
        send_event_.notify(sc_core::sc_time::from_value(requests.front().ps));
    }
    tlm::tlm_sync_enum send_one(const Request& request, tlm::tlm_response_status* status = nullptr) {
        payloads_.push_back(std::make_unique<tlm::tlm_generic_payload>(this));
        buffers_.emplace_back(request.bytes, static_cast<unsigned char>(7));
        tlm::tlm_generic_payload& payload = *payloads_.back();
        payload.acquire();
        payload.set_command(request.write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
        payload.set_address(request.address);
        payload.set_data_ptr(buffers_.back().data());
        payload.set_data_length(request.bytes);
        payload.set_streaming_width(request.bytes);
        tlm::tlm_phase phase = tlm::BEGIN_REQ;
        sc_core::sc_time delay;
        const tlm::tlm_sync_enum answer = socket->nb_transport_fw(payload, phase, delay);
        if (status != nullptr) {
            *status = payload.get_response_status();
        }
        return answer;
    }
    void free(tlm::tlm_generic_payload*) override {}
    std::vector<std::vector<unsigned char>> buffers_;

private:
    tlm::tlm_sync_enum respond(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase, sc_core::sc_time& delay) {
        if (phase == tlm::END_REQ) {
            late_end_ps.push_back(sc_core::sc_time_stamp().value());
            return tlm::TLM_ACCEPTED;
        }
        done_ps.push_back((sc_core::sc_time_stamp() + delay).value());
        payload.release();
        return tlm::TLM_COMPLETED;
    }
    void send() {
        send_one(requests_[next_]);
        if (++next_ < requests_.size()) {
            next_trigger(sc_core::sc_time::from_value(requests_[next_].ps - sc_core::sc_time_stamp().value()));
        }
    }

    std::vector<Request> requests_;
    std::size_t next_ = 0;
    std::vector<std::unique_ptr<tlm::tlm_generic_payload>> payloads_;
    sc_core::sc_event send_event_;
};

// DDR4-2400's cycles at 1 GHz, 1 MB, no time on the way.
DramConfig memory_of_1ghz() {
    DramConfig config;
    config.clock_hz = 1'000'000'000;
    config.rows = 8;
    config.channel_bytes = 1 << 20;
    config.controller_ns = 0;
    config.nREFI = 5000;
    return config;
}

constexpr std::uint64_t kOpen = 17 + 17 + 4;  // nRCD + nCL + BL/2: after the first command
constexpr std::uint64_t kHit = 17 + 4;

struct Bench {
    ClockDomain clk;
    DramController dram;
    Initiator initiator{"initiator"};

    explicit Bench(RunMode run_mode, const DramConfig& config = memory_of_1ghz())
        : clk("clk", config.clock_hz, run_mode), dram("dram", clk, config) {
        initiator.socket.bind(dram.dma_target);
        initiator.host.bind(dram.host_target);
    }
};

}  // namespace

TEST_CASE("a read is done 1 + nRCD + nCL + BL/2 cycles after the edge that takes it") {
    Bench bench(RunMode::Clocked);
    bench.initiator.schedule({{2'000'500, 0}});
    sc_core::sc_start(sc_core::sc_time(4, sc_core::SC_US));
    // Sent at 2000.5 ns, taken at edge 2001, its first command at 2002.
    CHECK(bench.initiator.done_ps == std::vector<std::uint64_t>{(2002 + kOpen) * 1000});
    CHECK(bench.dram.stats().num_reads == 1);
    CHECK(bench.dram.stats().read_bytes == 64);
    CHECK(bench.dram.channel_stats(0).row_misses == 1);
}

TEST_CASE("a request sent at an edge is taken by the next one, controller_ns later") {
    DramConfig config = memory_of_1ghz();
    config.controller_ns = 57;
    Bench bench(RunMode::Leap, config);
    bench.initiator.schedule({{2'000'000, 0}});
    sc_core::sc_start(sc_core::sc_time(4, sc_core::SC_US));
    // Half of 57 ns before: taken at the first edge after 2028.5. The other half is in the response's delay.
    CHECK(bench.initiator.done_ps == std::vector<std::uint64_t>{(2030 + kOpen) * 1000 + 28'500});
}

TEST_CASE("a long transaction is served burst by burst") {
    {
        Bench bench(RunMode::Leap);
        bench.initiator.schedule({{2'000'000, 0, 512}, {2'000'100, 4096, 64}, {2'200'000, 0, 64, true}});
        sc_core::sc_start(sc_core::sc_time(4, sc_core::SC_US));
        // Mapping B: eight bursts over four bank groups, one activate each, nRRD_S apart; the two of a group nCCD_L
        // apart at least, all nCCD_S; the ninth is a hit of the first group's row.
        CHECK(bench.initiator.done_ps == std::vector<std::uint64_t>{(2002 + kOpen + 7 * 4) * 1000,
                                                                    (2002 + kOpen + 8 * 4) * 1000,
                                                                    (2202 + 12 + 4) * 1000});
        const DramStats& stats = bench.dram.channel_stats(0);
        CHECK(stats.busy_cycles == 10 * 4);
        CHECK(stats.row_misses == 4);
        CHECK(stats.row_hits == 6);
        CHECK(stats.read_bytes == 512 + 64);
        CHECK(stats.written_bytes == 64);
    }
}

// Two transactions fill the port at 2000 ns; the bursts of the first enter the queues at edges 2001 to 2008. Times of
// the END_REQ of a third if it is not taken at once.
std::vector<std::uint64_t> late_ends(std::uint64_t third_ps, RunMode run_mode) {
    DramConfig config = memory_of_1ghz();
    config.port_queue = 2;
    Bench bench(run_mode, config);
    bench.initiator.schedule({{2'000'000, 0, 512}, {2'000'100, 512, 512}, {third_ps, 1024, 512}});
    sc_core::sc_start(sc_core::sc_time(4, sc_core::SC_US));
    CHECK(bench.initiator.done_ps.size() == 3);
    return bench.initiator.late_end_ps;
}

TEST_CASE("a full port answers END_REQ when a transaction's last burst has entered the queues") {
    CHECK(late_ends(2'004'500, RunMode::Leap) == std::vector<std::uint64_t>{2'008'000});
}

TEST_CASE("a full port answers END_REQ at the same edge under clocked") {
    CHECK(late_ends(2'004'500, RunMode::Clocked) == std::vector<std::uint64_t>{2'008'000});
}

TEST_CASE("room at the port is seen one edge later by a request of the same time") {
    CHECK(late_ends(2'008'000, RunMode::Leap) == std::vector<std::uint64_t>{2'009'000});
}

TEST_CASE("a port with room again takes a request at once") {
    CHECK(late_ends(2'008'500, RunMode::Leap).empty());
}

TEST_CASE("a read that arrives when a refresh falls due waits for it") {
    Bench bench(RunMode::Clocked);
    bench.initiator.schedule({{4'600'000, 0}, {4'999'000, 256}});
    sc_core::sc_start(sc_core::sc_time(6, sc_core::SC_US));
    // Taken at edge 5000; precharge 5000, refresh 5017, activate 5437.
    CHECK(bench.initiator.done_ps.back() == (5000 + 17 + 420 + kOpen) * 1000);
    CHECK(bench.dram.channel_stats(0).stall_refresh_cycles == 17 + 420);
    CHECK(bench.dram.channel_stats(0).refreshes() == 1);
}

TEST_CASE("channels take turns and serve side by side") {
    DramConfig config = memory_of_1ghz();
    config.channels = 2;
    Bench bench(RunMode::Leap, config);
    bench.initiator.schedule({{2'000'000, 256, 512}});
    sc_core::sc_start(sc_core::sc_time(4, sc_core::SC_US));
    CHECK(bench.initiator.done_ps == std::vector<std::uint64_t>{(2002 + kOpen + 3 * 4) * 1000});
    CHECK(bench.dram.channel_stats(0).read_bytes == 256);
    CHECK(bench.dram.channel_stats(1).read_bytes == 256);
}

TEST_CASE("what was written is read back, also through the host's side") {
    Bench bench(RunMode::Leap);
    bench.initiator.schedule({{1'000'000, 4090, 64, true}, {2'000'000, 4090, 64}});
    sc_core::sc_start(sc_core::sc_time(10, sc_core::SC_US));
    CHECK(bench.initiator.buffers_[1] == std::vector<unsigned char>(64, 7));
    std::vector<unsigned char> bytes(64, 0);
    tlm::tlm_generic_payload payload;
    payload.set_command(tlm::TLM_READ_COMMAND);
    payload.set_address(4090);
    payload.set_data_ptr(bytes.data());
    payload.set_data_length(64);
    CHECK(bench.initiator.host->transport_dbg(payload) == 64);
    CHECK(bytes == std::vector<unsigned char>(64, 7));
}

TEST_CASE("an address beyond the memory is an address error, an empty one a burst error") {
    Bench bench(RunMode::Leap);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
    tlm::tlm_response_status status = tlm::TLM_OK_RESPONSE;
    CHECK(bench.initiator.send_one({0, (1 << 20) - 32, 64}, &status) == tlm::TLM_COMPLETED);
    CHECK(status == tlm::TLM_ADDRESS_ERROR_RESPONSE);
    CHECK(bench.initiator.send_one({0, ~std::uint64_t{0} - 3, 64}, &status) == tlm::TLM_COMPLETED);
    CHECK(status == tlm::TLM_ADDRESS_ERROR_RESPONSE);
    CHECK(bench.initiator.send_one({0, 0, 0}, &status) == tlm::TLM_COMPLETED);
    CHECK(status == tlm::TLM_BURST_ERROR_RESPONSE);
}
