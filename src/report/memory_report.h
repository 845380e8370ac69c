// What a plan occupies: bytes by class of tensor, RAM blocks against the device, and where every tensor lies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/command.h"
#include "contraflow/config.h"
#include "contraflow/plan.h"
#include "contraflow/step.h"

namespace contraflow {

// One kind of RAM block: used by the plan, left by the device's shell, on the whole chip.
struct BlockUse {
    std::int64_t used = 0, available = 0, chip = 0;
};

// Blocks as a share: tensors of one memory divide its blocks by the words they occupy there.
struct BlockShare {
    double luts = 0, bram36 = 0, urams = 0;

    BlockShare& operator+=(const BlockShare& other);
};

struct TensorReport {
    std::string name;
    TensorClass tensor_class = TensorClass::Scratch;
    std::string ram;    // name of the memory it lies in; "dram"
    std::string place;  // lutram, bram, uram or dram
    std::string layout;
    std::int64_t bytes = 0;
    std::int64_t words_occupied = 0;  // padding included
    BlockShare blocks;
    double bits_occupied = 0;               // of its share of the blocks
    std::string first_kernel, last_kernel;  // lifetime
};

struct RamReport {
    RamGeometry geometry;
    BlockCount blocks;
    std::int64_t bits_used = 0;      // addresses that some tensor covers, 32 bits each
    std::int64_t bits_occupied = 0;  // capacity of the blocks
};

// Tensors of one class: bytes by the kind of memory they lie in, and their blocks. Of tiles of tensors in DRAM the
// buffers count that they pass through.
struct ClassBytes {
    TensorClass tensor_class = TensorClass::Parameter;
    std::int64_t tensors = 0;
    std::int64_t lutram_bytes = 0, bram_bytes = 0, uram_bytes = 0, dram_bytes = 0;
    BlockShare blocks;
    double bits_occupied = 0;

    [[nodiscard]] std::int64_t bytes() const { return lutram_bytes + bram_bytes + uram_bytes + dram_bytes; }
};

// Bytes alive on chip while a kernel runs, in program order.
struct MemoryAtKernel {
    std::string kernel;
    std::vector<std::int64_t> bytes;  // by class of tensor, as MemoryReport::classes
    [[nodiscard]] std::int64_t total() const;
};

struct MemoryReport {
    std::int64_t parameters_bytes = 0;        // as trained by network.flow
    std::int64_t dense_parameters_bytes = 0;  // of the same network without tensor trains
    double compression = 1;                   // dense / trained, both rounded to four digits
    std::vector<ClassBytes> classes;
    std::int64_t peak_on_chip_bytes = 0;  // most bytes alive at one time, padding excluded
    std::string peak_kernel;              // where that is
    std::int64_t peak_scratch_bytes = 0;  // most bytes of scratch alive at one time
    // The same as the kernels really ran, from the start of a tensor's first kernel to the end of its last; 0: nothing
    // was simulated. Under schedule.policy = serial they equal the planned ones.
    std::int64_t simulated_peak_on_chip_bytes = 0, simulated_peak_scratch_bytes = 0;
    BlockUse bram36, uram, lutram_luts;  // LUTs of LUTRAM against all LUTs
    std::int64_t bits_used = 0, bits_occupied = 0;
    bool shares_space = false;
    bool allow_overflow = false;
    std::vector<std::string> overflows;
    std::vector<std::string> on_chip_overflows;  // why tensors that could be on chip are in DRAM
    std::int64_t dram_bytes = 0;                 // of tensors in DRAM, each rounded up to 4 KB
    std::vector<MemoryAtKernel> timeline;        // by kernel
    std::vector<TensorReport> tensors;
    std::vector<RamReport> rams;

    [[nodiscard]] std::int64_t bytes_of(TensorClass tensor_class) const;
};

[[nodiscard]] MemoryReport make_memory_report(const Config& config, const Step& step, const Plan& plan,
                                              const Program& program, bool allow_overflow);

// What a kernel of a step did: when it started and ended.
struct KernelTimes {
    std::uint32_t kernel = 0;
    std::uint64_t start = 0, end = 0;
};
// Fills in the simulated peaks from the kernels of one step.
void add_simulated_peaks(const Step& step, const Plan& plan, const std::vector<KernelTimes>& kernels,
                         MemoryReport& report);

}  // namespace contraflow
