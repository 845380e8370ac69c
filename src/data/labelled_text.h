// The three-file format of labelled sentences: seq.in (words), seq.out (one slot tag per word), label (the intent).
#pragma once

#include <string>
#include <vector>

namespace contraflow {

struct LabelledSentence {
    std::vector<std::string> words;
    std::vector<std::string> tags;  // one per word
    std::string intent;             // several intents stay joined by '#'
};

// Sentences of one split in file order. Throws ConfigError with one line per problem, at most 20 of them.
[[nodiscard]] std::vector<LabelledSentence> read_labelled_text(const std::string& folder);

}  // namespace contraflow
