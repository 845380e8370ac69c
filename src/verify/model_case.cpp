// The directory of a model: init and trace, and whichever of acts0, dacts0, grads0 and after1, after2, ... are there.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "config/validate.h"
#include "contraflow/error.h"
#include "contraflow/weights.h"
#include "verify/verify_case.h"

namespace contraflow::verify {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxSteps = 1'000'000;

std::vector<int> narrowed(const std::vector<std::int64_t>& values) {
    return {values.begin(), values.end()};
}

bool starts_with(const std::string& text, const std::string& prefix) {
    return text.compare(0, prefix.size(), prefix) == 0;
}
bool ends_with(const std::string& text, const std::string& suffix) {
    return text.size() >= suffix.size() && text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

// N of afterN.
std::optional<std::int64_t> steps_of(const std::string& stem) {
    const std::string digits = starts_with(stem, "after") ? stem.substr(5) : "";
    if (digits.empty() || digits.size() > 6 || digits.find_first_not_of("0123456789") != std::string::npos) {
        return std::nullopt;
    }
    return std::stoll(digits);
}

class ModelCase {
public:
    ModelCase(std::string directory, const Config& machine)
        : directory_(std::move(directory)), trace_(path("trace")), tensor_form_(true) {
        case_.path = directory_;
        case_.kind = "model";
        case_.is_model = true;
        case_.config = machine;
        network();
        case_.step = build_training_step(case_.config);
    }

    VerifyCase load() {
        require_form();
        for (auto& [name, values] : load_weights(path("init"), case_.config)) {
            case_.inputs.emplace_back(case_.step.find(name), std::move(values));
        }
        samples();
        losses();
        for (const char* name : {"step0.intent.logits", "step0.slot.logits"}) {
            if (trace_.has(name)) {
                const std::string tensor = std::string(name).substr(6);
                add(0, trace_, "trace", name, tensor, kLogitsBound);
            }
        }
        drop_unchecked(trace_, "trace");
        const std::vector<std::string> files = stems();
        for (const std::string& stem : files) {
            if (stem == "init" || stem == "trace") {
                continue;
            }
            const std::optional<std::int64_t> steps = steps_of(stem);
            if (stem == "acts0" || stem == "dacts0" || stem == "grads0") {
                first_step_file(stem);
            } else if (steps) {
                parameters_after(stem, *steps);
            } else {
                case_.unchecked.push_back(stem);
            }
        }
        return std::move(case_);
    }

private:
    [[nodiscard]] std::string path(const std::string& stem) const {
        return (fs::path(directory_) / (stem + ".safetensors")).string();
    }

    [[nodiscard]] std::vector<std::string> stems() const {
        std::vector<std::string> result;
        for (const auto& entry : fs::directory_iterator(directory_)) {
            if (entry.path().extension() == ".safetensors") {
                result.push_back(entry.path().stem().string());
            }
        }
        std::sort(result.begin(), result.end());
        return result;
    }

    // The network of the trace's metadata on the given machine.
    void network() {
        Config& config = case_.config;
        NetworkConfig& network = config.network;
        if (trace_.text("kind", "model") != "model") {
            trace_.fail("metadata kind is not \"model\"");
        }
        const std::string form = trace_.text("form", "tensor or dense");
        if (form != "tensor" && form != "dense") {
            trace_.fail(fmt::format("metadata form = \"{}\"; expected tensor or dense", form));
        }
        tensor_form_ = form == "tensor";
        const auto number = [&](const char* key, std::int64_t min, std::int64_t max) {
            return static_cast<int>(trace_.integer(key, min, max));
        };
        if (!tensor_form_) {
            network.flow = Flow::Mm;
        }
        network.encoders = number("layers", 1, 64);
        network.seq_len = number("seq_len", 2, 4096);
        network.vocab = number("vocab", 3, 1'000'000);
        network.d_model = number("d_model", 1, 65'536);
        network.d_ff = trace_.has_key("d_ff") ? number("d_ff", 1, 262'144) : network.d_model;
        network.heads = number("heads", 1, 1024);
        network.intents = number("intents", 1, 65'536);
        network.slots = number("slots", 1, 65'536);
        network.ln_eps = trace_.number("ln_eps");
        config.train.lr = trace_.number("lr");
        if (tensor_form_) {
            tensor_trains();
        } else {  // modes still say how wide a dense layer is
            config.tt.out_modes = config.tt.in_modes = {network.d_model};
            config.tt.ffn_modes = {network.d_ff};
            config.tt.ranks.clear();
        }
        for (const config::Conflict& conflict : config::find_conflicts(config)) {
            trace_.fail("metadata: " + conflict.keys.front() + " " + conflict.text);
        }
    }

    // load_weights would multiply the cores of a model that is said to be dense.
    void require_form() const {
        const VectorFile init(path("init"));
        for (const std::string& name : init.names()) {
            if (!tensor_form_ && name.find(".core.") != std::string::npos) {
                init.fail(
                    fmt::format("holds \"{}\", but trace.safetensors says form = \"dense\"; expected weights", name));
            }
        }
    }

    void tensor_trains() {
        Config& config = case_.config;
        const TtShape shape = trace_.tt_shape();
        config.tt.out_modes = narrowed(shape.out_modes);
        config.tt.in_modes = narrowed(shape.in_modes);
        config.tt.ranks = narrowed({shape.ranks.begin() + 1, shape.ranks.end() - 1});
        config.tt.ffn_modes.clear();
        if (trace_.has_key("ffn_modes")) {
            config.tt.ffn_modes = narrowed(trace_.integers("ffn_modes", 1 << 20));
        }
        const TtmShape table = trace_.ttm_shape("emb_ranks");
        const std::vector<std::int64_t> bonds(table.ranks.begin() + 1, table.ranks.end() - 1);
        if (std::set<std::int64_t>(bonds.begin(), bonds.end()).size() != 1) {
            trace_.fail(fmt::format("metadata emb_ranks = \"{}\"; expected the same rank on every bond",
                                    fmt::join(table.ranks, ",")));
        }
        config.ttm.rank = static_cast<int>(bonds.front());
        config.ttm.vocab_modes = narrowed(table.vocab_modes);
        config.ttm.hidden_modes = narrowed(table.hidden_modes);
    }

    void samples() {
        const NetworkConfig& network = case_.config.network;
        const std::vector<std::int64_t> words_shape = trace_.shape("words");
        const std::int64_t steps = words_shape.empty() ? 1 : words_shape.back();
        if (words_shape.size() > 1 || steps < 1 || steps > kMaxSteps) {
            trace_.fail(fmt::format("tensor \"words\" is {}; expected one number per step", shape_text(words_shape)));
        }
        const auto words = trace_.ints("words", {steps}, 0, network.seq_len - 1);
        const auto tokens = trace_.ints("tokens", {steps, network.seq_len}, 0, network.vocab - 1);
        const auto labels = trace_.ints("slot_labels", {steps, network.seq_len}, 0, network.slots - 1);
        const auto intents = trace_.ints("intent_labels", {steps}, 0, network.intents - 1);
        for (std::size_t i = 0; i < words.size(); ++i) {
            TrainingStep step;
            const auto first = static_cast<std::ptrdiff_t>(i) * network.seq_len;
            step.sample.tokens.assign(tokens.begin() + first, tokens.begin() + first + network.seq_len);
            step.sample.slot_labels.assign(labels.begin() + first, labels.begin() + first + network.seq_len);
            for (int position = 0; position < network.seq_len; ++position) {
                step.sample.real.push_back(position <= words[i] ? 1 : 0);
            }
            step.sample.intent = intents[i];
            step.sample.words = words[i];
            case_.steps.push_back(std::move(step));
        }
    }

    [[nodiscard]] bool multiplied_out_model() const { return tensor_form_ && case_.config.network.flow == Flow::Mm; }

    // The dense model made of the cores takes other steps than the cores themselves: only its first loss is the same.
    void losses() {
        const auto steps = static_cast<std::int64_t>(case_.steps.size());
        const char* dense = "dense_from_cores.loss.f64";
        const bool own = multiplied_out_model() && trace_.has(dense);
        const std::vector<float> stored = trace_.floats(own ? dense : "loss.f64", {steps});
        const std::size_t comparable = multiplied_out_model() && !own ? 1 : stored.size();
        for (std::size_t i = 0; i < comparable; ++i) {
            case_.steps[i].has_loss = true;
            case_.steps[i].loss = static_cast<double>(stored[i]);
        }
    }

    // One tensor of a file, expected after a step under a name of the machine.
    void add(std::size_t step, VectorFile& file, const std::string& stem, const std::string& name,
             const std::string& machine_name, double bound) {
        const TensorId id = case_.step.find(machine_name);
        if (id == kNoTensor) {
            file.fail(fmt::format("tensor \"{}\" is unknown; docs/verify.md lists the names", name));
        }
        Expectation expectation;
        expectation.name = stem + " " + name;
        expectation.tensor = id;
        expectation.stored = file.floats(name, case_.step.tensor(id).shape);
        expectation.bound = bound;
        case_.steps[step].expectations.push_back(std::move(expectation));
    }

    // Under flow mm, a file of a tensor-form model also holds cores, which have no counterpart.
    [[nodiscard]] bool is_foreign(const std::string& name) const {
        return multiplied_out_model() && name.find(".core.") != std::string::npos;
    }

    void first_step_file(const std::string& stem) {
        VectorFile file(path(stem));
        const bool gradients = stem != "acts0";
        const double bound = stem == "grads0" ? kGradientBound : kActivationBound;
        for (const std::string& name : file.names()) {
            if (is_foreign(name)) {
                continue;
            }
            add(0, file, stem, name, (gradients ? "d." : "") + name, bound);
            refine(stem, name, case_.steps[0].expectations.back());
        }
        drop_unchecked(file, stem);
    }

    // What must be exactly zero, and the gradients that are zero but for rounding.
    void refine(const std::string& stem, const std::string& name, Expectation& expectation) const {
        const NetworkConfig& network = case_.config.network;
        const Sample& sample = case_.steps[0].sample;
        const std::size_t elements = expectation.stored.size();
        const auto d_model = static_cast<std::size_t>(network.d_model);
        if (stem != "acts0" && sample.words == 0 &&
            (name.find(".attn.q") != std::string::npos || name.find(".attn.k") != std::string::npos)) {
            expectation.rule = Rule::Zero;  // one real key: its probability is 1 whatever q and k are
            expectation.bound = 0;
        } else if (stem == "acts0" && ends_with(name, ".attn.prob")) {
            expectation.zeros = padding_columns(elements, sample.real);
        } else if (stem == "dacts0" && elements % sample.real.size() == 0 && !starts_with(name, "intent.")) {
            const std::size_t rows =
                sample.real.size() * (ends_with(name, ".prob") ? static_cast<std::size_t>(network.heads) : 1);
            expectation.zeros = padding_rows(elements, elements / rows, sample.real);
        } else if (stem == "grads0" && name == "embed.pos") {
            expectation.zeros = padding_rows(elements, d_model, sample.real);
        } else if (stem == "grads0" && name == "embed.token.weight") {
            std::vector<std::int32_t> used(static_cast<std::size_t>(network.vocab), 0);
            for (const std::int32_t token : sample.tokens) {
                used[static_cast<std::size_t>(token)] = 1;
            }
            expectation.zeros = padding_rows(elements, d_model, used);
        } else if (stem == "grads0" && starts_with(name, "embed.token.core.")) {
            const std::size_t core = std::stoul(name.substr(name.rfind('.') + 1));
            expectation.zeros = unselected_slices(case_.config.ttm_table(), core, sample.tokens);
        } else if (stem == "grads0" && ends_with(name, ".attn.k.bias")) {
            expectation.rule = Rule::KeyBias;
            expectation.bound = kKeyBiasBound;
            expectation.keys = case_.step.find("d." + name.substr(0, name.size() - std::string(".bias").size()));
        }
    }

    void parameters_after(const std::string& stem, std::int64_t steps) {
        VectorFile file(path(stem));
        if (steps < 1 || steps > static_cast<std::int64_t>(case_.steps.size())) {
            file.fail(fmt::format("is named after {} steps; expected 1 to {}, the samples of trace.safetensors", steps,
                                  case_.steps.size()));
        }
        if (multiplied_out_model() && steps > 1) {
            case_.unchecked.push_back(stem);
            return;
        }
        for (const std::string& name : file.names()) {
            if (!is_foreign(name)) {
                add(static_cast<std::size_t>(steps - 1), file, stem, name, name, kParameterBound);
            }
        }
        drop_unchecked(file, stem);
    }

    void drop_unchecked(const VectorFile& file, const std::string& stem) {
        for (const std::string& name : file.unused()) {
            case_.unchecked.push_back(stem + " " + name);
        }
    }

    std::string directory_;
    VectorFile trace_;
    bool tensor_form_;
    VerifyCase case_;
};

}  // namespace

VerifyCase load_model(const std::string& directory, const Config& machine) {
    return ModelCase(directory, machine).load();
}

}  // namespace contraflow::verify
