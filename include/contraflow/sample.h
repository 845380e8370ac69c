// One training sentence, encoded.
#pragma once

#include <cstdint>
#include <vector>

namespace contraflow {

struct Sample {
    std::vector<std::int32_t> tokens;       // S ids: [CLS], words, [PAD] ...
    std::vector<std::int32_t> slot_labels;  // S ids; 0 at [CLS] and padding
    std::vector<std::int32_t> real;         // S flags: 1 = real position ([CLS] and words), 0 = padding
    std::int32_t intent = 0;
    std::int32_t words = 0;  // words kept, without [CLS]
};

}  // namespace contraflow
