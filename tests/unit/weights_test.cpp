#include "contraflow/weights.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "contraflow/error.h"
#include "contraflow/safetensors.h"
#include "support/temporary_folder.h"

using contraflow::Config;
using contraflow::ConfigError;
using contraflow::Flow;
using contraflow::initial_weights;
using contraflow::load_weights;
using contraflow::make_f32;
using contraflow::parameter_specs;
using contraflow::parameter_words;
using contraflow::ParameterSpec;
using contraflow::read_safetensors;
using contraflow::save_weights;
using contraflow::TensorFile;
using contraflow::Weights;
using contraflow::write_safetensors;
using contraflow::test::read_bytes;
using contraflow::test::TemporaryFolder;

namespace {

using Shape = std::vector<std::int64_t>;

const std::string kGolden = std::string(CONTRAFLOW_SOURCE_DIR) + "/tests/golden/";

// The network of tests/golden/model_tiny.
Config tiny_config(Flow flow = Flow::Btt) {
    Config config;
    config.network.flow = flow;
    config.network.encoders = 1;
    config.network.seq_len = 6;
    config.network.vocab = 27;
    config.network.d_model = 24;
    config.network.d_ff = 24;
    config.network.heads = 2;
    config.network.intents = 5;
    config.network.slots = 7;
    config.tt.rank = 3;
    config.tt.out_modes = {2, 3, 4};
    config.tt.in_modes = {4, 3, 2};
    config.ttm.rank = 4;
    config.ttm.vocab_modes = {3, 3, 3};
    config.ttm.hidden_modes = {2, 3, 4};
    return config;
}

// The values of each tensor in the file, by name.
Weights floats_of(const TensorFile& file) {
    Weights weights;
    for (const auto& [name, tensor] : file.tensors) {
        weights.emplace(name, tensor.as_floats());
    }
    return weights;
}

// Errors of loading model_tiny's initial parameters after `change`, without the file's name.
template <typename Change>
std::vector<std::string> errors_after(const Config& config, Change change, const char* file = "model_tiny") {
    const TemporaryFolder folder;
    const std::string path = folder.file("w");
    TensorFile tensors = read_safetensors(kGolden + file + "/init.safetensors");
    change(tensors.tensors);
    write_safetensors(path, tensors);
    std::vector<std::string> lines;
    try {
        (void)load_weights(path, config);
    } catch (const ConfigError& error) {
        for (const std::string& line : error.lines()) {
            REQUIRE(line.substr(0, path.size() + 2) == path + ": ");
            lines.push_back(line.substr(path.size() + 2));
        }
    }
    return lines;
}

double mean_square(const std::vector<float>& values) {
    double sum = 0;
    for (const float value : values) {
        sum += static_cast<double>(value) * static_cast<double>(value);
    }
    return sum / static_cast<double>(values.size());
}

// The network as network.flow = mm would hold it, by way of a file of cores.
Weights multiplied_out(Config config) {
    const TemporaryFolder folder;
    save_weights(folder.file("cores"), config, initial_weights(config));
    config.network.flow = Flow::Mm;
    return load_weights(folder.file("cores"), config);
}

std::int64_t rounded_thousandths(double value) {
    return std::llround(value * 1000);
}

}  // namespace

TEST_CASE("sizes and compression are those of the published model") {
    // Published: 36.7 to 93.5 MB dense; compression 29.76, 42.53, 51.15 (the exact ratio for 4 encoders is 42.5248).
    struct Row {
        int encoders;
        std::int64_t dense_words, tensor_words, dense_kb, tensor_kb;
        double compression;
    };
    for (const Row& row :
         {Row{2, 9187739, 308747, 36751, 1235, 29.7581}, Row{4, 16280987, 382859, 65124, 1531, 42.5248},
          Row{6, 23374235, 456971, 93497, 1828, 51.1504}}) {
        INFO(row.encoders);
        Config config;
        config.network.encoders = row.encoders;
        CHECK(parameter_words(config, true) == row.dense_words);
        CHECK(parameter_words(config, false) == row.tensor_words);
        const auto dense = static_cast<double>(parameter_words(config, true)) * 4;
        const auto tensor = static_cast<double>(parameter_words(config, false)) * 4;
        CHECK(rounded_thousandths(dense / 1e6) == row.dense_kb);
        CHECK(rounded_thousandths(tensor / 1e6) == row.tensor_kb);
        CHECK(dense / tensor == Approx(row.compression).margin(0.0001));
    }
}

