// The DRAM of one channel: row state of every bank and, for every command, the earliest cycle at which the standard's
// constraints let it start.
//
// Constraints are kept as earliest times, raised by each command that is issued, in banks, bank groups, ranks and
// buses; a question costs a handful of comparisons and no history is searched. Gaps count from the last cycle of one
// command to the last cycle of the next (JESD235 and JESD209-4 have commands of several cycles), so the times inside
// are those of last cycles; those at the interface are first cycles.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/cycle.h"
#include "contraflow/config.h"
#include "dram/address_mapping.h"

namespace contraflow {

// RdA, WrA: with automatic precharge. PreAll, Ref: all banks of a rank.
enum class DramCommand : std::uint8_t { Act, Pre, PreAll, Rd, RdA, Wr, WrA, Ref };
inline constexpr std::size_t kNumDramCommands = 8;
[[nodiscard]] const char* to_string(DramCommand command);  // ACT, PRE, PREA, RD, RDA, WR, WRA, REF

[[nodiscard]] constexpr bool is_column_command(DramCommand command) {
    return command >= DramCommand::Rd && command <= DramCommand::WrA;
}
[[nodiscard]] constexpr bool is_write_command(DramCommand command) {
    return command == DramCommand::Wr || command == DramCommand::WrA;
}

class DramDevice {
public:
    static constexpr std::uint32_t kClosed = ~std::uint32_t{0};

    explicit DramDevice(const DramConfig& config);

    [[nodiscard]] std::size_t bank_of(const DramAddress& place) const {
        return (place.rank * groups_ + place.group) * banks_ + place.bank;
    }
    [[nodiscard]] std::size_t rank_of(std::size_t bank) const { return bank / (groups_ * banks_); }
    [[nodiscard]] std::size_t num_banks() const { return bank_states_.size(); }
    [[nodiscard]] std::size_t num_ranks() const { return rank_states_.size(); }
    [[nodiscard]] std::uint32_t open_row(std::size_t bank) const { return bank_states_[bank].row; }
    [[nodiscard]] bool all_closed(std::size_t rank) const { return rank_states_[rank].num_open == 0; }

    // First cycle of the earliest possible issue. The row state must allow the command.
    [[nodiscard]] Cycle earliest(DramCommand command, std::size_t bank) const;
    [[nodiscard]] Cycle earliest_of_rank(DramCommand command, std::size_t rank) const;  // PreAll, Ref

    // REQUIRES: at >= earliest(command, bank). `row` is used by Act only.
    void issue(DramCommand command, std::size_t bank, std::uint32_t row, Cycle at);
    void issue_to_rank(DramCommand command, std::size_t rank, Cycle at);

    // Cycle after the last beat of a column command that starts at `at`.
    [[nodiscard]] Cycle data_end(DramCommand command, Cycle at) const;

private:
    // Earliest last cycles.
    struct Bank {
        std::uint32_t row = kClosed;
        Cycle act = 0, rd = 0, wr = 0, pre = 0;
        Cycle idle = 0;       // precharged: activate or refresh
        Cycle activated = 0;  // last cycle of the latest ACT
    };
    struct Group {
        Cycle act = 0, rd = 0, wr = 0;
    };
    struct Rank {
        Cycle act = 0, rd = 0, wr = 0, pre = 0, ref = 0;
        std::array<Cycle, 4> acts{};  // last cycles of the latest four ACTs plus nFAW
        std::size_t oldest_act = 0;
        int num_open = 0;
    };

    [[nodiscard]] Cycle length(DramCommand command) const { return lengths_[static_cast<std::size_t>(command)]; }
    [[nodiscard]] Cycle& bus_free(DramCommand command) { return bus_free_[is_column_command(command) ? 1 : row_bus_]; }
    [[nodiscard]] Cycle first_cycle(Cycle last, DramCommand command) const;
    void activate(Bank& bank, Group& group, Rank& rank, std::uint32_t row, Cycle last);
    void read(Bank& bank, Group& group, std::size_t rank, Cycle last);
    void write(Bank& bank, Group& group, std::size_t rank, Cycle last);
    void precharge(Bank& bank, Rank& rank, Cycle last, Cycle recovery);

    std::size_t groups_, banks_;
    std::array<Cycle, kNumDramCommands> lengths_{};
    std::size_t row_bus_;  // index of the row commands' bus: 0, or 1 (the column commands') if they share one
    std::array<Cycle, 2> bus_free_{};
    Cycle nRCD_, nRCDW_, nRP_, nRPab_, nRAS_, nRC_, nRRD_S_, nRRD_L_, nFAW_, nCCD_S_, nCCD_L_, nRTW_, nRFC_, nPPD_;
    Cycle read_to_pre_, write_to_pre_, write_to_read_s_, write_to_read_l_;
    Cycle read_latency_, write_latency_, burst_, nRTRS_;
    std::vector<Bank> bank_states_;
    std::vector<Group> group_states_;
    std::vector<Rank> rank_states_;
};

}  // namespace contraflow
