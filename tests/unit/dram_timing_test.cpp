// A DRAM channel's cycles against closed forms of its memory file, its commands against the constraints, and what must
// hold for any traffic.
#include <catch2/catch.hpp>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "contraflow/load_config.h"
#include "dram_trace/replay.h"
#include "support/command_rules.h"

using namespace contraflow;
using namespace contraflow::test;

namespace {

const std::vector<std::string> kMemories{"ddr4-2400",   "ddr4-3200", "ddr3-1600",  "hbm2-pc",
                                         "hbm2-legacy", "hbm2-u50",  "lpddr4-3200"};

DramConfig memory(const std::string& name, const std::vector<std::pair<std::string, std::string>>& keys = {}) {
    std::vector<std::pair<std::string, std::string>> overrides = keys;
    overrides.emplace_back("dram.file", std::string(CONTRAFLOW_SOURCE_DIR) + "/configs/memories/" + name + ".ini");
    return load_config("", overrides).config.dram;
}

std::uint64_t place(const DramConfig& config, std::uint32_t group, std::uint32_t bank, std::uint32_t row,
                    std::uint32_t column) {
    return AddressMapping(config).encode(
        {0, group % static_cast<std::uint32_t>(config.bank_groups), bank, row, column});
}

TraceRequest request(Cycle cycle, std::uint64_t address, bool write = false) {
    TraceRequest request;
    request.cycle = cycle;
    request.address = address;
    request.write = write;
    return request;
}

Cycle latency_of_last(const DramConfig& config, const std::vector<TraceRequest>& requests) {
    const ReplayedRequest last = replay(config, requests).requests.back();
    return last.done - last.accepted;
}

// Parts of the closed forms, in cycles from first cycle to first cycle.
struct Parts {
    explicit Parts(const DramConfig& c)
        : read(static_cast<Cycle>(c.column_cycles - 1 + c.nCL + c.nDQSCK + c.burst_length / 2)),
          write(static_cast<Cycle>(c.column_cycles - 1 + c.nCWL + c.nDQSS + c.nDQS2DQ + c.burst_length / 2)),
          open(static_cast<Cycle>(c.nRCD + c.act_cycles - c.column_cycles)),
          close(static_cast<Cycle>(c.nRP + c.pre_cycles - c.act_cycles)) {}
    Cycle read, write;  // RD, WR to the cycle after the last beat
    Cycle open, close;  // ACT to RD, PRE to ACT
};

std::vector<TraceRequest> random_requests(const DramConfig& config, std::size_t count, std::uint32_t seed,
                                          double writes, Cycle pause) {
    std::mt19937_64 random(seed);
    const auto bursts = static_cast<std::uint64_t>(config.capacity_bytes() / config.burst_bytes());
    std::vector<TraceRequest> requests;
    Cycle cycle = 0;
    std::uint64_t burst = 0;
    for (std::size_t i = 0; i < count; ++i) {
        // Runs of neighbours and jumps, with some addresses close enough to meet again.
        burst = random() % 4 != 0 ? (burst + 1) % bursts : random() % (random() % 2 != 0 ? bursts : 4096);
        requests.push_back(request(cycle, burst * static_cast<std::uint64_t>(config.burst_bytes()),
                                   static_cast<double>(random() % 1000) < writes * 1000));
        cycle += pause == 0 ? 0 : random() % pause;
    }
    return requests;
}

std::vector<ListedCommand> commands_of(const DramConfig& config, const std::vector<TraceRequest>& requests) {
    std::vector<ListedCommand> list;
    const auto banks = static_cast<std::size_t>(config.banks);
    const auto groups = static_cast<std::size_t>(config.bank_groups);
    (void)replay(config, requests, [&](const ReplayedCommand& command) {
        const DramChannel::IssuedCommand& issued = command.issued;
        list.push_back({issued.cycle, issued.command, issued.rank, issued.bank / banks % groups, issued.bank % banks,
                        issued.request == nullptr ? 0 : issued.request->row});
    });
    return list;
}

}  // namespace