TEST_CASE("names and shapes are those of the vector files") {
    const auto check = [](const std::string& folder, const Config& config) {
        INFO(folder);
        const TensorFile file = read_safetensors(kGolden + folder + "/init.safetensors");
        const std::vector<ParameterSpec> specs = parameter_specs(config);
        CHECK(specs.size() == file.tensors.size());
        for (const ParameterSpec& spec : specs) {
            INFO(spec.name);
            REQUIRE(file.tensors.count(spec.name) == 1);
            CHECK(file.tensors.at(spec.name).shape == spec.shape);
        }
        CHECK((load_weights(kGolden + folder + "/init.safetensors", config) == floats_of(file)));
    };
    check("model_tiny", tiny_config());
    check("model_tiny", tiny_config(Flow::Tt));
    check("model_tiny_dense", tiny_config(Flow::Mm));
    check("model_paper", Config{});
}

TEST_CASE("a feed-forward layer wider than the model has its own shapes") {
    Config config = tiny_config();
    config.network.d_ff = 60;
    config.tt.ffn_modes = {3, 4, 5};
    const auto shape_of = [&](const std::string& name, bool dense) {
        for (const ParameterSpec& spec : parameter_specs(config, dense)) {
            if (spec.name == "encoder.0.ffn." + name) {
                return spec.shape;
            }
        }
        return Shape{};
    };
    CHECK(shape_of("fc1.weight", true) == Shape{60, 24});
    CHECK(shape_of("fc1.bias", true) == Shape{60});
    CHECK(shape_of("fc2.weight", true) == Shape{24, 60});
    CHECK(shape_of("fc2.bias", false) == Shape{24});
    CHECK(shape_of("fc1.bias", false) == Shape{60});
    CHECK(shape_of("fc1.core.1", false) == Shape{3, 4, 3});
    CHECK(shape_of("fc1.core.2", false) == Shape{3, 5, 3});
    CHECK(shape_of("fc1.core.5", false) == Shape{3, 2, 1});
    CHECK(shape_of("fc2.core.3", false) == Shape{3, 5, 3});
    CHECK(shape_of("fc2.core.5", false) == Shape{3, 3, 1});
}

TEST_CASE("initial weights are those of the parameters, and the same bits on every host") {
    const Config config;
    const Weights weights = initial_weights(config);
    for (const ParameterSpec& spec : parameter_specs(config)) {
        INFO(spec.name);
        REQUIRE(weights.at(spec.name).size() == static_cast<std::size_t>(spec.words()));
    }
    CHECK(weights.size() == parameter_specs(config).size());
    const auto starts = [&](const std::string& name, float a, float b, float c) {
        const std::vector<float>& values = weights.at(name);
        return values[0] == a && values[1] == b && values[2] == c;
    };
    // From a second implementation of the generator (SplitMix64 over FNV-1a of the name) with unbounded integers.
    CHECK(starts("embed.pos", 0x1.513988p-5F, -0x1.f47f12p-7F, 0x1.295e78p-9F));
    CHECK(starts("encoder.0.attn.q.core.0", 0x1.7434d6p-3F, -0x1.0a823ep-2F, -0x1.8be802p-6F));
    CHECK(starts("intent.out.weight", 0x1.c328fp-4F, -0x1.162b94p-5F, -0x1.8c2d94p-5F));
}

