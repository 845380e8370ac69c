#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <set>
#include <sstream>

#include "contraflow/dataset.h"
#include "contraflow/error.h"
#include "contraflow/safetensors.h"
#include "data/counter_random.h"
#include "data/text_lines.h"
#include "support/temporary_folder.h"

using contraflow::Config;
using contraflow::ConfigError;
using contraflow::CounterRandom;
using contraflow::DataCounts;
using contraflow::Dataset;
using contraflow::Sample;
using contraflow::test::read_bytes;
using contraflow::test::TemporaryFolder;

namespace {

using Ids = std::vector<std::int32_t>;
using Texts = std::vector<std::string>;

const std::string kOwnData = std::string(CONTRAFLOW_SOURCE_DIR) + "/traces/atis_like";

void write_split(const TemporaryFolder& folder, const std::string& split, const std::string& words,
                 const std::string& tags, const std::string& intents) {
    folder.write(split + "/seq.in", words);
    folder.write(split + "/seq.out", tags);
    folder.write(split + "/label", intents);
}

// A data set with the given training split and room for it.
Config small_config(const TemporaryFolder& folder) {
    Config config;
    config.network.seq_len = 5;
    config.network.vocab = 20;
    config.network.slots = 8;
    config.network.intents = 4;
    config.data.path = folder.path().string();
    return config;
}

Texts load_errors(const Config& config) {
    try {
        (void)Dataset::load(config);
    } catch (const ConfigError& error) {
        return error.lines();
    }
    return {};
}

// Errors of a training split of these files, with the folder's name taken out.
Texts split_errors(const std::string& words, const std::string& tags, const std::string& intents) {
    const TemporaryFolder folder;
    write_split(folder, "train", words, tags, intents);
    Texts lines = load_errors(small_config(folder));
    for (std::string& line : lines) {
        const std::string base = folder.file("train/");
        for (std::size_t at = line.find(base); at != std::string::npos; at = line.find(base)) {
            line.erase(at, base.size());
        }
    }
    return lines;
}

// Where data that is not ours to ship may stand: empty if it does not.
std::string shared_folder() {
    const char* given = std::getenv("CONTRAFLOW_SHARED");
    const std::string folder = given != nullptr ? given : std::string(CONTRAFLOW_SOURCE_DIR) + "/../shared";
    return std::filesystem::exists(folder + "/data/atis/train/seq.in") &&
                   std::filesystem::exists(folder + "/golden/atis/train.safetensors")
               ? folder
               : "";
}

Texts lines_of(const std::string& path) {
    std::istringstream in(read_bytes(path));
    Texts lines;
    for (std::string line; std::getline(in, line);) {
        lines.push_back(line);
    }
    return lines;
}

}  // namespace

TEST_CASE("ids follow frequency for words and byte order for slots and intents") {
    const TemporaryFolder folder;
    write_split(folder, "train", "b a b\nZ a c b\n\xC3\xA9 a\n", "O B-x O\nO B-x I-x O\nA O\n", "two\none\ntwo\n");
    const Dataset set = Dataset::load(small_config(folder));
    CHECK(set.size() == 3);
    CHECK(set.words() == Texts{"[PAD]", "[UNK]", "[CLS]", "a", "b", "Z", "c", "\xC3\xA9"});
    CHECK(set.slots() == Texts{"[PAD]", "[UNK]", "A", "B-x", "I-x", "O"});
    CHECK(set.intents() == Texts{"one", "two"});
}

TEST_CASE("a sample starts with the CLS id and is padded to the sequence length") {
    const TemporaryFolder folder;
    write_split(folder, "train", "b a b\n", "O B-x O\n", "go\n");
    const Sample sample = Dataset::load(small_config(folder)).sample(0);
    CHECK(sample.tokens == Ids{2, 3, 4, 3, 0});
    CHECK(sample.slot_labels == Ids{0, 3, 2, 3, 0});
    CHECK(sample.real == Ids{1, 1, 1, 1, 0});
    CHECK(sample.words == 3);
    CHECK(sample.intent == 0);
}

