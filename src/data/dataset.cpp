#include "contraflow/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "contraflow/error.h"
#include "data/counter_random.h"
#include "data/labelled_text.h"

namespace contraflow {

namespace {

constexpr std::int32_t kUnknownWord = 1;
constexpr std::int32_t kClsWord = 2;
constexpr std::int32_t kUnknownSlot = 1;

using IdTable = std::unordered_map<std::string, std::int32_t>;

// Ids of names[reserved ...]; the reserved names are never looked up, a word "[PAD]" in a text is a word.
IdTable id_table(const std::vector<std::string>& names, std::size_t reserved) {
    IdTable ids;
    for (std::size_t i = reserved; i < names.size(); ++i) {
        ids.emplace(names[i], static_cast<std::int32_t>(i));
    }
    return ids;
}

std::vector<std::string> word_names(const std::vector<LabelledSentence>& sentences) {
    std::map<std::string, std::int64_t> occurrences;
    for (const LabelledSentence& sentence : sentences) {
        for (const std::string& word : sentence.words) {
            ++occurrences[word];
        }
    }
    std::vector<std::pair<std::string, std::int64_t>> ranked(occurrences.begin(), occurrences.end());
    std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    std::vector<std::string> names{"[PAD]", "[UNK]", "[CLS]"};
    for (auto& entry : ranked) {
        names.push_back(std::move(entry.first));
    }
    return names;
}

std::vector<std::string> slot_names(const std::vector<LabelledSentence>& sentences) {
    std::set<std::string> tags;
    for (const LabelledSentence& sentence : sentences) {
        tags.insert(sentence.tags.begin(), sentence.tags.end());
    }
    std::vector<std::string> names{"[PAD]", "[UNK]"};
    names.insert(names.end(), tags.begin(), tags.end());
    return names;
}

std::vector<std::string> intent_names(const std::vector<LabelledSentence>& sentences) {
    std::set<std::string> intents;
    for (const LabelledSentence& sentence : sentences) {
        intents.insert(sentence.intent);
    }
    return {intents.begin(), intents.end()};
}

void check_capacity(const std::string& folder, const char* what, std::size_t needed, const char* key, int capacity,
                    std::vector<std::string>& problems) {
    if (needed > static_cast<std::size_t>(std::max(capacity, 0))) {
        problems.push_back(fmt::format("{}: the training split needs {} {}, but {} = {}; at least {} would fit", folder,
                                       needed, what, key, capacity, needed));
    }
}

// Order of one pass: Fisher-Yates, seeded by the run and the pass.
std::vector<std::size_t> shuffled_order(std::size_t size, std::uint64_t seed, std::size_t pass) {
    std::vector<std::size_t> order(size);
    for (std::size_t i = 0; i < size; ++i) {
        order[i] = i;
    }
    CounterRandom random(seed, "data.shuffle", pass);
    for (std::size_t left = size; left > 1; --left) {
        std::swap(order[left - 1], order[random.below(left)]);
    }
    return order;
}

}  // namespace

Dataset Dataset::load(const Config& config) {
    if (config.data.path.empty()) {
        throw ConfigError("data.path is not set; expected a folder with the splits as folders, e.g. traces/atis_like");
    }
    const std::filesystem::path base = config.data.path;
    const std::string train_folder = (base / "train").string();
    const std::string split_folder = (base / config.data.split).string();
    const std::vector<LabelledSentence> train = read_labelled_text(train_folder);
    const bool is_train = config.data.split == "train";
    const std::vector<LabelledSentence> other =
        is_train ? std::vector<LabelledSentence>{} : read_labelled_text(split_folder);
    const std::vector<LabelledSentence>& split = is_train ? train : other;

    Dataset set;
    set.words_ = word_names(train);
    set.slots_ = slot_names(train);
    set.intents_ = intent_names(train);
    set.seq_len_ = static_cast<std::size_t>(config.network.seq_len);
    set.shuffle_ = config.data.shuffle;
    set.seed_ = config.train.seed;

    std::vector<std::string> problems;
    check_capacity(train_folder, "word ids (with [PAD], [UNK], [CLS])", set.words_.size(), "network.vocab",
                   config.network.vocab, problems);
    check_capacity(train_folder, "slot ids (with [PAD], [UNK])", set.slots_.size(), "network.slots",
                   config.network.slots, problems);
    check_capacity(train_folder, "intents", set.intents_.size(), "network.intents", config.network.intents, problems);
    if (config.data.first < 0 || static_cast<std::uint64_t>(config.data.first) >= split.size()) {
        problems.push_back(fmt::format("data.first = {} is not a sentence of {}, which holds {}: expected 0 to {}",
                                       config.data.first, split_folder, split.size(), split.size() - 1));
    } else {
        set.first_ = static_cast<std::size_t>(config.data.first);
    }

    const IdTable word_ids = id_table(set.words_, 3);
    const IdTable slot_ids = id_table(set.slots_, 2);
    const IdTable intent_ids = id_table(set.intents_, 0);
    const std::int32_t unseen_intent = config.network.intents - 1;
    set.sentences_.reserve(split.size());
    for (const LabelledSentence& text : split) {
        Sentence sentence;
        const std::size_t kept = std::min(text.words.size(), set.seq_len_ - 1);
        sentence.counts.cut_sentences = kept < text.words.size() ? 1 : 0;
        for (std::size_t i = 0; i < kept; ++i) {
            const auto word = word_ids.find(text.words[i]);
            const auto slot = slot_ids.find(text.tags[i]);
            sentence.tokens.push_back(word == word_ids.end() ? kUnknownWord : word->second);
            sentence.slot_labels.push_back(slot == slot_ids.end() ? kUnknownSlot : slot->second);
            sentence.counts.unknown_words += word == word_ids.end() ? 1 : 0;
            sentence.counts.unseen_slots += slot == slot_ids.end() ? 1 : 0;
        }
        const auto intent = intent_ids.find(text.intent);
        sentence.intent = intent == intent_ids.end() ? unseen_intent : intent->second;
        sentence.counts.unseen_intents = intent == intent_ids.end() ? 1 : 0;
        set.sentences_.push_back(std::move(sentence));
    }
    // With as many training intents as classes, the last id already means one of them.
    const bool any_unseen = std::any_of(set.sentences_.begin(), set.sentences_.end(),
                                        [](const Sentence& s) { return s.counts.unseen_intents > 0; });
    if (any_unseen && set.intents_.size() == static_cast<std::size_t>(std::max(config.network.intents, 0))) {
        problems.push_back(fmt::format(
            "{}: holds intents that the training split does not, but its {} intents take every id of network.intents = "
            "{}; {} would leave one for them",
            split_folder, set.intents_.size(), config.network.intents, set.intents_.size() + 1));
    }
    if (!problems.empty()) {
        throw ConfigError(problems);
    }
    return set;
}

std::size_t Dataset::sentence_index(std::size_t step_index) {
    const std::size_t position = first_ + step_index;
    if (!shuffle_) {
        return position % size();
    }
    const std::size_t pass = position / size();
    if (order_.empty() || order_pass_ != pass) {
        order_ = shuffled_order(size(), seed_, pass);
        order_pass_ = pass;
    }
    return order_[position % size()];
}

Sample Dataset::sample(std::size_t step_index) {
    const Sentence& sentence = sentences_[sentence_index(step_index)];
    const std::size_t words = sentence.tokens.size();
    Sample sample;
    sample.tokens.assign(seq_len_, 0);
    sample.slot_labels.assign(seq_len_, 0);
    sample.real.assign(seq_len_, 0);
    sample.tokens[0] = kClsWord;
    std::copy(sentence.tokens.begin(), sentence.tokens.end(), sample.tokens.begin() + 1);
    std::copy(sentence.slot_labels.begin(), sentence.slot_labels.end(), sample.slot_labels.begin() + 1);
    std::fill_n(sample.real.begin(), words + 1, 1);
    sample.intent = sentence.intent;
    sample.words = static_cast<std::int32_t>(words);
    return sample;
}

DataCounts Dataset::counts(std::size_t steps) {
    DataCounts total;
    for (std::size_t step = 0; step < steps; ++step) {
        const DataCounts& one = sentences_[sentence_index(step)].counts;
        total.unknown_words += one.unknown_words;
        total.unseen_slots += one.unseen_slots;
        total.unseen_intents += one.unseen_intents;
        total.cut_sentences += one.cut_sentences;
    }
    return total;
}

}  // namespace contraflow