TEST_CASE("initial values depend on the seed and the tensor's name, not on the other tensors") {
    Config config = tiny_config();
    const Weights one = initial_weights(config);
    CHECK((one == initial_weights(config)));
    CHECK(one.at("encoder.0.attn.q.core.1") != one.at("encoder.0.attn.k.core.1"));
    config.network.encoders = 2;
    config.network.slots = 9;
    CHECK(initial_weights(config).at("encoder.0.ffn.fc2.core.3") == one.at("encoder.0.ffn.fc2.core.3"));
    config.train.seed = 2;
    CHECK(initial_weights(config).at("encoder.0.attn.q.core.1") != one.at("encoder.0.attn.q.core.1"));
}

TEST_CASE("initial values have the stated spread, biases 0 and gammas 1") {
    const Config config;
    const Weights cores = initial_weights(config);
    CHECK(mean_square(cores.at("embed.pos")) == Approx(0.0016).epsilon(0.02));
    CHECK(mean_square(cores.at("slot.out.weight")) == Approx(2.0 / (768 + 129)).epsilon(0.02));
    for (const char* name : {"embed.ln.gamma", "encoder.1.ln2.gamma"}) {
        CHECK(cores.at(name) == std::vector<float>(768, 1.0F));
    }
    for (const char* name : {"embed.ln.beta", "encoder.0.attn.k.bias", "encoder.1.ffn.fc1.bias", "slot.fc.bias"}) {
        CHECK(cores.at(name) == std::vector<float>(768, 0.0F));
    }
    CHECK(cores.at("slot.out.bias") == std::vector<float>(129, 0.0F));

    // An entry of W is a sum of 12^5 products of six random numbers, so one W spreads more than a table of numbers;
    // the mean over the layers is what must fit.
    const Weights dense = multiplied_out(config);
    double sum = 0;
    int layers = 0;
    for (const auto& [name, values] : dense) {
        if (values.size() == 768 * 768) {
            CHECK(mean_square(values) == Approx(1.0 / 1536).epsilon(0.7));
            sum += mean_square(values);
            ++layers;
        }
    }
    CHECK(layers == 14);
    CHECK(sum / layers == Approx(1.0 / 1536).epsilon(0.25));
    CHECK(mean_square(dense.at("embed.token.weight")) == Approx(0.04).epsilon(0.5));

    Config mm;
    mm.network.flow = Flow::Mm;
    CHECK(mean_square(initial_weights(mm).at("encoder.1.attn.o.weight")) == Approx(1.0 / 1536).epsilon(0.01));
}

TEST_CASE("a checkpoint reads back bit for bit, and is the same file every time") {
    const TemporaryFolder folder;
    for (const Flow flow : {Flow::Btt, Flow::Mm}) {
        const Config config = tiny_config(flow);
        const Weights weights = initial_weights(config);
        save_weights(folder.file("a"), config, weights);
        save_weights(folder.file("b"), config, weights);
        CHECK((load_weights(folder.file("a"), config) == weights));
        CHECK((read_bytes(folder.file("a")) == read_bytes(folder.file("b"))));
        CHECK(read_safetensors(folder.file("a")).metadata.at("form") == (flow == Flow::Mm ? "dense" : "tensor"));
    }
}

TEST_CASE("a checkpoint's metadata describes the network as the vector files do") {
    const TemporaryFolder folder;
    const Config config = tiny_config();
    save_weights(folder.file("a"), config, initial_weights(config));
    const auto ours = read_safetensors(folder.file("a")).metadata;
    const auto stored = read_safetensors(kGolden + "model_tiny/init.safetensors").metadata;
    for (const char* key : {"kind", "form", "seq_len", "vocab", "d_model", "heads", "layers", "intents", "slots",
                            "ln_eps", "out_modes", "in_modes", "ranks", "vocab_modes", "emb_modes", "emb_ranks"}) {
        INFO(key);
        CHECK(ours.at(key) == stored.at(key));
    }
}

