// A labelled-text data set as training samples: sentences, slot tags and intents of one split, encoded with the ids of
// the training split. The file formats are described in traces/README.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "contraflow/config.h"
#include "contraflow/sample.h"

namespace contraflow {

// What the encoding had to bend, over a range of samples. Words and tags behind the cut are not counted.
struct DataCounts {
    std::int64_t unknown_words = 0;   // words that became [UNK]
    std::int64_t unseen_slots = 0;    // slot tags that the training split does not hold
    std::int64_t unseen_intents = 0;  // samples whose intent the training split does not hold
    std::int64_t cut_sentences = 0;   // samples with more than S - 1 words
};

class Dataset {
public:
    // Reads data.path/train (which defines the ids) and data.path/<data.split>.
    //   words:   0 [PAD], 1 [UNK], 2 [CLS], then the training words by descending frequency, ties by byte order
    //   slots:   0 [PAD], 1 [UNK] (also every unseen tag), then the training tags in byte order
    //   intents: the training intents in byte order; an unseen intent takes the last id, network.intents - 1
    // Throws ConfigError with one line per problem: a missing or malformed file, ids that exceed network.vocab,
    // network.slots or network.intents, or data.first outside the split.
    [[nodiscard]] static Dataset load(const Config& config);

    [[nodiscard]] std::size_t size() const { return sentences_.size(); }  // sentences of the split

    // The sample of training step `step_index` (from 0): sentence data.first + step_index in file order, starting over
    // at the end of the split. With data.shuffle each pass over the split has its own order, which depends on
    // train.seed and the number of the pass only. Not const: it keeps the order of the current pass.
    [[nodiscard]] Sample sample(std::size_t step_index);

    // Index in the split's files (from 0) of the sentence that sample(step_index) encodes.
    [[nodiscard]] std::size_t sentence_index(std::size_t step_index);

    // Events in the samples of steps 0 .. steps - 1.
    [[nodiscard]] DataCounts counts(std::size_t steps);

    // Texts in id order, the reserved ones included.
    [[nodiscard]] const std::vector<std::string>& words() const { return words_; }
    [[nodiscard]] const std::vector<std::string>& slots() const { return slots_; }
    [[nodiscard]] const std::vector<std::string>& intents() const { return intents_; }

private:
    struct Sentence {
        std::vector<std::int32_t> tokens;       // the words that are kept
        std::vector<std::int32_t> slot_labels;  // one per token
        std::int32_t intent = 0;
        DataCounts counts;  // of this sentence
    };

    Dataset() = default;

    std::vector<std::string> words_, slots_, intents_;
    std::vector<Sentence> sentences_;
    std::size_t seq_len_ = 0;
    std::size_t first_ = 0;
    bool shuffle_ = false;
    std::uint64_t seed_ = 0;
    std::vector<std::size_t> order_;  // of pass order_pass_; empty: none made yet
    std::size_t order_pass_ = 0;
};

}  // namespace contraflow
