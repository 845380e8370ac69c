#include "dram/dram_device.h"

#include <algorithm>

namespace contraflow {

namespace {

void raise(Cycle& earliest, Cycle at) {
    earliest = std::max(earliest, at);
}

Cycle cycles(int value) {
    return static_cast<Cycle>(value);
}

}  // namespace

const char* to_string(DramCommand command) {
    static constexpr std::array kNames{"ACT", "PRE", "PREA", "RD", "RDA", "WR", "WRA", "REF"};
    return kNames[static_cast<std::size_t>(command)];
}

DramDevice::DramDevice(const DramConfig& config)
    : groups_(static_cast<std::size_t>(config.bank_groups)),
      banks_(static_cast<std::size_t>(config.banks)),
      row_bus_(config.row_bus ? 0 : 1),
      nRCD_(cycles(config.nRCD)),
      nRCDW_(cycles(config.nRCDW)),
      nRP_(cycles(config.nRP)),
      nRPab_(cycles(config.nRPab)),
      nRAS_(cycles(config.nRAS)),
      nRC_(cycles(config.nRC)),
      nRRD_S_(cycles(config.nRRD_S)),
      nRRD_L_(cycles(config.nRRD_L)),
      nFAW_(cycles(config.nFAW)),
      nCCD_S_(cycles(config.nCCD_S)),
      nCCD_L_(cycles(config.nCCD_L)),
      nRTW_(cycles(config.nRTW)),
      nRFC_(cycles(config.nRFC)),
      nPPD_(cycles(config.nPPD)),
      read_to_pre_(cycles(config.nRTP)),
      write_to_pre_(cycles(config.nCWL + config.nDQSS + config.burst_cycles() + config.nWR)),
      write_to_read_s_(cycles(config.nCWL + config.nDQSS + config.burst_cycles() + config.nWTR_S)),
      write_to_read_l_(cycles(config.nCWL + config.nDQSS + config.burst_cycles() + config.nWTR_L)),
      read_latency_(cycles(config.read_latency())),
      write_latency_(cycles(config.write_latency())),
      burst_(cycles(config.burst_cycles())),
      nRTRS_(cycles(config.nRTRS)),
      bank_states_(static_cast<std::size_t>(config.ranks) * groups_ * banks_),
      group_states_(static_cast<std::size_t>(config.ranks) * groups_),
      rank_states_(static_cast<std::size_t>(config.ranks)) {
    const Cycle column = cycles(config.column_cycles);
    const Cycle pre = cycles(config.pre_cycles);
    lengths_ = {cycles(config.act_cycles), pre, pre, column, column, column, column, cycles(config.ref_cycles)};
}

Cycle DramDevice::first_cycle(Cycle last, DramCommand command) const {
    const Cycle rest = length(command) - 1;
    const Cycle first = last > rest ? last - rest : 0;
    return std::max(first, bus_free_[is_column_command(command) ? 1 : row_bus_]);
}

Cycle DramDevice::earliest(DramCommand command, std::size_t index) const {
    const Bank& bank = bank_states_[index];
    const Group& group = group_states_[index / banks_];
    const Rank& rank = rank_states_[rank_of(index)];
    Cycle last = 0;
    switch (command) {
        case DramCommand::Act:
            last = std::max({bank.act, bank.idle, group.act, rank.act, rank.acts[rank.oldest_act]});
            break;
        case DramCommand::Pre:
            last = std::max(bank.pre, rank.pre);
            break;
        case DramCommand::Rd:
        case DramCommand::RdA:
            last = std::max({bank.rd, group.rd, rank.rd});
            break;
        case DramCommand::Wr:
        case DramCommand::WrA:
            last = std::max({bank.wr, group.wr, rank.wr});
            break;
        case DramCommand::PreAll:
        case DramCommand::Ref:
            return earliest_of_rank(command, rank_of(index));
    }
    return first_cycle(last, command);
}

Cycle DramDevice::earliest_of_rank(DramCommand command, std::size_t index) const {
    const Rank& rank = rank_states_[index];
    const bool refresh = command == DramCommand::Ref;
    Cycle last = refresh ? rank.ref : rank.pre;
    const std::size_t first = index * groups_ * banks_;
    for (std::size_t i = first; i < first + groups_ * banks_; ++i) {
        const Bank& bank = bank_states_[i];
        if (refresh) {
            raise(last, bank.idle);
        } else if (bank.row != kClosed) {
            raise(last, bank.pre);
        }
    }
    return first_cycle(last, command);
}

void DramDevice::issue(DramCommand command, std::size_t index, std::uint32_t row, Cycle at) {
    Bank& bank = bank_states_[index];
    Group& group = group_states_[index / banks_];
    const std::size_t rank_index = rank_of(index);
    Rank& rank = rank_states_[rank_index];
    bus_free(command) = at + length(command);
    const Cycle last = at + length(command) - 1;
    switch (command) {
        case DramCommand::Act:
            activate(bank, group, rank, row, last);
            break;
        case DramCommand::Pre:
            raise(rank.pre, last + nPPD_);
            precharge(bank, rank, last, nRP_);
            break;
        case DramCommand::Rd:
            read(bank, group, rank_index, last);
            break;
        case DramCommand::Wr:
            write(bank, group, rank_index, last);
            break;
        case DramCommand::RdA:
            read(bank, group, rank_index, last);
            precharge(bank, rank, std::max(bank.activated + nRAS_, last + read_to_pre_), nRP_);
            break;
        case DramCommand::WrA:
            write(bank, group, rank_index, last);
            precharge(bank, rank, std::max(bank.activated + nRAS_, last + write_to_pre_), nRP_);
            break;
        case DramCommand::PreAll:
        case DramCommand::Ref:
            issue_to_rank(command, rank_index, at);
            break;
    }
}

void DramDevice::issue_to_rank(DramCommand command, std::size_t index, Cycle at) {
    Rank& rank = rank_states_[index];
    bus_free(command) = at + length(command);
    const Cycle last = at + length(command) - 1;
    const std::size_t first = index * groups_ * banks_;
    for (std::size_t i = first; i < first + groups_ * banks_; ++i) {
        Bank& bank = bank_states_[i];
        if (command == DramCommand::Ref) {
            raise(bank.act, last + nRFC_);
        } else if (bank.row != kClosed) {
            precharge(bank, rank, last, nRPab_);
        }
    }
    raise(command == DramCommand::Ref ? rank.ref : rank.pre, last + (command == DramCommand::Ref ? nRFC_ : nPPD_));
}

void DramDevice::activate(Bank& bank, Group& group, Rank& rank, std::uint32_t row, Cycle last) {
    bank.row = row;
    bank.activated = last;
    ++rank.num_open;
    raise(bank.rd, last + nRCD_);
    raise(bank.wr, last + nRCDW_);
    raise(bank.pre, last + nRAS_);
    raise(bank.act, last + nRC_);
    raise(group.act, last + nRRD_L_);
    raise(rank.act, last + nRRD_S_);
    rank.acts[rank.oldest_act] = last + nFAW_;
    rank.oldest_act = (rank.oldest_act + 1) % rank.acts.size();
}

void DramDevice::read(Bank& bank, Group& group, std::size_t rank, Cycle last) {
    raise(bank.pre, last + read_to_pre_);
    raise(group.rd, last + nCCD_L_);
    for (std::size_t i = 0; i < rank_states_.size(); ++i) {
        Rank& other = rank_states_[i];
        if (i == rank) {
            raise(other.rd, last + nCCD_S_);
            raise(other.wr, last + nRTW_);
        } else {
            raise(other.rd, last + burst_ + nRTRS_);
            const Cycle free = last + read_latency_ + burst_ + nRTRS_;
            raise(other.wr, free > write_latency_ ? free - write_latency_ : 0);
        }
    }
}

void DramDevice::write(Bank& bank, Group& group, std::size_t rank, Cycle last) {
    raise(bank.pre, last + write_to_pre_);
    raise(group.wr, last + nCCD_L_);
    raise(group.rd, last + write_to_read_l_);
    for (std::size_t i = 0; i < rank_states_.size(); ++i) {
        Rank& other = rank_states_[i];
        if (i == rank) {
            raise(other.wr, last + nCCD_S_);
            raise(other.rd, last + write_to_read_s_);
        } else {
            raise(other.wr, last + burst_ + nRTRS_);
            const Cycle free = last + write_latency_ + burst_ + nRTRS_;
            raise(other.rd, free > read_latency_ ? free - read_latency_ : 0);
        }
    }
}

void DramDevice::precharge(Bank& bank, Rank& rank, Cycle last, Cycle recovery) {
    bank.row = kClosed;
    --rank.num_open;
    raise(bank.idle, last + recovery);
}

Cycle DramDevice::data_end(DramCommand command, Cycle at) const {
    return at + length(command) - 1 + (is_write_command(command) ? write_latency_ : read_latency_) + burst_;
}

}  // namespace contraflow
