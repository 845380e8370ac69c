// Words that pass between blocks through mailboxes.
#pragma once

#include <array>
#include <cstdint>

#include "common/block.h"
#include "common/command.h"

namespace contraflow {

// A request for ports, all at once, for a burst of known length. The interconnect answers with a grant to every member
// of the requester's gang; the burst occupies `cycles` edges from the edge that sees the grant.
struct PortRequest {
    static constexpr std::size_t kMaxRams = 8;
    std::array<RamId, kMaxRams> rams{};          // each memory once
    std::array<std::uint8_t, kMaxRams> ports{};  // ports wanted of it
    std::uint8_t num_rams = 0;
    std::uint8_t channel = 0;        // the requester's own name for the burst (kOperandBurst, kWriteBurst)
    std::uint16_t first_client = 0;  // clients first_client .. first_client + num_clients - 1 get the grant
    std::uint16_t num_clients = 1;
    std::uint64_t cycles = 0;

    void add(RamId ram, int ports_of_ram);
    // One more port of a memory, unless the burst holds `most` already: its streams then take turns on them.
    void add_within(RamId ram, int most);
};
// A request posted at edge e is granted at e + 1 at the earliest and its burst starts at e + 2.
inline constexpr Cycle kGrantEdges = 2;
inline constexpr std::uint8_t kOperandBurst = 0;
inline constexpr std::uint8_t kWriteBurst = 1;

struct PortGrant {
    std::uint8_t channel = 0;
};

// Sequencer to a unit: start a kernel.
struct KernelStart {
    std::uint32_t kernel = 0;
    std::uint32_t command = 0;
    std::uint16_t gang_size = 1;
    std::uint16_t gang_first = 0;  // index of the gang's first engine
};

// What an edge of a unit goes to.
enum class Activity : std::uint8_t { Idle, Busy, Dependency, Bank, Port, WriteBack, Dram, Pipeline };

// Cycles a unit spent on one kernel, by cause. The parts sum to the edges between start and done.
struct UnitCycles {
    std::uint64_t busy = 0;        // a result-producing operation issued
    std::uint64_t dependency = 0;  // an add waited for the previous add to the same accumulator
    std::uint64_t bank = 0;        // a bank had to be accessed again for words of one operation
    std::uint64_t port = 0;        // a memory port was held by another burst, or is being arbitrated for
    std::uint64_t write_back = 0;  // both accumulator buffers were waiting to be written
    std::uint64_t dram = 0;        // waiting for the DRAM
    std::uint64_t pipeline = 0;    // filling and draining

    // REQUIRES: not Activity::Idle, which is no part of a kernel.
    [[nodiscard]] std::uint64_t& of(Activity activity) {
        constexpr std::array kParts{&UnitCycles::busy,    &UnitCycles::dependency, &UnitCycles::bank,
                                    &UnitCycles::port,    &UnitCycles::write_back, &UnitCycles::dram,
                                    &UnitCycles::pipeline};
        return this->*kParts[static_cast<std::size_t>(activity) - 1];
    }
    [[nodiscard]] std::uint64_t total() const { return busy + dependency + bank + port + write_back + dram + pipeline; }
    UnitCycles& operator+=(const UnitCycles& other);
};

// Unit to sequencer: a kernel is complete, its results are in memory.
struct KernelDone {
    std::uint32_t kernel = 0;
    std::uint16_t unit = 0;  // index of the unit (of the gang's first engine)
    UnitCycles cycles;
};

struct Doorbell {
    std::uint32_t step = 0;
};
struct StepDone {
    std::uint32_t step = 0;
};

}  // namespace contraflow
