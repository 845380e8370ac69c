// Integer arithmetic of tile, beat and block counts.
#pragma once

#include <cstdint>

namespace contraflow {

// a / b rounded up. REQUIRES: a >= 0, b > 0.
[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

// REQUIRES: a is a power of two.
[[nodiscard]] constexpr int log2_of(std::int64_t a) {
    int bits = 0;
    while ((std::int64_t{1} << bits) < a) {
        ++bits;
    }
    return bits;
}

}  // namespace contraflow
