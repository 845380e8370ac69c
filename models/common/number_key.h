// Numbers in a row, as a key to look up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace contraflow {

class NumberKey {
public:
    void clear() { numbers_.clear(); }
    NumberKey& add(std::int64_t number) {
        numbers_.push_back(number);
        return *this;
    }
    [[nodiscard]] bool operator==(const NumberKey& other) const { return numbers_ == other.numbers_; }

    struct Hash {
        [[nodiscard]] std::size_t operator()(const NumberKey& key) const {
            std::uint64_t hash = 0xcbf29ce484222325U;
            for (const std::int64_t number : key.numbers_) {
                hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x9e3779b97f4a7c15U;
                hash ^= hash >> 32U;
            }
            return hash;
        }
    };

private:
    std::vector<std::int64_t> numbers_;
};

}  // namespace contraflow
