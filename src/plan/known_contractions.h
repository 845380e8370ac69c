// What the planner has found out about operands and contractions, kept from one design to the next: designs of a sweep
// that differ elsewhere (lanes, DRAM, clocks) have their contractions in common. No plan depends on what is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "common/command.h"
#include "common/number_key.h"
#include "plan/mapping.h"

namespace contraflow {

// Values by key; those that a design did not ask for are forgotten when the one after it is done.
template <typename Value>
class Kept {
public:
    // make() makes the value if it is not known. The reference holds until the next design.
    template <typename Make>
    Value& get(const NumberKey& key, Make make) {
        const auto found = latest_.find(key);
        if (found != latest_.end()) {
            return found->second;
        }
        auto before = before_.extract(key);
        return before.empty() ? latest_.emplace(key, make()).first->second
                              : latest_.insert(std::move(before)).position->second;
    }
    void begin_design() {
        before_ = std::move(latest_);
        latest_.clear();
    }

private:
    std::unordered_map<NumberKey, Value, NumberKey::Hash> latest_, before_;
};

struct KnownContractions {
    // Offset tables of an operand, without its place. Operands with the same index maps and layout share them.
    struct Shape {
        AccessTable table;
        std::int64_t last = 0;  // largest offset from the base
        std::size_t id = 0;     // never used again for another shape
    };
    // Contractions of the same shape, layout and kinds of memories on the same engines: they get the same mappings, and
    // tiles cost the same.
    struct Alike {
        MappingChoice choice;
        std::uint64_t design = 0;  // in which `first` is
        std::uint32_t first = 0;   // index in the program
    };

    Kept<Shape> shapes;
    Kept<Alike> alike;
    std::size_t num_shapes = 0;
    std::uint64_t design = 0;  // that is being planned, from 1

    void begin_design() {
        ++design;
        shapes.begin_design();
        alike.begin_design();
    }
};

}  // namespace contraflow