TEST_CASE("a read takes what the state of its bank asks for, on every memory and mapping") {
    for (const std::string& name : kMemories) {
        for (const char* mapping : {"A", "B"}) {
            CAPTURE(name, mapping);
            const DramConfig config = memory(name, {{"dram.mapping", mapping}});
            const Parts parts(config);
            const TraceRequest first = request(0, place(config, 0, 0, 5, 0));
            CHECK(latency_of_last(config, {first}) == 1 + parts.open + parts.read);
            CHECK(latency_of_last(config, {first, request(300, place(config, 0, 0, 5, 1))}) == 1 + parts.read);
            CHECK(latency_of_last(config, {first, request(300, place(config, 0, 0, 6, 0))}) ==
                  1 + parts.close + parts.open + parts.read);
            const auto due = static_cast<Cycle>(config.nREFI);
            const auto refresh =
                static_cast<Cycle>(config.nRPab + config.pre_cycles - 1 + config.nRFC - config.act_cycles + 1);
            CHECK(latency_of_last(config, {request(due - 400, place(config, 0, 0, 5, 0)),
                                           request(due, place(config, 0, 0, 5, 1))}) ==
                  refresh + parts.open + parts.read);
        }
    }
}

TEST_CASE("backlogs take their closed forms, on every memory") {
    for (const std::string& name : kMemories) {
        CAPTURE(name);
        const DramConfig config = memory(name, {{"dram.mapping", "A"}});
        const Parts parts(config);
        const std::size_t n = 30;
        std::vector<TraceRequest> row;
        std::vector<TraceRequest> rows;
        std::vector<TraceRequest> writes;
        for (std::uint32_t i = 0; i < n; ++i) {
            row.push_back(request(0, place(config, 0, 0, 7, i)));
            rows.push_back(request(0, place(config, 0, 0, 100 + i, 0)));
            writes.push_back(request(0, place(config, 0, 0, 100 + i, 0), true));
        }
        CHECK(replay(config, row).total_cycles ==
              1 + parts.open + (n - 1) * static_cast<Cycle>(config.nCCD_L) + parts.read);
        CHECK(replay(config, rows).total_cycles ==
              1 + (n - 1) * static_cast<Cycle>(config.nRC) + parts.open + parts.read);
        const auto turn = static_cast<Cycle>(config.nRCDW + config.nCWL + config.nDQSS + config.burst_length / 2 +
                                             config.nWR + config.nRP);
        const auto open = static_cast<Cycle>(config.nRCDW + config.act_cycles - config.column_cycles);
        CHECK(replay(config, writes).total_cycles == 1 + (n - 1) * turn + open + parts.write);
    }
}

TEST_CASE("the traces of the project take what their README says on DDR4-2400") {
    const DramConfig config = memory("ddr4-2400");
    const auto last = [&](const std::string& name) {
        return latency_of_last(config,
                               read_request_trace(std::string(CONTRAFLOW_SOURCE_DIR) + "/traces/dram/" + name + ".trc",
                                                  static_cast<std::uint64_t>(config.capacity_bytes()), config.name));
    };
    CHECK(last("idle_read") == 39);
    CHECK(last("row_hit") == 22);
    CHECK(last("row_conflict") == 56);
    CHECK(last("refresh") == 475);
}

TEST_CASE("no command breaks a constraint, under any policy") {
    std::uint32_t seed = 1;
    for (const std::string& name : kMemories) {
        for (const char* policy : {"open", "closed", "timeout"}) {
            for (const char* scheduler : {"fcfs", "frfcfs"}) {
                CAPTURE(name, policy, scheduler);
                const DramConfig config = memory(name, {{"dram.page_policy", policy},
                                                        {"dram.scheduler", scheduler},
                                                        {"dram.mapping", seed % 2 != 0 ? "A" : "B"},
                                                        {"dram.write_queue", seed % 3 != 0 ? "64" : "8"}});
                const auto requests = random_requests(config, 4000, seed, 0.4, seed % 2 != 0 ? 0 : 60);
                CHECK(broken_rule(config, commands_of(config, requests)) == "");
                ++seed;
            }
        }
    }
}

TEST_CASE("two ranks keep their constraints and share the data bus") {
    DramConfig config = memory("ddr4-2400");
    config.ranks = 2;
    config.channel_bytes *= 2;
    config.mapping = {
        {DramField::Row}, {DramField::Bank}, {DramField::Column}, {DramField::Rank}, {DramField::BankGroup}};
    const auto requests = random_requests(config, 8000, 5, 0.5, 0);
    CHECK(broken_rule(config, commands_of(config, requests)) == "");
    const DramStats stats = replay(config, requests).sum();
    CHECK(stats.reads + stats.writes == requests.size());
}

