#include "data/labelled_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>

#include "contraflow/error.h"
#include "data/text_lines.h"

namespace contraflow {

namespace {

// A file in a wrong format has a problem on every line; the first ones say all there is to know.
constexpr std::size_t kMaxProblems = 20;

void throw_if_any(std::vector<std::string>& problems) {
    if (problems.empty()) {
        return;
    }
    if (problems.size() > kMaxProblems) {
        const std::size_t left = problems.size() - kMaxProblems;
        problems.resize(kMaxProblems);
        problems.push_back(fmt::format("... and {} more problems", left));
    }
    throw ConfigError(problems);
}

}  // namespace

std::vector<LabelledSentence> read_labelled_text(const std::string& folder) {
    const std::filesystem::path base = folder;
    std::error_code error;
    if (!std::filesystem::exists(base, error)) {
        throw ConfigError(fmt::format(
            "{}: no such folder; expected it to hold seq.in, seq.out and label (data.path, data.split)", folder));
    }
    if (!std::filesystem::is_directory(base, error)) {
        throw ConfigError(fmt::format("{}: is a file, expected a folder with seq.in, seq.out and label", folder));
    }

    const std::string words_path = (base / "seq.in").string();
    const std::string tags_path = (base / "seq.out").string();
    const std::string intents_path = (base / "label").string();
    std::vector<std::string> problems;
    const std::vector<std::string> word_lines = read_text_lines(words_path, problems);
    const std::vector<std::string> tag_lines = read_text_lines(tags_path, problems);
    const std::vector<std::string> intent_lines = read_text_lines(intents_path, problems);
    throw_if_any(problems);

    // Lines behind the end of the shortest file have no partner; that one problem is told once.
    const std::size_t lines = std::min({word_lines.size(), tag_lines.size(), intent_lines.size()});
    for (const auto& [path, count] : {std::pair(words_path, word_lines.size()), std::pair(tags_path, tag_lines.size()),
                                      std::pair(intents_path, intent_lines.size())}) {
        if (count != lines) {
            problems.push_back(
                fmt::format("{}:{}: no line for this one in the other files: seq.in has {} lines, seq.out {}, label {}",
                            path, lines + 1, word_lines.size(), tag_lines.size(), intent_lines.size()));
        }
    }

    std::vector<LabelledSentence> sentences(lines);
    for (std::size_t i = 0; i < lines; ++i) {
        LabelledSentence& sentence = sentences[i];
        sentence.words = split_words(word_lines[i]);
        sentence.tags = split_words(tag_lines[i]);
        const std::vector<std::string> intents = split_words(intent_lines[i]);
        if (sentence.words.empty()) {
            problems.push_back(fmt::format("{}:{}: empty sentence, expected at least one word", words_path, i + 1));
        } else if (sentence.words.size() != sentence.tags.size()) {
            problems.push_back(fmt::format("{}:{}: {} tags for the {} words of {}:{}, expected one per word", tags_path,
                                           i + 1, sentence.tags.size(), sentence.words.size(), words_path, i + 1));
        }
        if (intents.size() != 1) {
            problems.push_back(fmt::format("{}:{}: {} words, expected one intent (several are joined by '#')",
                                           intents_path, i + 1, intents.size()));
        } else {
            sentence.intent = intents.front();
        }
    }
    throw_if_any(problems);
    return sentences;
}

}  // namespace contraflow
