#include "common/messages.h"

#include "common/sim_check.h"

namespace contraflow {

void PortRequest::add(RamId ram, int ports_of_ram) {
    for (std::size_t i = 0; i < num_rams; ++i) {
        if (rams[i] == ram) {
            ports[i] = static_cast<std::uint8_t>(ports[i] + ports_of_ram);
            return;
        }
    }
    SIM_CHECK(num_rams < kMaxRams, "a burst touches more than " << kMaxRams << " memories");
    rams[num_rams] = ram;
    ports[num_rams] = static_cast<std::uint8_t>(ports_of_ram);
    ++num_rams;
}

void PortRequest::add_within(RamId ram, int most) {
    for (std::size_t i = 0; i < num_rams; ++i) {
        if (rams[i] == ram && ports[i] >= most) {
            return;
        }
    }
    add(ram, 1);
}

UnitCycles& UnitCycles::operator+=(const UnitCycles& other) {
    busy += other.busy;
    dependency += other.dependency;
    bank += other.bank;
    port += other.port;
    write_back += other.write_back;
    dram += other.dram;
    pipeline += other.pipeline;
    return *this;
}

}  // namespace contraflow
