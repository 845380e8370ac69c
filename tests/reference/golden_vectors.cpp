#include "reference/golden_vectors.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>

namespace contraflow::golden {
namespace {

std::filesystem::path root() {
    return std::filesystem::path(CONTRAFLOW_SOURCE_DIR) / "tests" / "golden";
}

std::vector<int> narrowed(const std::vector<std::int64_t>& values) {
    std::vector<int> result;
    for (const std::int64_t value : values) {
        result.push_back(static_cast<int>(value));
    }
    return result;
}

std::vector<std::int32_t> row(const std::vector<std::int32_t>& values, std::size_t index, std::size_t length) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(index * length);
    return {first, first + static_cast<std::ptrdiff_t>(length)};
}

}  // namespace

TensorFile load(const std::string& path) {
    return read_safetensors((root() / path).string());
}

std::vector<std::string> files_of(const std::string& folder) {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(root() / folder)) {
        const std::string name = entry.path().filename().string();
        if (entry.path().extension() == ".safetensors" && name.find(".f64.") == std::string::npos) {
            files.push_back(folder + "/" + name);
        }
    }
    std::sort(files.begin(), files.end());
    return files;
}

std::vector<std::int64_t> integers(const TensorFile& file, const std::string& key) {
    std::vector<std::int64_t> values;
    std::istringstream text(file.metadata.at(key));
    for (std::string item; std::getline(text, item, ',');) {
        values.push_back(std::stoll(item));
    }
    return values;
}

std::int64_t integer(const TensorFile& file, const std::string& key) {
    return integers(file, key).at(0);
}

double error(const std::vector<float>& got, const StoredTensor& stored) {
    const std::vector<float> expected = stored.as_floats();
    if (got.size() != expected.size()) {
        return std::numeric_limits<double>::infinity();
    }
    double difference = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const double here = std::abs(static_cast<double>(got[i]) - static_cast<double>(expected[i]));
        if (std::isnan(here)) {
            return std::numeric_limits<double>::infinity();
        }
        difference = std::max(difference, here);
    }
    return difference == 0 ? 0 : difference / largest_magnitude(expected);
}

double largest_magnitude(const std::vector<float>& values) {
    double largest = 0;
    for (const float value : values) {
        largest = std::max(largest, std::abs(static_cast<double>(value)));
    }
    return largest;
}

TtShape tt_shape(const TensorFile& file) {
    return {integers(file, "out_modes"), integers(file, "in_modes"), integers(file, "ranks")};
}

TtmShape ttm_shape(const TensorFile& file) {
    return {integers(file, "vocab_modes"), integers(file, "emb_modes"), integers(file, "ranks")};
}

Config model_config(const TensorFile& file) {
    const auto number = [&](const std::string& key) { return static_cast<int>(integer(file, key)); };
    Config config;
    config.network.flow = file.metadata.at("form") == "dense" ? Flow::Mm : Flow::Btt;
    config.network.encoders = number("layers");
    config.network.seq_len = number("seq_len");
    config.network.vocab = number("vocab");
    config.network.d_model = number("d_model");
    config.network.d_ff = number("d_model");
    config.network.heads = number("heads");
    config.network.intents = number("intents");
    config.network.slots = number("slots");
    config.network.ln_eps = std::stod(file.metadata.at("ln_eps"));
    const std::vector<int> ranks = narrowed(integers(file, "ranks"));
    config.tt.ranks.assign(ranks.begin() + 1, ranks.end() - 1);
    config.tt.out_modes = narrowed(integers(file, "out_modes"));
    config.tt.in_modes = narrowed(integers(file, "in_modes"));
    config.ttm.rank = narrowed(integers(file, "emb_ranks")).at(1);
    config.ttm.vocab_modes = narrowed(integers(file, "vocab_modes"));
    config.ttm.hidden_modes = narrowed(integers(file, "emb_modes"));
    config.train.lr = std::stod(file.metadata.at("lr"));
    return config;
}

std::vector<Sample> trace_samples(const TensorFile& trace) {
    const std::vector<std::int32_t> tokens = trace.tensors.at("tokens").as_ints();
    const std::vector<std::int32_t> labels = trace.tensors.at("slot_labels").as_ints();
    const std::vector<std::int32_t> intents = trace.tensors.at("intent_labels").as_ints();
    const std::vector<std::int32_t> words = trace.tensors.at("words").as_ints();
    const std::size_t length = tokens.size() / words.size();
    std::vector<Sample> samples;
    for (std::size_t step = 0; step < words.size(); ++step) {
        Sample sample;
        sample.tokens = row(tokens, step, length);
        sample.slot_labels = row(labels, step, length);
        for (std::size_t position = 0; position < length; ++position) {
            sample.real.push_back(position <= static_cast<std::size_t>(words[step]) ? 1 : 0);
        }
        sample.intent = intents[step];
        sample.words = words[step];
        samples.push_back(sample);
    }
    return samples;
}

}  // namespace contraflow::golden
