// Random numbers that are the same bits on every host: integer arithmetic only. The standard library's distributions
// differ between implementations, and so do the last bits of log and cos.
#pragma once

#include <cstdint>
#include <string_view>

namespace contraflow {

// Number n of a stream is a mix of the stream's key and n (the finaliser of SplitMix64: Steele, Lea, Flood, "Fast
// splittable pseudorandom number generators", OOPSLA 2014). Streams of different names or indices are unrelated.
class CounterRandom {
public:
    CounterRandom(std::uint64_t seed, std::string_view stream, std::uint64_t index = 0) {
        std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a, 64 bit
        for (const char c : stream) {
            hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3U;
        }
        state_ = mix(mix(mix(seed + kIncrement) ^ hash) + index);
    }

    std::uint64_t next() {
        state_ += kIncrement;
        return mix(state_);
    }

    // Uniform in 0 .. bound - 1, without bias. REQUIRES: bound > 0.
    std::uint64_t below(std::uint64_t bound) {
        const std::uint64_t excess = (UINT64_MAX % bound + 1) % bound;  // 2^64 mod bound
        std::uint64_t value = next();
        while (value > UINT64_MAX - excess) {
            value = next();
        }
        return value % bound;
    }

    // Mean 0, variance 1: the sum of 12 uniform numbers of 32 bits, centred; exact in double.
    // Approximation: not quite normal, no value beyond 6 (a normal number is, once in 5e8).
    double normal() {
        constexpr std::uint64_t kLowHalf = 0xffffffffU;
        std::int64_t sum = 6;  // the mean of 12 numbers 0 .. 2^32 - 1 is 6 * 2^32 - 6
        for (int i = 0; i < 6; ++i) {
            const std::uint64_t bits = next();
            sum += static_cast<std::int64_t>((bits & kLowHalf) + (bits >> 32U));
        }
        return static_cast<double>(sum - (std::int64_t{6} << 32U)) * 0x1p-32;
    }

private:
    static constexpr std::uint64_t kIncrement = 0x9e3779b97f4a7c15U;

    static std::uint64_t mix(std::uint64_t z) {
        z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31U);
    }

    std::uint64_t state_ = 0;
};

}  // namespace contraflow
