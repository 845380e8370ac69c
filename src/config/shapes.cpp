// Shapes of the network's TT linears and of its embedding table, from the modes and ranks of the configuration.
#include <functional>
#include <numeric>

#include "contraflow/config.h"

namespace contraflow {

namespace {

std::vector<std::int64_t> widened(const std::vector<int>& values) {
    return {values.begin(), values.end()};
}

std::vector<std::int64_t> with_ends(std::vector<std::int64_t> bonds) {
    bonds.insert(bonds.begin(), 1);
    bonds.push_back(1);
    return bonds;
}

std::int64_t product(const std::vector<int>& modes) {
    return std::accumulate(modes.begin(), modes.end(), std::int64_t{1}, std::multiplies<>());
}

// The modes of a width. Under flow mm nobody checks the modes: where they do not multiply to the width, the width is
// the one mode.
std::vector<int> modes_of(int width, const std::vector<int>& modes) {
    return product(modes) == width ? modes : std::vector<int>{width};
}

TtShape tt_shape(const TtConfig& tt, const std::vector<int>& out_modes, const std::vector<int>& in_modes) {
    TtShape shape;
    shape.out_modes = widened(out_modes);
    shape.in_modes = widened(in_modes);
    shape.ranks =
        with_ends(tt.ranks.size() + 1 != shape.num_cores() ? std::vector<std::int64_t>(shape.num_cores() - 1, tt.rank)
                                                           : widened(tt.ranks));
    return shape;
}

}  // namespace

TtShape Config::tt_model() const {
    return tt_shape(tt, modes_of(network.d_model, tt.out_modes), modes_of(network.d_model, tt.in_modes));
}

TtShape Config::tt_fc1() const {
    const std::vector<int>& hidden = tt.ffn_modes.empty() ? tt.out_modes : tt.ffn_modes;
    return tt_shape(tt, modes_of(network.d_ff, hidden), modes_of(network.d_model, tt.in_modes));
}

TtShape Config::tt_fc2() const {
    const std::vector<int> reversed(tt.ffn_modes.rbegin(), tt.ffn_modes.rend());
    return tt_shape(tt, modes_of(network.d_model, tt.out_modes),
                    modes_of(network.d_ff, reversed.empty() ? tt.in_modes : reversed));
}

TtmShape Config::ttm_table() const {
    TtmShape shape;
    shape.vocab_modes = widened(ttm.vocab_modes);
    shape.hidden_modes = widened(ttm.hidden_modes);
    shape.ranks = with_ends(std::vector<std::int64_t>(shape.num_cores() - 1, ttm.rank));
    return shape;
}

}  // namespace contraflow