TEST_CASE("a sentence of S - 1 words is whole, one more word is cut") {
    const TemporaryFolder folder;
    write_split(folder, "train", "a b c d\na b c d e\n", "O O O O\nO O O O Q\n", "x\ny\n");
    Dataset set = Dataset::load(small_config(folder));
    CHECK(set.counts(1).cut_sentences == 0);
    CHECK(set.counts(2).cut_sentences == 1);
    CHECK(set.sample(0).tokens == set.sample(1).tokens);
    CHECK(set.sample(1).words == 4);
    CHECK(set.sample(1).real == Ids{1, 1, 1, 1, 1});
}

TEST_CASE("what the training split does not hold takes the reserved ids and is counted") {
    const TemporaryFolder folder;
    write_split(folder, "train", "a b\nc d\n", "O O\nO P\n", "x\ny\n");
    write_split(folder, "test", "a n\nm b\na b n c n\n", "O Q\nO O\nO O O O Q\n", "x\nx#y\ny\n");
    Config config = small_config(folder);
    config.data.split = "test";
    Dataset set = Dataset::load(config);
    CHECK(set.sample(0).tokens == Ids{2, 3, 1, 0, 0});
    CHECK(set.sample(0).slot_labels == Ids{0, 2, 1, 0, 0});
    CHECK(set.sample(1).tokens == Ids{2, 1, 4, 0, 0});
    CHECK(set.sample(0).intent == 0);
    CHECK(set.sample(1).intent == 3);
    CHECK(set.sample(2).intent == 1);

    const DataCounts all = set.counts(3);
    CHECK(all.unknown_words == 3);  // the fifth word of the last sentence is cut off
    CHECK(all.unseen_slots == 1);
    CHECK(all.unseen_intents == 1);
    CHECK(all.cut_sentences == 1);
    CHECK(set.counts(0).unknown_words == 0);
    CHECK(set.counts(7).unknown_words == 2 * 3 + 1);
}

TEST_CASE("a word that is spelled like a reserved name is a word") {
    const TemporaryFolder folder;
    write_split(folder, "train", "[PAD] [PAD] a\n", "[UNK] O O\n", "x\n");
    const Sample sample = Dataset::load(small_config(folder)).sample(0);
    CHECK(sample.tokens == Ids{2, 3, 3, 4, 0});
    CHECK(sample.slot_labels == Ids{0, 3, 2, 2, 0});
}

TEST_CASE("CRLF, a byte-order mark, tabs and a missing last line end change nothing") {
    const TemporaryFolder plain;
    write_split(plain, "train", "a b\nc\n", "O P\nO\n", "x\ny\n");
    const TemporaryFolder odd;
    write_split(odd, "train",
                "\xEF\xBB\xBF"
                "a\t b \r\n  c\r\n",
                "\xEF\xBB\xBFO P\r\nO", "\xEF\xBB\xBFx \r\ny\r\n");
    Dataset a = Dataset::load(small_config(plain));
    Dataset b = Dataset::load(small_config(odd));
    CHECK(a.words() == b.words());
    CHECK(a.slots() == b.slots());
    CHECK(a.intents() == b.intents());
    CHECK(a.size() == b.size());
    CHECK(a.sample(1).tokens == b.sample(1).tokens);
}

TEST_CASE("another number of tags than words is an error of its line") {
    CHECK(split_errors("a b\nc d\n", "O O\nO O O\n", "x\nx\n") ==
          Texts{"seq.out:2: 3 tags for the 2 words of seq.in:2, expected one per word"});
    CHECK(split_errors("a b\nc d\n", "\nO\n", "x\nx\n") ==
          Texts{"seq.out:1: 0 tags for the 2 words of seq.in:1, expected one per word",
                "seq.out:2: 1 tags for the 2 words of seq.in:2, expected one per word"});
}

TEST_CASE("files of different length are an error that says where the shortest ends") {
    CHECK(split_errors("a\nb\nc\n", "O\nO\nO\n", "x\nx\n") ==
          Texts{"seq.in:3: no line for this one in the other files: seq.in has 3 lines, seq.out 3, label 2",
                "seq.out:3: no line for this one in the other files: seq.in has 3 lines, seq.out 3, label 2"});
}

