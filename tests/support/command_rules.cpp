#include "support/command_rules.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace contraflow::test {

namespace {

using Bank = std::tuple<std::size_t, std::size_t, std::size_t>;

bool reads(DramCommand command) {
    return command == DramCommand::Rd || command == DramCommand::RdA;
}

bool auto_precharges(DramCommand command) {
    return command == DramCommand::RdA || command == DramCommand::WrA;
}

class Checker {
public:
    explicit Checker(const DramConfig& config) : c_(config) {}

    std::string check(const std::vector<ListedCommand>& commands) {
        for (std::size_t i = 0; i < commands.size() && problem_.empty(); ++i) {
            const ListedCommand& now = commands[i];
            // No rule but those of the row state and refresh reaches further back than this.
            for (std::size_t j = i; j-- > 0 && commands[j].cycle + kReach > now.cycle;) {
                pair(commands[j], now);
            }
            four_activates(now);
            row_state(now);
        }
        return problem_;
    }

private:
    static constexpr Cycle kReach = 2000;

    [[nodiscard]] int length(DramCommand command) const {
        switch (command) {
            case DramCommand::Act:
                return c_.act_cycles;
            case DramCommand::Pre:
            case DramCommand::PreAll:
                return c_.pre_cycles;
            case DramCommand::Ref:
                return c_.ref_cycles;
            default:
                return c_.column_cycles;
        }
    }
    [[nodiscard]] Cycle last(const ListedCommand& command) const {
        return command.cycle + static_cast<Cycle>(length(command.command)) - 1;
    }
    void fail(const std::string& rule, const ListedCommand& now) {
        if (problem_.empty()) {
            problem_ = rule + " at cycle " + std::to_string(now.cycle) + ", " + to_string(now.command);
        }
    }
    void gap(const char* rule, const ListedCommand& before, const ListedCommand& now, int cycles) {
        if (last(now) < last(before) + static_cast<Cycle>(cycles)) {
            fail(rule, now);
        }
    }

    void pair(const ListedCommand& before, const ListedCommand& now) {
        const bool same_bus = !c_.row_bus || is_column_command(before.command) == is_column_command(now.command);
        if (same_bus && now.cycle < before.cycle + static_cast<Cycle>(length(before.command))) {
            fail("command bus", now);
        }
        if (before.rank != now.rank) {
            return;
        }
        const bool same_group = before.group == now.group;
        const bool same_bank = same_group && before.bank == now.bank;
        const int data = c_.nCWL + c_.nDQSS + c_.burst_length / 2;
        const auto all = [](const ListedCommand& x) {
            return x.command == DramCommand::PreAll || x.command == DramCommand::Ref;
        };
        const bool meets = same_bank || all(before) || all(now);
        if (now.command == DramCommand::Act) {
            if (before.command == DramCommand::Act) {
                gap("nRRD", before, now, same_group ? c_.nRRD_L : c_.nRRD_S);
                if (same_bank) {
                    gap("nRC", before, now, c_.nRC);
                }
            }
            if (before.command == DramCommand::Ref) {
                gap("nRFC", before, now, c_.nRFC);
            }
        }
        const bool closes = now.command == DramCommand::Act || now.command == DramCommand::Ref;
        if (closes && meets && before.command == DramCommand::Pre) {
            gap("nRP", before, now, c_.nRP);
        }
        if (closes && before.command == DramCommand::PreAll) {
            gap("nRP", before, now, c_.nRP);
        }
        if (closes && meets && auto_precharges(before.command)) {
            gap("nRP", before, now, (reads(before.command) ? c_.nRTP : data + c_.nWR) + c_.nRP);
        }
        if (now.command == DramCommand::Ref && before.command == DramCommand::Ref) {
            gap("nRFC", before, now, c_.nRFC);
        }
        const bool open = open_.count({before.rank, before.group, before.bank}) != 0;
        if ((now.command == DramCommand::Pre || now.command == DramCommand::PreAll) && meets && open) {
            if (before.command == DramCommand::Act) {
                gap("nRAS", before, now, c_.nRAS);
            } else if (before.command == DramCommand::Rd) {
                gap("nRTP", before, now, c_.nRTP);
            } else if (before.command == DramCommand::Wr) {
                gap("nWR", before, now, data + c_.nWR);
            }
        }
        if (is_column_command(now.command)) {
            if (before.command == DramCommand::Act && same_bank) {
                gap("nRCD", before, now, reads(now.command) ? c_.nRCD : c_.nRCDW);
            } else if (is_column_command(before.command) && reads(before.command) == reads(now.command)) {
                gap("nCCD", before, now, same_group ? c_.nCCD_L : c_.nCCD_S);
            } else if (is_column_command(before.command) && reads(now.command)) {
                gap("nWTR", before, now, data + (same_group ? c_.nWTR_L : c_.nWTR_S));
            } else if (is_column_command(before.command)) {
                gap("nRTW", before, now, c_.nRTW);
            }
        }
    }

    void four_activates(const ListedCommand& now) {
        if (now.command != DramCommand::Act) {
            return;
        }
        std::vector<Cycle>& acts = acts_[now.rank];
        if (acts.size() >= 4 && last(now) < acts[acts.size() - 4] + static_cast<Cycle>(c_.nFAW)) {
            fail("nFAW", now);
        }
        acts.push_back(last(now));
    }

    void row_state(const ListedCommand& now) {
        const Bank bank{now.rank, now.group, now.bank};
        if (now.command == DramCommand::Act) {
            if (open_.count(bank) != 0) {
                fail("open bank", now);
            }
            open_[bank] = now.row;
        } else if (is_column_command(now.command)) {
            if (open_.count(bank) == 0 || open_[bank] != now.row) {
                fail("row", now);
            }
            if (auto_precharges(now.command)) {
                open_.erase(bank);
            }
        } else if (now.command == DramCommand::Pre) {
            open_.erase(bank);
        } else {
            const auto of_rank = [&](const auto& entry) { return std::get<0>(entry.first) == now.rank; };
            if (now.command == DramCommand::Ref && std::any_of(open_.begin(), open_.end(), of_rank)) {
                fail("refresh of an open bank", now);
            }
            for (auto entry = open_.begin(); entry != open_.end();) {
                entry = of_rank(*entry) ? open_.erase(entry) : std::next(entry);
            }
            refresh_rate(now);
        }
    }

    void refresh_rate(const ListedCommand& now) {
        if (now.command == DramCommand::Ref) {
            const Cycle due = ++refreshes_[now.rank] * static_cast<Cycle>(c_.nREFI);
            if (now.cycle < due || now.cycle > due + static_cast<Cycle>(c_.nREFI)) {
                fail("nREFI", now);
            }
        }
    }

    const DramConfig& c_;
    std::string problem_;
    std::map<std::size_t, std::vector<Cycle>> acts_;
    std::map<std::size_t, Cycle> refreshes_;
    std::map<Bank, std::uint32_t> open_;
};

}  // namespace

std::string broken_rule(const DramConfig& config, const std::vector<ListedCommand>& commands) {
    return Checker(config).check(commands);
}

}  // namespace contraflow::test
