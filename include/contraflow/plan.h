// Where every tensor lives, and what the machine executes: the outcome of planning a step for a configuration.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "contraflow/config.h"
#include "contraflow/step.h"

namespace contraflow {

struct Program;  // models/common/command.h

// One level of a tensor's index, slowest first: `extent` positions `dense` words apart in the row-major tensor. In its
// memory position i lies i * stride words up (stride > dense: skewed), or, of a partitioned dimension, table[i] words.
struct LayoutLevel {
    std::int64_t extent = 1;
    std::int64_t dense = 1;
    std::int64_t stride = 1;
    std::vector<std::int64_t> table;

    [[nodiscard]] std::int64_t offset(std::int64_t position) const {
        return table.empty() ? position * stride : table[static_cast<std::size_t>(position)];
    }
};

// Where a tensor lives: in an on-chip memory, or in DRAM, where it is row-major.
struct Placement {
    static constexpr std::uint32_t kDram = 0xffffffffU;

    std::uint32_t ram = 0;          // index into Program::rams, or kDram
    std::int64_t base = 0;          // word address of element 0
    std::int64_t words = 0;         // words occupied, padding included
    std::int64_t dram_address = 0;  // bytes
    std::vector<LayoutLevel> levels;
    std::int32_t first_kernel = 0, last_kernel = 0;  // lifetime; the whole step for parameters, gradients and buffers
    std::string layout;                              // in words: "skewed", "cyclic.0=12 reshape=2"

    [[nodiscard]] bool in_dram() const { return ram == kDram; }
    // Word address of the element with this row-major index. REQUIRES: on chip.
    [[nodiscard]] std::int64_t address(std::int64_t element) const;
};

// RAM blocks of one kind of memory.
struct BlockCount {
    std::int64_t luts = 0;
    std::int64_t bram18 = 0;  // halves of BRAM36
    std::int64_t urams = 0;

    [[nodiscard]] std::int64_t bram36() const { return (bram18 + 1) / 2; }
    BlockCount& operator+=(const BlockCount& other);
};

// On-chip words of each class of tensor that are alive while a kernel runs, in program order; padding excluded.
using AliveWords = std::array<std::int64_t, kNumTensorClasses>;

struct Plan {
    std::vector<Placement> placements;   // by tensor
    std::size_t num_tensors = 0;         // of the step as built; those that follow are tiles of tensors in DRAM
    std::vector<BlockCount> ram_blocks;  // by memory
    BlockCount blocks;                   // in total
    bool shares_space = false;           // tensors with disjoint lifetimes overlap
    std::int64_t dram_bytes = 0;         // of tensors that live in DRAM
    std::vector<AliveWords> alive;       // by kernel
    std::int64_t peak_words = 0;         // most on-chip words alive at one time, padding excluded
    std::int32_t peak_kernel = 0;        // where that is
    std::vector<std::string> overflows;  // one line per kind of memory that the device lacks, empty if it fits
    // What keeping everything on chip would lack, where tensors went to DRAM for that reason.
    std::vector<std::string> on_chip_overflows;
};

}  // namespace contraflow