TEST_CASE("an empty sentence or intent is an error of its line") {
    CHECK(split_errors("a\n \nc\n", "O\n\nO\n", "x\nx\n\n") ==
          Texts{"seq.in:2: empty sentence, expected at least one word",
                "label:3: 0 words, expected one intent (several are joined by '#')"});
    CHECK(split_errors("a\n", "O\n", "x y\n") ==
          Texts{"label:1: 2 words, expected one intent (several are joined by '#')"});
}

TEST_CASE("a byte that is not UTF-8 is an error of its line") {
    CHECK(split_errors("a\nb\xE9 c\n", "O\nO O\n", "x\nx\n") ==
          Texts{"seq.in:2: byte 2 of the line (0xE9) is not UTF-8 text"});
    CHECK(split_errors("a\n", std::string("O\0\n", 3), "x\n") ==
          Texts{"seq.out:1: byte 2 of the line (0x00) is not UTF-8 text"});
}

TEST_CASE("UTF-8 is checked strictly") {
    using contraflow::find_invalid_utf8;
    constexpr std::size_t kNone = std::string_view::npos;
    CHECK(find_invalid_utf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x9A\x82z") == kNone);
    CHECK(find_invalid_utf8("\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF") == kNone);
    CHECK(find_invalid_utf8("ab\x80") == 2);            // continuation byte first
    CHECK(find_invalid_utf8("\xC3") == 0);              // cut off
    CHECK(find_invalid_utf8("\xE2\x82z") == 0);         // third byte missing
    CHECK(find_invalid_utf8("\xC0\xAF") == 0);          // overlong
    CHECK(find_invalid_utf8("\xE0\x9F\xBF") == 0);      // overlong
    CHECK(find_invalid_utf8("\xF0\x8F\xBF\xBF") == 0);  // overlong
    CHECK(find_invalid_utf8("\xED\xA0\x80") == 0);      // surrogate
    CHECK(find_invalid_utf8("\xF4\x90\x80\x80") == 0);  // above U+10FFFF
    CHECK(find_invalid_utf8("\xFF\xFE"
                            "a") == 0);  // UTF-16
}

TEST_CASE("a file that is missing, empty or a directory is named") {
    const TemporaryFolder folder;
    folder.write("train/seq.in", "");
    std::filesystem::create_directory(folder.file("train/label"));
    CHECK(load_errors(small_config(folder)) ==
          Texts{folder.file("train/seq.in") + ": is empty", folder.file("train/seq.out") + ": no such file",
                folder.file("train/label") + ": is a directory, expected a text file"});
    CHECK(split_errors("\xEF\xBB\xBF", "O\n", "x\n") == Texts{"seq.in: is empty"});
}

TEST_CASE("a split that is not there is named") {
    const TemporaryFolder folder;
    write_split(folder, "train", "a\n", "O\n", "x\n");
    folder.write("file", "a\n");
    Config config = small_config(folder);
    config.data.split = "dev";
    CHECK(load_errors(config) == Texts{folder.file("dev") + ": no such folder; expected it to hold seq.in, seq.out and "
                                                            "label (data.path, data.split)"});
    config.data.split = "file";
    CHECK(load_errors(config) ==
          Texts{folder.file("file") + ": is a file, expected a folder with seq.in, seq.out and label"});
    config.data.path = "";
    CHECK(load_errors(config).at(0).find("data.path is not set") == 0);
}

TEST_CASE("a file in a wrong format is told in 21 lines") {
    std::string words;
    for (int i = 0; i < 100; ++i) {
        words += "a\n";
    }
    const Texts errors = split_errors(words, std::string(100, '\n'), words);
    REQUIRE(errors.size() == 21);
    CHECK(errors.back() == "... and 80 more problems");
}

TEST_CASE("a training split fits its ids exactly and not one less") {
    const TemporaryFolder folder;
    write_split(folder, "train", "a b\nc d\n", "O P\nO O\n", "x\ny\n");
    Config config = small_config(folder);
    config.network.vocab = 7;
    config.network.slots = 4;
    config.network.intents = 2;
    CHECK(load_errors(config).empty());
    config.network.vocab = 6;
    config.network.slots = 3;
    config.network.intents = 1;
    const std::string train = folder.file("train");
    CHECK(load_errors(config) ==
          Texts{train + ": the training split needs 7 word ids (with [PAD], [UNK], [CLS]), but network.vocab = 6; at "
                        "least 7 would fit",
                train + ": the training split needs 4 slot ids (with [PAD], [UNK]), but network.slots = 3; at least 4 "
                        "would fit",
                train + ": the training split needs 2 intents, but network.intents = 1; at least 2 would fit"});
}

TEST_CASE("an unseen intent needs an id that no training intent has") {
    const TemporaryFolder folder;
    write_split(folder, "train", "a\nb\n", "O\nO\n", "x\ny\n");
    write_split(folder, "test", "a\n", "O\n", "z\n");
    Config config = small_config(folder);
    config.data.split = "test";
    config.network.intents = 3;
    CHECK(Dataset::load(config).sample(0).intent == 2);
    config.network.intents = 2;
    REQUIRE(load_errors(config).size() == 1);
    CHECK(load_errors(config)[0].find("network.intents = 2; 3 would leave one for them") != std::string::npos);
}

TEST_CASE("samples follow the file from data.first and start over at its end") {
    const TemporaryFolder folder;
    write_split(folder, "train", "a\nb\nc\n", "O\nO\nO\n", "x\nx\nx\n");
    Config config = small_config(folder);
    config.data.first = 2;
    Dataset set = Dataset::load(config);
    CHECK(set.sample(0).tokens[1] == 5);
    CHECK(set.sample(1).tokens[1] == 3);
    CHECK(set.sample(3).tokens[1] == 5);
    CHECK(set.sentence_index(5) == 1);

    config.data.first = 3;
    CHECK(load_errors(config) ==
          Texts{"data.first = 3 is not a sentence of " + folder.file("train") + ", which holds 3: expected 0 to 2"});
    config.data.first = -1;
    CHECK(load_errors(config).size() == 1);
}

TEST_CASE("a shuffled pass visits every sentence once, each pass in an order of its own") {
    Config config;
    config.data.path = kOwnData;
    config.data.shuffle = true;
    Dataset set = Dataset::load(config);
    const auto pass = [](Dataset& from, std::size_t number) {
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < from.size(); ++i) {
            order.push_back(from.sentence_index(number * from.size() + i));
        }
        return order;
    };
    const std::vector<std::size_t> first = pass(set, 0);
    const std::vector<std::size_t> second = pass(set, 1);
    std::vector<std::size_t> sorted = first;
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::size_t> all(set.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    CHECK(sorted == all);
    CHECK(first != all);
    CHECK(first != second);
    CHECK(pass(set, 0) == first);  // going back gives the same order again

    config.data.first = 7;
    Dataset later = Dataset::load(config);
    CHECK(later.sentence_index(0) == first[7]);
    CHECK(later.sentence_index(set.size()) == second[7]);

    config.train.seed = 2;
    config.data.first = 0;
    Dataset other = Dataset::load(config);
    CHECK(pass(other, 0) != first);
}

TEST_CASE("the shuffled order is the same on every host") {
    Config config;
    config.data.path = kOwnData;
    config.data.shuffle = true;
    Dataset set = Dataset::load(config);
    std::vector<std::size_t> order;
    for (std::size_t step = 0; step < 5; ++step) {
        order.push_back(set.sentence_index(step));
    }
    CHECK(order == std::vector<std::size_t>{188, 117, 249, 198, 444});
}

TEST_CASE("random numbers below a bound hit every value about equally often") {
    CounterRandom random(1, "test");
    std::vector<int> hits(7, 0);
    for (int i = 0; i < 70000; ++i) {
        ++hits[random.below(7)];
    }
    for (const int count : hits) {  // 10000 expected, standard deviation 93
        CHECK(std::abs(count - 10000) < 500);
    }
    CHECK(CounterRandom(1, "test").below(1) == 0);
    CHECK(CounterRandom(1, "a").next() != CounterRandom(1, "b").next());
    CHECK(CounterRandom(1, "a", 0).next() != CounterRandom(1, "a", 1).next());
    CHECK(CounterRandom(1, "a").next() != CounterRandom(2, "a").next());
}

TEST_CASE("the project's own data set has the promised size and fits a vocabulary of 216") {
    Config config;
    config.data.path = kOwnData;
    config.network.vocab = 216;
    config.network.slots = 32;
    config.network.intents = 16;
    Dataset train = Dataset::load(config);
    CHECK(train.size() == 600);
    CHECK(train.words().size() == 188);
    CHECK(train.slots().size() == 29);
    CHECK(train.intents().size() == 10);
    const DataCounts none = train.counts(train.size());
    CHECK(none.unknown_words + none.unseen_slots + none.unseen_intents + none.cut_sentences == 0);
    for (std::size_t step = 0; step < train.size(); ++step) {
        const Sample sample = train.sample(step);
        REQUIRE(sample.words >= 3);
        REQUIRE(sample.words <= 14);
    }

    config.data.split = "test";
    Dataset test = Dataset::load(config);
    CHECK(test.size() == 100);
    const DataCounts counts = test.counts(test.size());
    CHECK(counts.unknown_words > 0);
    CHECK(counts.unseen_slots > 0);
    CHECK(counts.unseen_intents > 0);
    CHECK(counts.cut_sentences == 0);
}

TEST_CASE("the generator script writes the project's own data set byte for byte") {
    if (std::system("python3 --version > /dev/null 2>&1") != 0) {
        WARN("skipped: no python3 here");
        return;
    }
    const TemporaryFolder folder;
    const std::string script = std::string(CONTRAFLOW_SOURCE_DIR) + "/traces/generate_atis_like.py";
    REQUIRE(std::system(("python3 '" + script + "' '" + folder.path().string() + "'").c_str()) == 0);
    for (const std::string split : {"train", "test"}) {
        for (const std::string name : {"seq.in", "seq.out", "label"}) {
            INFO(split << '/' << name);
            const std::string written = read_bytes(folder.file(split + "/" + name));
            CHECK_FALSE(written.empty());
            CHECK((written == read_bytes(kOwnData + "/" + split + "/" + name)));
        }
    }
}

TEST_CASE("the ATIS corpus encodes to the ids of the reference") {
    const std::string shared = shared_folder();
    if (shared.empty()) {
        WARN("skipped: the ATIS corpus is not here (set CONTRAFLOW_SHARED to a folder with data/atis and golden/atis)");
        return;
    }
    Config config;
    config.data.path = shared + "/data/atis";
    for (const std::string split : {"train", "test", "dev"}) {
        INFO(split);
        config.data.split = split;
        Dataset set = Dataset::load(config);
        CHECK(set.words() == lines_of(shared + "/golden/atis/vocab.txt"));
        CHECK(set.slots() == lines_of(shared + "/golden/atis/slots.txt"));
        CHECK(set.intents() == lines_of(shared + "/golden/atis/intents.txt"));

        Ids tokens;
        Ids slot_labels;
        Ids intents;
        Ids words;
        for (std::size_t step = 0; step < set.size(); ++step) {
            const Sample sample = set.sample(step);
            tokens.insert(tokens.end(), sample.tokens.begin(), sample.tokens.end());
            slot_labels.insert(slot_labels.end(), sample.slot_labels.begin(), sample.slot_labels.end());
            intents.push_back(sample.intent);
            words.push_back(sample.words);
            REQUIRE(std::accumulate(sample.real.begin(), sample.real.end(), 0) == sample.words + 1);
        }
        const auto stored = contraflow::read_safetensors(shared + "/golden/atis/" + split + ".safetensors").tensors;
        CHECK((tokens == stored.at("tokens").as_ints()));
        CHECK((slot_labels == stored.at("slot_labels").as_ints()));
        CHECK((intents == stored.at("intent_labels").as_ints()));
        CHECK((words == stored.at("words").as_ints()));
    }
}