TEST_CASE("every request is served once, and the figures of the channels add up") {
    for (const char* channels : {"1", "3", "4"}) {
        const DramConfig config = memory("hbm2-u50", {{"dram.channels", channels}});
        const auto requests = random_requests(config, 5000, 9, 0.3, 0);
        const Replay replayed = replay(config, requests);
        const DramStats sum = replayed.sum();
        const auto writes = static_cast<std::uint64_t>(
            std::count_if(requests.begin(), requests.end(), [](const TraceRequest& r) { return r.write; }));
        CHECK(replayed.channels.size() == static_cast<std::size_t>(config.channels));
        CHECK(sum.writes == writes);
        CHECK(sum.reads == requests.size() - writes);
        CHECK(sum.row_hits + sum.row_misses == requests.size());
        CHECK(sum.count(DramCommand::Rd) == sum.reads);
        CHECK(sum.read_bytes == sum.reads * static_cast<std::uint64_t>(config.burst_bytes()));
        CHECK(sum.latency.total() == sum.reads);
        for (std::size_t i = 0; i < requests.size(); ++i) {
            CHECK(replayed.requests[i].accepted >= requests[i].cycle);
            CHECK(replayed.requests[i].done > replayed.requests[i].accepted);
        }
        for (const DramStats& channel : replayed.channels) {
            CHECK(channel.busy_cycles + channel.stall_refresh_cycles + channel.stall_timing_cycles <=
                  replayed.total_cycles);
            CHECK(channel.reads + channel.writes > 0);
        }
    }
}

TEST_CASE("reads and writes of one burst keep their order") {
    const DramConfig config = memory("ddr4-2400");
    std::vector<TraceRequest> requests;
    for (std::uint32_t i = 0; i < 200; ++i) {
        requests.push_back(request(0, place(config, i % 4, 0, i % 3, i % 5), i % 3 == 0));
    }
    const Replay replayed = replay(config, requests);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        for (std::size_t j = i + 1; j < requests.size(); ++j) {
            if (requests[i].address == requests[j].address && (requests[i].write || requests[j].write)) {
                CHECK(replayed.requests[i].done < replayed.requests[j].done);
            }
        }
    }
}

TEST_CASE("a sequence is never slower than its shuffled copy, and time never falls as bandwidth falls") {
    for (const std::string& name : kMemories) {
        CAPTURE(name);
        const DramConfig config = memory(name);
        std::vector<TraceRequest> sequence;
        for (std::uint64_t i = 0; i < 4096; ++i) {
            sequence.push_back(request(0, i * static_cast<std::uint64_t>(config.burst_bytes())));
        }
        const Cycle straight = replay(config, sequence).total_cycles;
        Cycle before = 0;
        for (int slower = 0; slower < 4; ++slower) {
            DramConfig narrow = config;  // longer bursts for the same bytes
            narrow.burst_length = config.burst_length << slower;
            narrow.bus_bits = config.bus_bits >> slower;
            narrow.columns = config.columns << slower;
            narrow.nCCD_S = std::max(narrow.nCCD_S, narrow.burst_cycles());
            narrow.nCCD_L = std::max(narrow.nCCD_L, narrow.nCCD_S);
            narrow.nRTW = config.nRTW + narrow.burst_cycles() - config.burst_cycles();
            const Cycle time = replay(narrow, sequence).total_cycles;
            CHECK(time >= before);
            before = time;
        }
        std::mt19937 random(7);
        std::shuffle(sequence.begin(), sequence.end(), random);
        CHECK(straight <= replay(config, sequence).total_cycles);
    }
}

TEST_CASE("long idle stretches keep every refresh") {
    const DramConfig config = memory("ddr4-2400");
    const Cycle far = 1'000'000'007;
    const std::vector<TraceRequest> requests{request(0, 0), request(far, 64)};
    std::size_t refreshes = 0;
    const Replay watched = replay(config, requests, [&](const ReplayedCommand& command) {
        refreshes += command.issued.command == DramCommand::Ref ? 1 : 0;
    });
    const Replay skipped = replay(config, requests);
    CHECK(refreshes == far / static_cast<Cycle>(config.nREFI));
    CHECK(skipped.sum().refreshes() == refreshes);
    CHECK(skipped.requests.back().done == watched.requests.back().done);
}

TEST_CASE("addresses map to fields and back under any order of parts") {
    const DramConfig config = memory("ddr4-2400", {{"dram.mapping", "ro:10,ba,co:4,ro,bg,co"}});
    const AddressMapping mapping(config);
    std::mt19937_64 random(3);
    for (int i = 0; i < 1000; ++i) {
        const std::uint64_t address = random() % static_cast<std::uint64_t>(config.channel_bytes) / 64 * 64;
        const DramAddress fields = mapping.decode(address);
        CHECK(mapping.encode(fields) == address);
        CHECK(fields.row < static_cast<std::uint32_t>(config.rows));
        CHECK(fields.column < static_cast<std::uint32_t>(config.columns / config.burst_length));
    }
}
