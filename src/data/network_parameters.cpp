#include "data/network_parameters.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <utility>

#include "data/counter_random.h"

namespace contraflow {

namespace {

using Shape = std::vector<std::int64_t>;

// Chosen on traces/atis_like: 600 steps at train.lr = 0.005 take the loss from 8.6 to 1.3 .. 1.4 with 2, 4 and 6
// encoders. Twice the variance in the linears learns as fast with 2, but is still at 4.1 with 6. LayerNorm follows the
// sum of the tables, so their ratio matters, and their size only sets how fast they learn.
constexpr double kTokenVariance = 0.2 * 0.2;
constexpr double kPositionVariance = 0.04 * 0.04;
constexpr double kLinearGain = 1.0;  // variance of W times (inputs + outputs)
constexpr double kHeadGain = 2.0;    // the same of the two output layers

// The n-th root by bisection: pow may differ in the last bit from one C library to the next, products do not.
double root(double value, std::size_t n) {
    double low = 0;
    double high = value > 1 ? value : 1;
    for (int i = 0; i < 200; ++i) {
        const double middle = low + (high - low) / 2;
        double power = 1;
        for (std::size_t k = 0; k < n; ++k) {
            power *= middle;
        }
        (power < value ? low : high) = middle;
    }
    return high;
}

// Standard deviation of the entries of `cores` cores such that an entry of their product, a sum over all internal
// bonds of products of one entry of each core, has the given variance.
double core_deviation(double variance, const Shape& ranks, std::size_t cores) {
    double terms = 1;
    for (const std::int64_t rank : ranks) {
        terms *= static_cast<double>(rank);
    }
    return std::sqrt(root(variance / terms, cores));
}

class ParameterList {
public:
    explicit ParameterList(bool dense) : dense_(dense) {}

    void add(std::string name, Shape shape, double mean, double deviation) {
        list_.push_back({{std::move(name), std::move(shape)}, mean, deviation});
    }

    void add_table(const std::string& name, const TtmShape& table, std::int64_t vocab, std::int64_t hidden) {
        if (dense_) {
            add(name + ".weight", {vocab, hidden}, 0, std::sqrt(kTokenVariance));
            return;
        }
        const double deviation = core_deviation(kTokenVariance, table.ranks, table.num_cores());
        for (std::size_t k = 0; k < table.num_cores(); ++k) {
            add(fmt::format("{}.core.{}", name, k),
                {table.ranks[k], table.vocab_modes[k], table.hidden_modes[k], table.ranks[k + 1]}, 0, deviation);
        }
    }

    void add_dense_linear(const std::string& name, std::int64_t outputs, std::int64_t inputs, double gain) {
        add(name + ".weight", {outputs, inputs}, 0, std::sqrt(gain / static_cast<double>(outputs + inputs)));
        add(name + ".bias", {outputs}, 0, 0);
    }

    // `tt` is called for tensor-train cores only: the modes have no say in the dense network.
    template <typename Tt>
    void add_linear(const std::string& name, std::int64_t outputs, std::int64_t inputs, Tt tt) {
        if (dense_) {
            add_dense_linear(name, outputs, inputs, kLinearGain);
            return;
        }
        const TtShape shape = tt();
        const double variance = kLinearGain / static_cast<double>(outputs + inputs);
        const double deviation = core_deviation(variance, shape.ranks, shape.num_cores());
        for (std::size_t k = 0; k < shape.num_cores(); ++k) {
            add(fmt::format("{}.core.{}", name, k), {shape.ranks[k], shape.tensor_mode(k), shape.ranks[k + 1]}, 0,
                deviation);
        }
        add(name + ".bias", {outputs}, 0, 0);
    }

    void add_layer_norm(const std::string& name, std::int64_t size) {
        add(name + ".gamma", {size}, 1, 0);
        add(name + ".beta", {size}, 0, 0);
    }

    std::vector<NetworkParameter> take() { return std::move(list_); }

private:
    bool dense_;
    std::vector<NetworkParameter> list_;
};

}  // namespace

std::vector<NetworkParameter> network_parameters(const Config& config, bool dense) {
    const NetworkConfig& network = config.network;
    const std::int64_t d = network.d_model;
    const std::int64_t d_ff = network.d_ff;
    const auto model = [&] { return config.tt_model(); };
    ParameterList list(dense);
    list.add_table("embed.token", dense ? TtmShape{} : config.ttm_table(), network.vocab, d);
    list.add("embed.pos", {network.seq_len, d}, 0, std::sqrt(kPositionVariance));
    list.add_layer_norm("embed.ln", d);
    for (int block = 0; block < network.encoders; ++block) {
        const std::string prefix = fmt::format("encoder.{}.", block);
        for (const char* name : {"attn.q", "attn.k", "attn.v", "attn.o"}) {
            list.add_linear(prefix + name, d, d, model);
        }
        list.add_layer_norm(prefix + "ln1", d);
        list.add_linear(prefix + "ffn.fc1", d_ff, d, [&] { return config.tt_fc1(); });
        list.add_linear(prefix + "ffn.fc2", d, d_ff, [&] { return config.tt_fc2(); });
        list.add_layer_norm(prefix + "ln2", d);
    }
    list.add_linear("intent.fc", d, d, model);
    list.add_dense_linear("intent.out", network.intents, d, kHeadGain);
    list.add_linear("slot.fc", d, d, model);
    list.add_dense_linear("slot.out", network.slots, d, kHeadGain);
    return list.take();
}

std::int64_t ParameterSpec::words() const {
    std::int64_t product = 1;
    for (const std::int64_t extent : shape) {
        product *= extent;
    }
    return product;
}

std::vector<ParameterSpec> parameter_specs(const Config& config, bool dense) {
    std::vector<ParameterSpec> specs;
    for (NetworkParameter& parameter : network_parameters(config, dense)) {
        specs.push_back(std::move(parameter.spec));
    }
    return specs;
}

std::vector<ParameterSpec> parameter_specs(const Config& config) {
    return parameter_specs(config, config.network.flow == Flow::Mm);
}

std::int64_t parameter_words(const Config& config, bool dense) {
    std::int64_t words = 0;
    for (const ParameterSpec& spec : parameter_specs(config, dense)) {
        words += spec.words();
    }
    return words;
}

Weights initial_weights(const Config& config) {
    Weights weights;
    for (const NetworkParameter& parameter : network_parameters(config, config.network.flow == Flow::Mm)) {
        std::vector<float> values(static_cast<std::size_t>(parameter.spec.words()), static_cast<float>(parameter.mean));
        if (parameter.standard_deviation > 0) {
            CounterRandom random(config.train.seed, parameter.spec.name);
            for (float& value : values) {
                value = static_cast<float>(parameter.mean + parameter.standard_deviation * random.normal());
            }
        }
        weights.emplace(parameter.spec.name, std::move(values));
    }
    return weights;
}

}  // namespace contraflow
