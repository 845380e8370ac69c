// A vector file with accessors that name the file and say what would be right.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "contraflow/safetensors.h"
#include "contraflow/tt_shape.h"

namespace contraflow::verify {

class VectorFile {
public:
    // Throws ConfigError, as everything below does, with one line that begins with the path.
    explicit VectorFile(std::string path);

    [[nodiscard]] const std::string& path() const { return path_; }

    [[nodiscard]] std::string text(const std::string& key, const std::string& expected) const;
    [[nodiscard]] bool has_key(const std::string& key) const { return file_.metadata.count(key) != 0; }
    // A whole number of min to max.
    [[nodiscard]] std::int64_t integer(const std::string& key, std::int64_t min, std::int64_t max) const;
    [[nodiscard]] std::vector<std::int64_t> integers(const std::string& key, std::int64_t max) const;
    // A positive number.
    [[nodiscard]] double number(const std::string& key) const;
    // out_modes, in_modes, ranks; vocab_modes, emb_modes and the ranks under `ranks_key`.
    [[nodiscard]] TtShape tt_shape() const;
    [[nodiscard]] TtmShape ttm_shape(const std::string& ranks_key) const;

    [[nodiscard]] bool has(const std::string& name) const { return file_.tensors.count(name) != 0; }
    // Whether any tensor's name begins so.
    [[nodiscard]] bool has_any(const std::string& prefix) const {
        const auto first = file_.tensors.lower_bound(prefix);
        return first != file_.tensors.end() && first->first.compare(0, prefix.size(), prefix) == 0;
    }
    // A floating-point tensor of this shape (axes of one element do not count), rounded to float32. Marks it as used.
    [[nodiscard]] std::vector<float> floats(const std::string& name, const std::vector<std::int64_t>& shape);
    // An integer tensor of this shape with values of min to max.
    [[nodiscard]] std::vector<std::int32_t> ints(const std::string& name, const std::vector<std::int64_t>& shape,
                                                 std::int32_t min, std::int32_t max);
    // The shape of a tensor that must be there.
    [[nodiscard]] const std::vector<std::int64_t>& shape(const std::string& name) const;

    [[nodiscard]] std::vector<std::string> names() const;
    [[nodiscard]] std::vector<std::string> unused() const;

    [[noreturn]] void fail(const std::string& problem) const;

private:
    [[nodiscard]] const StoredTensor& stored(const std::string& name) const;
    const StoredTensor& stored(const std::string& name, const std::vector<std::int64_t>& shape);

    std::string path_;
    TensorFile file_;
    std::set<std::string> used_;
};

// "6 x 24"; "a scalar".
[[nodiscard]] std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace contraflow::verify