TEST_CASE("only exactly the network's tensors can be saved") {
    const TemporaryFolder folder;
    const Config config = tiny_config();
    Weights weights = initial_weights(config);
    weights["embed.pos"].pop_back();
    CHECK_THROWS_AS(save_weights(folder.file("a"), config, weights), std::invalid_argument);
    weights = initial_weights(config);
    weights.erase("embed.pos");
    CHECK_THROWS_AS(save_weights(folder.file("a"), config, weights), std::invalid_argument);
    weights["embed.position"] = {};
    CHECK_THROWS_AS(save_weights(folder.file("a"), config, weights), std::invalid_argument);
}

TEST_CASE("a checkpoint of another network is told tensor by tensor") {
    const auto errors = errors_after(tiny_config(), [](auto& tensors) {
        tensors.erase("embed.pos");
        tensors["embed.ln.beta"] = make_f32({4, 6}, std::vector<float>(24));
        tensors["encoder.1.ln1.gamma"] = make_f32({1}, {1});
        tensors["slot.out.bias"].type = contraflow::StoredType::I32;
        tensors["encoder.0.ln1.beta"] = make_f32({24}, std::vector<float>(24, std::nanf("")));
        auto values = tensors["intent.out.bias"].as_floats();
        values[3] = -std::numeric_limits<float>::infinity();
        tensors["intent.out.bias"] = make_f32({5}, values);
    });
    CHECK(errors == std::vector<std::string>{
                        "tensor 'embed.pos' (6, 24) is missing",
                        "tensor 'embed.ln.beta' has shape (4, 6), expected (24)",
                        "tensor 'encoder.0.ln1.beta' holds NaN at element 0, expected finite numbers",
                        "tensor 'intent.out.bias' holds an infinity at element 3, expected finite numbers",
                        "tensor 'slot.out.bias' is stored as I32, expected F32",
                        "tensor 'encoder.1.ln1.gamma' is not part of the configured network (network.encoders = 1, "
                        "network.flow = btt)",
                    });
}

TEST_CASE("a dense checkpoint does not start a tensor-train network, and each layer says so once") {
    const auto errors = errors_after(
        tiny_config(), [](auto&) {}, "model_tiny_dense");
    CHECK(errors.size() == 9);
    CHECK(
        errors.at(1) ==
        "encoder.0.attn.q.weight is one matrix, but network.flow = btt needs cores (encoder.0.attn.q.core.0); a dense "
        "file trains with mm");
}

TEST_CASE("cores start a dense network as their product") {
    const TensorFile cores = read_safetensors(kGolden + "model_tiny/init.safetensors");
    const Config config = tiny_config(Flow::Mm);
    const Weights dense = load_weights(kGolden + "model_tiny/init.safetensors", config);
    CHECK(dense.size() == parameter_specs(config).size());
    for (const ParameterSpec& spec : parameter_specs(config)) {
        INFO(spec.name);
        CHECK(dense.at(spec.name).size() == static_cast<std::size_t>(spec.words()));
    }

    // One entry of W, and one of the table, written out as the sum over all bonds.
    const auto core = [&](const std::string& layer, int k) {
        return cores.tensors.at(layer + ".core." + std::to_string(k)).as_doubles();
    };
    const std::size_t digits[6] = {1, 2, 3, 3, 1, 1};  // row (1 * 3 + 2) * 4 + 3 = 23, column (3 * 3 + 1) * 2 + 1 = 21
    const std::size_t modes[6] = {2, 3, 4, 4, 3, 2};
    std::vector<double> left{1.0};
    for (int k = 0; k < 6; ++k) {
        const std::vector<double> values = core("encoder.0.ffn.fc1", k);
        const auto mode = static_cast<std::size_t>(k);
        const std::size_t next = k == 5 ? 1 : 3;
        std::vector<double> right(next, 0.0);
        for (std::size_t r = 0; r < left.size(); ++r) {
            for (std::size_t s = 0; s < next; ++s) {
                right[s] += left[r] * values[(r * modes[mode] + digits[mode]) * next + s];
            }
        }
        left = right;
    }
    CHECK(dense.at("encoder.0.ffn.fc1.weight")[23 * 24 + 21] == static_cast<float>(left[0]));

    double entry = 0;  // token 14 = (1, 1, 2), column 21 = (1, 2, 1)
    for (std::size_t a = 0; a < 4; ++a) {
        for (std::size_t b = 0; b < 4; ++b) {
            entry += core("embed.token", 0)[(1 * 2 + 1) * 4 + a] *
                     core("embed.token", 1)[((a * 3 + 1) * 3 + 2) * 4 + b] *
                     core("embed.token", 2)[(b * 3 + 2) * 4 + 1];
        }
    }
    CHECK(dense.at("embed.token.weight")[14 * 24 + 21] == Approx(entry).epsilon(1e-6));
}

