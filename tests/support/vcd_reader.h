// Reads a value change dump, strictly: what is not well-formed throws.
#pragma once

#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace contraflow::test {

class VcdReader {
public:
    explicit VcdReader(const std::string& path) : file_(path) {
        std::vector<std::string> scopes;
        for (std::string word = next(); word != "$enddefinitions"; word = next()) {
            if (word == "$scope") {
                (void)next();
                scopes.push_back(next());
            } else if (word == "$upscope") {
                scopes.pop_back();
            } else if (word == "$timescale") {
                ++timescales;
                const std::string number = next();
                timescale = number + next();
            } else if (word == "$var") {
                add_variable(scopes);
            }
            for (; word != "$end"; word = next()) {
            }
        }
        skip_to_end();
    }

    std::size_t timescales = 0;
    std::string timescale;  // "1ns"
    std::vector<std::string> names;
    [[nodiscard]] bool has(const std::string& name) const { return places_.count(name) != 0; }
    // The latest value: 0 or 1, binary digits, a decimal number, a text; x or nan while it is not known.
    [[nodiscard]] const std::string& value(const std::string& name) const { return values_[places_.at(name)]; }
    [[nodiscard]] std::uint64_t number(const std::string& name) const { return std::stoull(value(name), nullptr, 2); }
    [[nodiscard]] std::uint64_t time() const { return time_; }

    // Calls `edge` with the values at each rising edge of the bit `clock`, after all changes of that time.
    void for_each_edge(const std::string& clock, const std::function<void(const VcdReader&)>& edge) {
        const std::size_t place = places_.at(clock);
        bool rises = false;
        const auto finish_time = [&] {
            if (rises) {
                edge(*this);
            }
            rises = false;
        };
        for (std::string word; file_ >> word;) {
            const char kind = word[0];
            if (kind == '#') {
                const std::uint64_t time = std::stoull(word.substr(1));
                if (timed_ && time <= time_) {
                    throw std::runtime_error("time does not grow at " + word);
                }
                finish_time();
                timed_ = true;
                time_ = time;
            } else if (kind == 'b' || kind == 'r' || kind == 's') {
                values_[place_of(next())] = word.substr(1);
            } else if (kind == '0' || kind == '1' || kind == 'x') {
                const std::size_t changed = place_of(word.substr(1));
                rises = rises || (changed == place && kind == '1');
                values_[changed] = std::string(1, kind);
            } else if (word != "$dumpvars" && word != "$dumpon" && word != "$dumpoff" && word != "$end") {
                throw std::runtime_error("unknown " + word);
            }
        }
        finish_time();
    }

private:
    std::string next() {
        std::string word;
        if (!(file_ >> word)) {
            throw std::runtime_error("the dump ends early");
        }
        return word;
    }
    void skip_to_end() {
        while (next() != "$end") {
        }
    }
    void add_variable(const std::vector<std::string>& scopes) {
        (void)next();
        (void)next();
        const std::string id = next();
        std::string name;
        for (const std::string& scope : scopes) {
            name += scope + ".";
        }
        name += next();
        if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") !=
            std::string::npos) {
            throw std::runtime_error("a viewer may trip over the name " + name);
        }
        if (!places_.emplace(name, values_.size()).second || !ids_.emplace(id, values_.size()).second) {
            throw std::runtime_error(name + " or its identifier is there twice");
        }
        names.push_back(name);
        values_.emplace_back("x");
    }
    [[nodiscard]] std::size_t place_of(const std::string& id) const {
        const auto found = ids_.find(id);
        if (found == ids_.end()) {
            throw std::runtime_error("a change of an unknown variable " + id);
        }
        return found->second;
    }

    std::ifstream file_;
    std::map<std::string, std::size_t> ids_, places_;
    std::vector<std::string> values_;
    std::uint64_t time_ = 0;
    bool timed_ = false;
};

}  // namespace contraflow::test
