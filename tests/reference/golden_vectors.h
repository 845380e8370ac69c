// Access to the golden vectors in tests/golden (described in its README) and the measures its tolerances are stated in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "contraflow/config.h"
#include "contraflow/safetensors.h"
#include "contraflow/sample.h"

namespace contraflow::golden {

// A file by its path below tests/golden.
[[nodiscard]] TensorFile load(const std::string& path);
// The paths (below tests/golden) of all float32 files of a folder, sorted.
[[nodiscard]] std::vector<std::string> files_of(const std::string& folder);

// Comma-separated integers of a metadata entry. Throws std::out_of_range if there is none.
[[nodiscard]] std::vector<std::int64_t> integers(const TensorFile& file, const std::string& key);
[[nodiscard]] std::int64_t integer(const TensorFile& file, const std::string& key);

// max |got - stored| / max |stored|; infinity if a value is not a number or the sizes differ.
[[nodiscard]] double error(const std::vector<float>& got, const StoredTensor& stored);
[[nodiscard]] double largest_magnitude(const std::vector<float>& values);

[[nodiscard]] TtShape tt_shape(const TensorFile& file);
[[nodiscard]] TtmShape ttm_shape(const TensorFile& file);

// A model's configuration from the metadata of its files; form `dense` has flow mm, form `tensor` btt.
[[nodiscard]] Config model_config(const TensorFile& file);
// The samples of a model's trace, one per step.
[[nodiscard]] std::vector<Sample> trace_samples(const TensorFile& trace);

}  // namespace contraflow::golden
