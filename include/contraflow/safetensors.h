// Reading and writing safetensors files: u64 little-endian header length, JSON header, raw little-endian data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace contraflow {

enum class StoredType { F32, F64, I32, U8 };

struct StoredTensor {
    StoredType type = StoredType::F32;
    std::vector<std::int64_t> shape;  // empty: a scalar
    std::vector<std::byte> data;      // little-endian, row-major

    [[nodiscard]] std::int64_t elements() const;
    // Values converted element by element; F64 -> float rounds once.
    [[nodiscard]] std::vector<float> as_floats() const;
    [[nodiscard]] std::vector<double> as_doubles() const;
    [[nodiscard]] std::vector<std::int32_t> as_ints() const;
};

struct TensorFile {
    std::map<std::string, std::string> metadata;
    std::map<std::string, StoredTensor> tensors;
};

// Throws ConfigError naming the file and what is wrong (missing, a directory, truncated, header beyond the file,
// bad JSON, offsets that overlap or leave the body, a type that is not supported, elements that do not match).
[[nodiscard]] TensorFile read_safetensors(const std::string& path);

// Writes to a temporary file beside `path` and renames it, so that a killed run leaves no half file.
void write_safetensors(const std::string& path, const TensorFile& file);

[[nodiscard]] StoredTensor make_f32(std::vector<std::int64_t> shape, const std::vector<float>& values);

}  // namespace contraflow
