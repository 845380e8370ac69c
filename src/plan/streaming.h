// Tensors that live in DRAM: rewrites a step so that kernels work on tiles that DMA kernels load and store.
#pragma once

#include <cstdint>
#include <vector>

#include "contraflow/step.h"

namespace contraflow {

struct StreamedStep {
    Step step;                             // the given tensors with their ids, then one tensor per tile
    std::vector<std::int64_t> dram_homes;  // by tensor: its address in DRAM, bytes; -1: on chip
    std::vector<int> buffers;              // by tensor: the stream buffer that a tile passes through; -1: no tile
    std::int64_t dram_bytes = 0;           // of all tensors in DRAM
};

// Every kernel that touches a tensor in DRAM becomes: load what it reads, the kernel, store what it wrote. A tensor of
// more than tile_words is cut along one index of the kernel's result, and the kernel with it: the order of every sum
// stays, so that not a bit of a value changes. Tiles go through at least `buffers` on-chip buffers in turn, two sets of
// them for a kernel that is cut: the next tile is loaded while this one is worked on. Rows that tokens choose (a
// dense embedding table) are fetched by token; their gradient is read, added to and written back row by row.
// Names: <kernel>.load<i>, .tile<i> (the kernel itself if it is not cut), .store<i>.
// Nothing is kept on chip between kernels. Tensors in DRAM follow each other from kTensorsDramAddress on, 4 KB aligned.
// Throws ConfigError for a tensor of more than tile_words that a kernel needs as a whole.
[[nodiscard]] StreamedStep stream_tensors(const Step& step, const std::vector<bool>& in_dram, std::int64_t tile_words,
                                          int buffers);

}  // namespace contraflow
