#include "verify/vector_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "contraflow/error.h"

namespace contraflow::verify {
namespace {

constexpr std::int64_t kMaxMode = 1 << 20;
constexpr std::int64_t kMaxRank = 4096;
constexpr std::int64_t kMaxProduct = std::int64_t{1} << 31;  // of the modes of one side
constexpr std::size_t kMaxModes = 8;

std::vector<std::int64_t> without_ones(std::vector<std::int64_t> shape) {
    shape.erase(std::remove(shape.begin(), shape.end(), 1), shape.end());
    return shape;
}

bool is_whole(const std::string& text) {
    return !text.empty() && text.size() <= 18 && text.find_first_not_of("0123456789") == std::string::npos;
}

std::int64_t product(const std::vector<std::int64_t>& values) {
    std::int64_t result = 1;
    for (const std::int64_t value : values) {
        result = std::min(result * value, kMaxProduct + 1);  // both factors are small enough not to wrap
    }
    return result;
}

}  // namespace

std::string shape_text(const std::vector<std::int64_t>& shape) {
    return shape.empty() ? "a scalar" : fmt::format("{}", fmt::join(shape, " x "));
}

VectorFile::VectorFile(std::string path) : path_(std::move(path)), file_(read_safetensors(path_)) {}

void VectorFile::fail(const std::string& problem) const {
    throw ConfigError(path_ + ": " + problem);
}

std::string VectorFile::text(const std::string& key, const std::string& expected) const {
    const auto found = file_.metadata.find(key);
    if (found == file_.metadata.end()) {
        fail(fmt::format("the metadata has no \"{}\"; expected {}", key, expected));
    }
    return found->second;
}

std::int64_t VectorFile::integer(const std::string& key, std::int64_t min, std::int64_t max) const {
    const std::string expected = fmt::format("a whole number of {} to {}", min, max);
    const std::string value = text(key, expected);
    if (!is_whole(value) || std::stoll(value) < min || std::stoll(value) > max) {
        fail(fmt::format("metadata {} = \"{}\"; expected {}", key, value, expected));
    }
    return std::stoll(value);
}

std::vector<std::int64_t> VectorFile::integers(const std::string& key, std::int64_t max) const {
    const std::string expected = fmt::format("comma-separated whole numbers of 1 to {}", max);
    const std::string value = text(key, expected);
    std::vector<std::int64_t> result;
    for (std::size_t begin = 0; begin <= value.size();) {
        const std::size_t end = std::min(value.find(',', begin), value.size());
        const std::string item = value.substr(begin, end - begin);
        if (!is_whole(item) || std::stoll(item) < 1 || std::stoll(item) > max) {
            fail(fmt::format("metadata {} = \"{}\"; expected {}", key, value, expected));
        }
        result.push_back(std::stoll(item));
        begin = end + 1;
    }
    return result;
}

double VectorFile::number(const std::string& key) const {
    const std::string value = text(key, "a positive number");
    std::size_t used = 0;
    double result = 0;
    try {
        result = std::stod(value, &used);
    } catch (const std::exception&) {
        used = 0;
    }
    if (used == 0 || used != value.size() || !std::isfinite(result) || result <= 0) {
        fail(fmt::format("metadata {} = \"{}\"; expected a positive number", key, value));
    }
    return result;
}

TtShape VectorFile::tt_shape() const {
    TtShape shape{integers("out_modes", kMaxMode), integers("in_modes", kMaxMode), integers("ranks", kMaxRank)};
    for (const auto& [key, modes] : {std::pair("out_modes", shape.out_modes), std::pair("in_modes", shape.in_modes)}) {
        if (modes.size() > kMaxModes || product(modes) > kMaxProduct) {
            fail(fmt::format("metadata {}: at most {} modes whose product is at most {}", key, kMaxModes, kMaxProduct));
        }
    }
    if (shape.ranks.size() != shape.num_cores() + 1 || shape.ranks.front() != 1 || shape.ranks.back() != 1) {
        fail(fmt::format("metadata ranks = \"{}\"; expected {} ranks for {} output and {} input cores, 1 at both ends",
                         fmt::join(shape.ranks, ","), shape.num_cores() + 1, shape.out_modes.size(),
                         shape.in_modes.size()));
    }
    return shape;
}

TtmShape VectorFile::ttm_shape(const std::string& ranks_key) const {
    TtmShape shape{integers("vocab_modes", kMaxMode), integers("emb_modes", kMaxMode), integers(ranks_key, kMaxRank)};
    for (const auto& [key, modes] :
         {std::pair("vocab_modes", shape.vocab_modes), std::pair("emb_modes", shape.hidden_modes)}) {
        if (modes.size() > kMaxModes || modes.size() < 2 || product(modes) > kMaxProduct) {
            fail(fmt::format("metadata {}: expected 2 to {} modes whose product is at most {}", key, kMaxModes,
                             kMaxProduct));
        }
    }
    if (shape.hidden_modes.size() != shape.vocab_modes.size()) {
        fail(fmt::format("metadata emb_modes has {} modes and vocab_modes {}; expected as many",
                         shape.hidden_modes.size(), shape.vocab_modes.size()));
    }
    if (shape.ranks.size() != shape.num_cores() + 1 || shape.ranks.front() != 1 || shape.ranks.back() != 1) {
        fail(fmt::format("metadata {} = \"{}\"; expected {} ranks for {} cores, 1 at both ends", ranks_key,
                         fmt::join(shape.ranks, ","), shape.num_cores() + 1, shape.num_cores()));
    }
    return shape;
}

const StoredTensor& VectorFile::stored(const std::string& name) const {
    const auto found = file_.tensors.find(name);
    if (found == file_.tensors.end()) {
        fail(fmt::format("has no tensor \"{}\"", name));
    }
    return found->second;
}

const StoredTensor& VectorFile::stored(const std::string& name, const std::vector<std::int64_t>& shape) {
    const auto found = file_.tensors.find(name);
    if (found == file_.tensors.end()) {
        fail(fmt::format("has no tensor \"{}\"; expected one of shape {}", name, shape_text(shape)));
    }
    if (without_ones(found->second.shape) != without_ones(shape)) {
        fail(fmt::format("tensor \"{}\" is {}; expected {}", name, shape_text(found->second.shape), shape_text(shape)));
    }
    used_.insert(name);
    return found->second;
}

const std::vector<std::int64_t>& VectorFile::shape(const std::string& name) const {
    return stored(name).shape;
}

std::vector<float> VectorFile::floats(const std::string& name, const std::vector<std::int64_t>& shape) {
    const StoredTensor& tensor = stored(name, shape);
    if (tensor.type != StoredType::F32 && tensor.type != StoredType::F64) {
        fail(fmt::format("tensor \"{}\" holds integers; expected F32 or F64", name));
    }
    std::vector<float> values = tensor.as_floats();
    const auto bad = std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
    if (bad != values.end()) {
        fail(fmt::format("tensor \"{}\": element {} is {}; expected finite values", name, bad - values.begin(), *bad));
    }
    return values;
}

std::vector<std::int32_t> VectorFile::ints(const std::string& name, const std::vector<std::int64_t>& shape,
                                           std::int32_t min, std::int32_t max) {
    const StoredTensor& tensor = stored(name, shape);
    if (tensor.type != StoredType::I32 && tensor.type != StoredType::U8) {
        fail(fmt::format("tensor \"{}\" holds floating-point numbers; expected I32 or U8", name));
    }
    std::vector<std::int32_t> values = tensor.as_ints();
    const auto bad =
        std::find_if(values.begin(), values.end(), [&](std::int32_t value) { return value < min || value > max; });
    if (bad != values.end()) {
        fail(fmt::format("tensor \"{}\": element {} is {}; expected {} to {}", name, bad - values.begin(), *bad, min,
                         max));
    }
    return values;
}

std::vector<std::string> VectorFile::names() const {
    std::vector<std::string> result;
    for (const auto& entry : file_.tensors) {
        result.push_back(entry.first);
    }
    return result;
}

std::vector<std::string> VectorFile::unused() const {
    std::vector<std::string> result;
    for (const auto& entry : file_.tensors) {
        if (used_.count(entry.first) == 0) {
            result.push_back(entry.first);
        }
    }
    return result;
}

}  // namespace contraflow::verify
