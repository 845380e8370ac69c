// Checkpoints: the parameters of a network as a safetensors file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <set>
#include <stdexcept>

#include "contraflow/error.h"
#include "contraflow/safetensors.h"
#include "contraflow/weights.h"
#include "data/text_lines.h"

namespace contraflow {

namespace {

constexpr const char* kWeightSuffix = ".weight";

const char* type_name(StoredType type) {
    switch (type) {
        case StoredType::F32:
            return "F32";
        case StoredType::F64:
            return "F64";
        case StoredType::I32:
            return "I32";
        case StoredType::U8:
            return "U8";
    }
    return "?";
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
    return fmt::format("({})", fmt::join(shape, ", "));
}

std::string flow_name(Flow flow) {
    return flow == Flow::Btt ? "btt" : flow == Flow::Tt ? "tt" : "mm";
}

bool ends_with(const std::string& text, const std::string& end) {
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Product of three-index cores (r, mode, r') or four-index cores (r, row mode, column mode, r') in double, as the
// matrix whose row index is built from the modes of `row_modes` and column index from those of `col_modes`, first mode
// slowest. A three-index core counts as (r, mode, 1, r') before and (r, 1, mode, r') after the `out_cores`-th.
std::vector<float> multiply_out(const std::vector<const StoredTensor*>& cores, std::size_t out_cores) {
    std::vector<double> product{1.0};  // rows x cols x rank
    std::size_t rows = 1;
    std::size_t cols = 1;
    std::size_t rank = 1;
    for (std::size_t k = 0; k < cores.size(); ++k) {
        const std::vector<std::int64_t>& shape = cores[k]->shape;
        const auto extent = [&](std::size_t i) { return static_cast<std::size_t>(shape[i]); };
        const bool four = shape.size() == 4;
        const std::size_t row_mode = four ? extent(1) : (k < out_cores ? extent(1) : 1);
        const std::size_t col_mode = four ? extent(2) : (k < out_cores ? 1 : extent(1));
        const std::size_t next_rank = extent(shape.size() - 1);
        const std::vector<double> core = cores[k]->as_doubles();
        std::vector<double> next(rows * row_mode * cols * col_mode * next_rank, 0.0);
        for (std::size_t row = 0; row < rows * row_mode; ++row) {
            for (std::size_t col = 0; col < cols * col_mode; ++col) {
                double* const out = &next[(row * cols * col_mode + col) * next_rank];
                const double* const left = &product[((row / row_mode) * cols + col / col_mode) * rank];
                const std::size_t digit = (row % row_mode) * col_mode + col % col_mode;
                for (std::size_t r = 0; r < rank; ++r) {
                    const double* const right = &core[(r * row_mode * col_mode + digit) * next_rank];
                    for (std::size_t s = 0; s < next_rank; ++s) {
                        out[s] += left[r] * right[s];
                    }
                }
            }
        }
        product = std::move(next);
        rows *= row_mode;
        cols *= col_mode;
        rank = next_rank;
    }
    return {product.begin(), product.end()};
}

// A checkpoint being read: what is taken is noted, so that what is left can be reported.
class CheckpointReader {
public:
    CheckpointReader(const std::string& path, const Config& config)
        : path_(path), config_(config), file_(read_safetensors(path)) {}

    Weights read() {
        const bool dense = config_.network.flow == Flow::Mm;
        std::set<std::string> dense_layers;  // layers that the file holds as a matrix and the flow as cores
        for (const ParameterSpec& spec : parameter_specs(config_)) {
            if (file_.tensors.count(spec.name) > 0) {
                take(spec);
            } else if (dense && ends_with(spec.name, kWeightSuffix) && has(layer_of(spec.name), ".core.")) {
                take_product(spec);
            } else if (const std::string layer = layer_of(spec.name);
                       !dense && spec.name.find(".core.") != std::string::npos && is_matrix(layer)) {
                if (dense_layers.insert(layer).second) {
                    taken_.insert(layer + kWeightSuffix);
                    problem("{} is one matrix, but network.flow = {} needs cores ({}); a dense file trains with mm",
                            layer + kWeightSuffix, flow_name(config_.network.flow), spec.name);
                }
            } else {
                problem("tensor '{}' {} is missing", spec.name, shape_text(spec.shape));
            }
        }
        for (const auto& entry : file_.tensors) {
            if (taken_.count(entry.first) == 0) {
                problem("tensor '{}' is not part of the configured network (network.encoders = {}, network.flow = {})",
                        printable(entry.first), config_.network.encoders, flow_name(config_.network.flow));
            }
        }
        if (!problems_.empty()) {
            throw ConfigError(problems_);
        }
        return std::move(weights_);
    }

private:
    template <typename... Args>
    void problem(const char* format, const Args&... args) {
        problems_.push_back(path_ + ": " + fmt::format(fmt::runtime(format), args...));
    }

    // encoder.0.attn.q of encoder.0.attn.q.weight and of encoder.0.attn.q.core.3
    static std::string layer_of(const std::string& name) {
        const std::size_t core = name.find(".core.");
        return name.substr(0, core == std::string::npos ? name.rfind('.') : core);
    }

    [[nodiscard]] bool has(const std::string& layer, const char* member) const {
        const auto found = file_.tensors.lower_bound(layer + member);
        return found != file_.tensors.end() && found->first.compare(0, (layer + member).size(), layer + member) == 0;
    }

    [[nodiscard]] bool is_matrix(const std::string& layer) const {
        return file_.tensors.count(layer + kWeightSuffix) > 0;
    }

    // False, with a problem noted, unless the values are finite F32.
    bool check_values(const std::string& name, const StoredTensor& tensor) {
        if (tensor.type != StoredType::F32) {
            problem("tensor '{}' is stored as {}, expected F32", name, type_name(tensor.type));
            return false;
        }
        const std::vector<float> values = tensor.as_floats();
        const auto bad = std::find_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
        if (bad != values.end()) {
            problem("tensor '{}' holds {} at element {}, expected finite numbers", name,
                    std::isnan(*bad) ? "NaN" : "an infinity", bad - values.begin());
            return false;
        }
        return true;
    }

    void take(const ParameterSpec& spec) {
        taken_.insert(spec.name);
        const StoredTensor& tensor = file_.tensors.at(spec.name);
        if (tensor.shape != spec.shape) {
            problem("tensor '{}' has shape {}, expected {}", spec.name, shape_text(tensor.shape),
                    shape_text(spec.shape));
        } else if (check_values(spec.name, tensor)) {
            weights_.emplace(spec.name, tensor.as_floats());
        }
    }

    // The matrix `spec` from the cores the file has in its place.
    void take_product(const ParameterSpec& spec) {
        const std::string layer = layer_of(spec.name);
        std::vector<const StoredTensor*> cores;
        bool good = true;
        for (;;) {
            const std::string name = fmt::format("{}.core.{}", layer, cores.size());
            const auto found = file_.tensors.find(name);
            if (found == file_.tensors.end()) {
                break;
            }
            taken_.insert(name);
            cores.push_back(&found->second);
            good = check_values(name, found->second) && good;
        }
        const std::optional<std::size_t> out_cores = split_of(cores, spec.shape, layer == "embed.token" ? 4 : 3);
        if (!out_cores) {
            problem("the cores of '{}' do not chain up to a matrix {}", layer, shape_text(spec.shape));
        } else if (good) {
            weights_.emplace(spec.name, multiply_out(cores, *out_cores));
        }
    }

    // Number of output cores, if these cores of `indices` indices each make up a matrix of this shape. Modes of 1
    // leave a choice, but not in the product.
    static std::optional<std::size_t> split_of(const std::vector<const StoredTensor*>& cores,
                                               const std::vector<std::int64_t>& shape, std::size_t indices) {
        const std::int64_t words = shape[0] * shape[1];
        std::int64_t rank = 1;
        std::int64_t rows = 1;
        std::int64_t cols = 1;
        std::optional<std::size_t> out_cores;
        for (std::size_t k = 0; k < cores.size(); ++k) {
            const std::vector<std::int64_t>& core = cores[k]->shape;
            if (core.size() != indices || core.front() != rank || core[1] < 1 || core[1] > words) {
                return std::nullopt;
            }
            if (indices == 3 && !out_cores && rows == shape[0]) {
                out_cores = k;
            }
            (indices == 4 || !out_cores ? rows : cols) *= core[1];
            if (indices == 4) {
                if (core[2] < 1 || core[2] > words) {
                    return std::nullopt;
                }
                cols *= core[2];
            }
            if (rows > shape[0] || cols > shape[1]) {
                return std::nullopt;
            }
            rank = core.back();
        }
        if (rank != 1 || rows != shape[0] || cols != shape[1]) {
            return std::nullopt;
        }
        return out_cores.value_or(cores.size());
    }

    std::string path_;
    const Config& config_;
    TensorFile file_;
    Weights weights_;
    std::set<std::string> taken_;
    std::vector<std::string> problems_;
};

std::string list(const std::vector<std::int64_t>& values) {
    return fmt::format("{}", fmt::join(values, ","));
}

std::map<std::string, std::string> checkpoint_metadata(const Config& config) {
    const NetworkConfig& network = config.network;
    const bool dense = network.flow == Flow::Mm;
    std::map<std::string, std::string> metadata{
        {"kind", "model"},
        {"content", "parameters"},
        {"form", dense ? "dense" : "tensor"},
        {"stored_as", "float32"},
        {"seq_len", fmt::to_string(network.seq_len)},
        {"vocab", fmt::to_string(network.vocab)},
        {"d_model", fmt::to_string(network.d_model)},
        {"d_ff", fmt::to_string(network.d_ff)},
        {"heads", fmt::to_string(network.heads)},
        {"layers", fmt::to_string(network.encoders)},
        {"intents", fmt::to_string(network.intents)},
        {"slots", fmt::to_string(network.slots)},
        {"ln_eps", fmt::to_string(network.ln_eps)},
        {"lr", fmt::to_string(config.train.lr)},
        {"seed", fmt::to_string(config.train.seed)},
    };
    if (!dense) {
        const TtShape model = config.tt_model();
        const TtmShape table = config.ttm_table();
        metadata["out_modes"] = list(model.out_modes);
        metadata["in_modes"] = list(model.in_modes);
        metadata["ranks"] = list(model.ranks);
        metadata["vocab_modes"] = list(table.vocab_modes);
        metadata["emb_modes"] = list(table.hidden_modes);
        metadata["emb_ranks"] = list(table.ranks);
    }
    return metadata;
}

}  // namespace

Weights load_weights(const std::string& path, const Config& config) {
    return CheckpointReader(path, config).read();
}

void save_weights(const std::string& path, const Config& config, const Weights& weights) {
    const std::vector<ParameterSpec> specs = parameter_specs(config);
    if (specs.size() != weights.size()) {
        throw std::invalid_argument(
            fmt::format("save_weights: {} tensors, the network has {}", weights.size(), specs.size()));
    }
    TensorFile file;
    file.metadata = checkpoint_metadata(config);
    for (const ParameterSpec& spec : specs) {
        const auto found = weights.find(spec.name);
        if (found == weights.end()) {
            throw std::invalid_argument("save_weights: no tensor " + spec.name);
        }
        file.tensors.emplace(spec.name, make_f32(spec.shape, found->second));
    }
    write_safetensors(path, file);
}

}  // namespace contraflow