TEST_CASE("the product of a layer's cores is the stored dense matrix") {
    // tt_linear/r2_small holds cores (2,3,4) / (4,3,2) and their mm.W: put in the place of a layer of model_tiny.
    const TemporaryFolder folder;
    const TensorFile linear = read_safetensors(kGolden + "tt_linear/r2_small.safetensors");
    TensorFile file = read_safetensors(kGolden + "model_tiny/init.safetensors");
    for (int k = 0; k < 6; ++k) {
        const std::string core = "core." + std::to_string(k);
        file.tensors["slot.fc." + core] = linear.tensors.at(core);
    }
    write_safetensors(folder.file("w"), file);
    CHECK(load_weights(folder.file("w"), tiny_config(Flow::Mm)).at("slot.fc.weight") ==
          linear.tensors.at("mm.W").as_floats());
}

TEST_CASE("cores of any tensor-train shape start a dense network, others do not") {
    const Config config = tiny_config(Flow::Mm);
    const auto put = [](auto& tensors, const std::vector<Shape>& shapes) {
        for (int k = 0; k < 6; ++k) {
            tensors.erase("slot.fc.core." + std::to_string(k));
        }
        for (std::size_t k = 0; k < shapes.size(); ++k) {
            const Shape& s = shapes[k];
            tensors["slot.fc.core." + std::to_string(k)] =
                make_f32(s, std::vector<float>(static_cast<std::size_t>(s[0] * s[1] * s[2]), 0.5F));
        }
    };
    const std::vector<Shape> good[] = {{{1, 24, 5}, {5, 24, 1}}, {{1, 4, 7}, {7, 6, 2}, {2, 3, 9}, {9, 8, 1}}};
    for (const auto& shapes : good) {
        CHECK(errors_after(config, [&](auto& t) { put(t, shapes); }).empty());
    }
    const std::vector<Shape> bad[] = {
        {{1, 24, 5}, {4, 24, 1}},            // bond of 5 and 4
        {{1, 24, 2}, {2, 12, 1}},            // 24 x 12
        {{1, 24, 5}, {5, 24, 2}},            // open end
        {{1, 16, 2}, {2, 36, 1}},            // no cut after 24
        {{2, 24, 2}, {2, 24, 1}},            // open start
        {{1, 24, 2}, {2, 24, 1}, {1, 2, 1}}  // 24 x 48
    };
    for (const auto& shapes : bad) {
        CHECK(errors_after(config, [&](auto& t) { put(t, shapes); }) ==
              std::vector<std::string>{"the cores of 'slot.fc' do not chain up to a matrix (24, 24)"});
    }
    CHECK(errors_after(config, [](auto& t) {
              t.erase("slot.fc.core.3");  // the two behind it are then nobody's
          }).size() == 3);
    CHECK(
        errors_after(config, [](auto& t) {
            t["embed.token.core.1"] = make_f32({4, 3, 3, 4}, std::vector<float>(144, std::nanf("")));
        }) == std::vector<std::string>{"tensor 'embed.token.core.1' holds NaN at element 0, expected finite numbers"});
}
