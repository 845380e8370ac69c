// How fast the DRAM is simulated, behind its socket as in the machine: memory cycles and bursts per second of the host.
// DDR4-2400: sequential reads and random traffic that keep the channel busy, and one read per 1000 cycles.
#include <fmt/format.h>
#include <tlm_utils/simple_initiator_socket.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "contraflow/load_config.h"
#include "dram/dram_controller.h"

namespace {

using namespace contraflow;

enum class Load { Sequential, Random, Paced };

// Keeps 64 bursts in flight (Sequential, Random) or sends one per 1000 memory cycles (Paced).
class Requester : public sc_core::sc_module, public tlm::tlm_mm_interface {
public:
    tlm_utils::simple_initiator_socket<Requester> socket{"socket"};
    tlm_utils::simple_initiator_socket<Requester> host{"host"};

    Requester(const sc_core::sc_module_name& name, const DramConfig& config, Load load, std::uint64_t count)
        : sc_core::sc_module(name),
          load_(load),
          left_(count),
          burst_bytes_(static_cast<unsigned>(config.burst_bytes())),
          pause_(1000.0 / static_cast<double>(config.clock_hz), sc_core::SC_SEC),
          data_(burst_bytes_) {
        socket.register_nb_transport_bw(this, &Requester::respond);
        for (int i = 0; i < (load == Load::Paced ? 1 : 64); ++i) {
            payloads_.push_back(std::make_unique<tlm::tlm_generic_payload>(this));
            free_.push_back(payloads_.back().get());
        }
        SC_HAS_PROCESS(Requester);
        SC_METHOD(send);
        sensitive << send_event_;
        dont_initialize();
    }

    void start() { send_event_.notify(sc_core::SC_ZERO_TIME); }
    void free(tlm::tlm_generic_payload* payload) override { free_.push_back(payload); }
    [[nodiscard]] bool done() const { return left_ == 0 && free_.size() == payloads_.size(); }

private:
    static constexpr std::uint64_t kBursts = 1U << 20;  // 64 MB are used

    tlm::tlm_sync_enum respond(tlm::tlm_generic_payload& payload, tlm::tlm_phase&, sc_core::sc_time&) {
        payload.release();
        if (left_ == 0 && done()) {
            sc_core::sc_pause();
        } else if (load_ != Load::Paced) {
            send_event_.notify(sc_core::SC_ZERO_TIME);
        }
        return tlm::TLM_COMPLETED;
    }

    void send() {
        for (; !free_.empty() && left_ > 0; --left_) {
            tlm::tlm_generic_payload& payload = *free_.back();
            free_.pop_back();
            send_one(payload);
        }
        if (load_ == Load::Paced && left_ > 0) {
            send_event_.notify(pause_);
        }
    }

    void send_one(tlm::tlm_generic_payload& payload) {
        const bool random = load_ == Load::Random;
        next_ = random ? random_() % kBursts : (next_ + 1) % kBursts;
        payload.acquire();
        payload.set_command(random && random_() % 2 == 0 ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
        payload.set_address(next_ * burst_bytes_);
        payload.set_data_ptr(data_.data());
        payload.set_data_length(burst_bytes_);
        payload.set_streaming_width(burst_bytes_);
        payload.set_byte_enable_ptr(nullptr);
        payload.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
        tlm::tlm_phase phase = tlm::BEGIN_REQ;
        sc_core::sc_time delay;
        (void)socket->nb_transport_fw(payload, phase, delay);
    }

    Load load_;
    std::uint64_t left_;
    unsigned burst_bytes_;
    sc_core::sc_time pause_;
    std::vector<unsigned char> data_;
    std::vector<std::unique_ptr<tlm::tlm_generic_payload>> payloads_;
    std::vector<tlm::tlm_generic_payload*> free_;
    std::uint64_t next_ = 0;
    std::mt19937_64 random_{1};
    sc_core::sc_event send_event_;
};

// A memory with its requester; they sleep until their turn.
struct Case {
    const char* what;
    std::uint64_t requests;
    ClockDomain clock;
    DramController dram;
    Requester requester;

    Case(const char* name, RunMode run_mode, const DramConfig& config, Load load, std::uint64_t count)
        : what(name),
          requests(count),
          clock(sc_core::sc_gen_unique_name("clock"), config.clock_hz, run_mode),
          dram(sc_core::sc_gen_unique_name("dram"), clock, config),
          requester(sc_core::sc_gen_unique_name("requester"), config, load, count) {
        requester.socket.bind(dram.dma_target);
        requester.host.bind(dram.host_target);
    }

    void run(std::int64_t clock_hz) {
        const double begin = sc_core::sc_time_stamp().to_seconds();
        const auto start = std::chrono::steady_clock::now();
        requester.start();
        sc_core::sc_start();
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        const double cycles = (sc_core::sc_time_stamp().to_seconds() - begin) * static_cast<double>(clock_hz);
        fmt::print("{:<36} {:12.0f} {:10.2f} {:12.3f}\n", what, cycles, cycles / seconds / 1e6,
                   static_cast<double>(requests) / seconds / 1e6);
    }
};

}  // namespace

int sc_main(int, char*[]) {
    DramConfig config = load_config("", {{"dram.file", "memories/ddr4-2400.ini"}}).config.dram;
    config.port_queue = 256;  // the queues behind it are what is full
    std::vector<std::unique_ptr<Case>> cases;
    const auto add = [&](auto... arguments) { cases.push_back(std::make_unique<Case>(arguments...)); };
    add("sequential reads, clocked", RunMode::Clocked, config, Load::Sequential, 1'000'000U);
    add("sequential reads, leap", RunMode::Leap, config, Load::Sequential, 1'000'000U);
    add("random, half writes, clocked", RunMode::Clocked, config, Load::Random, 400'000U);
    add("random, half writes, leap", RunMode::Leap, config, Load::Random, 400'000U);
    add("a read per 1000 cycles, leap", RunMode::Leap, config, Load::Paced, 400'000U);
    fmt::print("\n{:<36} {:>12} {:>10} {:>12}\n", "DRAM alone, DDR4-2400", "cycles", "Mcycles/s", "Mrequests/s");
    for (const std::unique_ptr<Case>& each : cases) {
        each->run(config.clock_hz);
    }
    return 0;
}

int main(int argc, char* argv[]) {
    setenv("SC_COPYRIGHT_MESSAGE", "DISABLE", 0);
    return sc_core::sc_elab_and_sim(argc, argv);
}
