// The interconnect's rules: all ports or none, in order of arrival, no gap between bursts, nobody starves.
#include <catch2/catch.hpp>

#include <vector>

#include "interconnect/interconnect.h"

using namespace contraflow;

namespace {

// Posts scripted requests and notes the edges of its grants.
class Client : public Block {
public:
    Mailbox<PortGrant> grants{*this};
    sc_core::sc_port<MailboxIf<PortRequest>> out{"out"};
    std::vector<Cycle> granted;

    struct Order {
        Cycle at = 0;
        std::vector<std::uint32_t> rams;
        std::uint64_t cycles = 1;
    };

    Client(const sc_core::sc_module_name& name, ClockDomain& clock, std::uint16_t number, std::vector<Order> orders)
        : Block(name, clock), number_(number), orders_(std::move(orders)) {}

private:
    std::uint16_t number_;
    std::vector<Order> orders_;
    std::size_t next_ = 0;

    void edge() override {
        while (grants.ready()) {
            (void)grants.take();
            granted.push_back(cycle());
        }
        while (next_ < orders_.size() && orders_[next_].at == cycle()) {
            PortRequest request;
            request.first_client = number_;
            request.cycles = orders_[next_].cycles;
            for (const std::uint32_t ram : orders_[next_].rams) {
                request.add(RamId{ram}, 1);
            }
            out->post(request);
            ++next_;
        }
    }
    Cycle next_event() const override { return next_ < orders_.size() ? orders_[next_].at - cycle() : kNever; }
    void advance(Cycle) override {}
};

std::vector<std::vector<Cycle>> run(RunMode run_mode, int ports, const std::vector<std::vector<Client::Order>>& orders,
                                    Interconnect::Stats* stats = nullptr) {
    static std::vector<RamGeometry> rams(3);
    for (RamGeometry& ram : rams) {
        ram.ports = ports;
    }
    ClockDomain clk("clk", 100'000'000, run_mode);
    Interconnect interconnect("interconnect", clk, rams, orders.size());
    std::vector<std::unique_ptr<Client>> clients;
    for (std::size_t i = 0; i < orders.size(); ++i) {
        clients.push_back(std::make_unique<Client>(("client" + std::to_string(i)).c_str(), clk,
                                                   static_cast<std::uint16_t>(i), orders[i]));
        clients[i]->out.bind(*interconnect.request_in[i]);
        interconnect.grant_out[i]->bind(clients[i]->grants);
    }
    sc_core::sc_start(sc_core::sc_time(2, sc_core::SC_US));
    interconnect.catch_up(199);
    std::vector<std::vector<Cycle>> granted;
    for (const auto& client : clients) {
        granted.push_back(client->granted);
    }
    if (stats != nullptr) {
        *stats = interconnect.stats();
    }
    return granted;
}

using Granted = std::vector<std::vector<Cycle>>;

}  // namespace

TEST_CASE("a request posted at edge 1 is granted at 2 and seen at 3, not earlier") {
    CHECK(run(RunMode::Clocked, 2, {{{1, {0}, 5}}}) == Granted{{3}});
}

TEST_CASE("the third burst waits for the second bank port and follows it without a gap") {
    // Bursts of 10 from edge 3 and of 4 from edge 4 hold both ports; the third starts right after the shorter one.
    const Granted granted = run(RunMode::Clocked, 2, {{{1, {0}, 10}}, {{2, {0}, 4}}, {{2, {0}, 1}}});
    CHECK(granted == Granted{{3}, {4}, {8}});
}

TEST_CASE("a burst gets all its memories or none") {
    // Client 1 wants both memories; memory 0 is held at edges 3 to 12; memory 1 stays free meanwhile.
    CHECK(run(RunMode::Clocked, 1, {{{1, {0}, 10}}, {{2, {0, 1}, 2}}}) == Granted{{3}, {13}});
}

TEST_CASE("a younger request does not overtake one that waits for the same memory") {
    // Client 1 waits for memories 0 and 1; client 2 wants 1 only, which is free, but came later.
    const Granted granted = run(RunMode::Clocked, 1, {{{1, {0}, 10}}, {{2, {0, 1}, 2}}, {{3, {1}, 1}}});
    CHECK(granted == Granted{{3}, {13}, {15}});
}

TEST_CASE("a younger request passes an older one when they share no memory") {
    const Granted granted = run(RunMode::Clocked, 1, {{{1, {0}, 10}}, {{2, {0}, 2}}, {{3, {1}, 1}}});
    CHECK(granted == Granted{{3}, {13}, {5}});
}

TEST_CASE("of requests of one edge the lower client is first") {
    CHECK(run(RunMode::Clocked, 1, {{{1, {0}, 3}}, {{1, {0}, 3}}, {{1, {0}, 3}}}) == Granted{{3}, {6}, {9}});
}

TEST_CASE("leap grants at the same edges and counts the same") {
    const std::vector<std::vector<Client::Order>> orders{
        {{1, {0}, 10}, {20, {2, 1}, 30}}, {{2, {0, 1}, 2}, {21, {2}, 7}}, {{3, {1}, 1}, {22, {0, 2}, 9}}};
    Interconnect::Stats stats;
    const Granted granted = run(RunMode::Leap, 1, orders, &stats);
    CHECK(granted == Granted{{3, 22}, {13, 52}, {15, 59}});
    CHECK(stats.num_requests == 6);
    CHECK(stats.num_grants == 6);
    CHECK(stats.busy_cycles == 6);
    // Edges with a waiting request and no grant: 3 to 11 and 13 for memories 0 and 1, 22 to 57 behind the long burst.
    CHECK(stats.stall_port_cycles == 9 + 1 + 29 + 6);
}

TEST_CASE("the same orders, clocked") {
    const std::vector<std::vector<Client::Order>> orders{
        {{1, {0}, 10}, {20, {2, 1}, 30}}, {{2, {0, 1}, 2}, {21, {2}, 7}}, {{3, {1}, 1}, {22, {0, 2}, 9}}};
    Interconnect::Stats stats;
    const Granted granted = run(RunMode::Clocked, 1, orders, &stats);
    CHECK(granted == Granted{{3, 22}, {13, 52}, {15, 59}});
    CHECK(stats.busy_cycles == 6);
    CHECK(stats.stall_port_cycles == 9 + 1 + 29 + 6);
}
