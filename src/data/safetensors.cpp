#include "contraflow/safetensors.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "contraflow/error.h"
#include "data/text_lines.h"

namespace contraflow {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // what the format's own reader accepts
constexpr const char* kMetadata = "__metadata__";

struct TypeRow {
    StoredType type;
    const char* name;
    std::uint64_t bytes;
};
constexpr TypeRow kTypes[] = {
    {StoredType::F32, "F32", 4}, {StoredType::F64, "F64", 8}, {StoredType::I32, "I32", 4}, {StoredType::U8, "U8", 1}};

const TypeRow& type_row(StoredType type) {
    return *std::find_if(std::begin(kTypes), std::end(kTypes), [type](const TypeRow& r) { return r.type == type; });
}

template <typename Word>
Word read_word(const std::byte* bytes) {
    Word word = 0;
    for (std::size_t i = 0; i < sizeof(Word); ++i) {
        word |= static_cast<Word>(static_cast<Word>(bytes[i]) << (8 * i));
    }
    return word;
}

template <typename Word>
void write_word(Word word, std::byte* bytes) {
    for (std::size_t i = 0; i < sizeof(Word); ++i) {
        bytes[i] = static_cast<std::byte>(word >> (8 * i));
    }
}

template <typename To, typename From>
To same_bits(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof(to));
    return to;
}

// Calls use(i, value) with each element as its own C++ type.
template <typename Use>
void for_each_element(const StoredTensor& tensor, Use use) {
    const std::uint64_t bytes = type_row(tensor.type).bytes;
    const std::byte* at = tensor.data.data();
    for (std::size_t i = 0; i < tensor.data.size() / bytes; ++i, at += bytes) {
        switch (tensor.type) {
            case StoredType::F32:
                use(i, same_bits<float>(read_word<std::uint32_t>(at)));
                break;
            case StoredType::F64:
                use(i, same_bits<double>(read_word<std::uint64_t>(at)));
                break;
            case StoredType::I32:
                use(i, same_bits<std::int32_t>(read_word<std::uint32_t>(at)));
                break;
            case StoredType::U8:
                use(i, static_cast<std::uint8_t>(*at));
                break;
        }
    }
}

[[noreturn]] void fail(const std::string& path, const std::string& what) {
    throw ConfigError(path + ": " + what);
}

// JSON that is well formed and in which no object of the first two levels names a member twice: the parser itself
// keeps the last one silently.
nlohmann::json parse_header(const std::string& path, const std::string& text) {
    using Json = nlohmann::json;
    std::vector<std::set<std::string>> names;  // members met so far, per open object
    const auto check = [&](int, Json::parse_event_t event, Json& parsed) {
        if (event == Json::parse_event_t::object_start) {
            names.emplace_back();
        } else if (event == Json::parse_event_t::object_end) {
            names.pop_back();
        } else if (event == Json::parse_event_t::key) {
            const auto name = parsed.get<std::string>();
            if (!names.back().insert(name).second) {
                fail(path, fmt::format("the header names '{}' twice", printable(name)));
            }
        }
        return true;
    };
    try {
        Json header = Json::parse(text, check);
        if (!header.is_object()) {
            fail(path, "the header is not a JSON object of tensors");
        }
        return header;
    } catch (const Json::parse_error& error) {
        fail(path, fmt::format("the header is not valid JSON (at byte {} of it)", error.byte));
    }
}

std::uint64_t unsigned_number(const nlohmann::json& value, const std::string& path, const std::string& tensor,
                              const char* field) {
    if (!value.is_number_unsigned()) {
        fail(path, fmt::format("tensor '{}': {} holds {}, expected whole numbers from 0", tensor, field,
                               printable(value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace))));
    }
    return value.get<std::uint64_t>();
}

struct Extent {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::string name;
};

struct Entry {
    StoredTensor tensor;  // without data
    Extent extent;        // in the body
};

Entry parse_entry(const std::string& path, const std::string& key, const nlohmann::json& value,
                  std::uint64_t body_bytes) {
    const std::string name = printable(key);
    const auto field = [&](const char* member, bool ok_type) {
        if (!ok_type) {
            fail(path, fmt::format("tensor '{}': no usable \"{}\" in the header", name, member));
        }
    };
    field("dtype", value.is_object() && value.contains("dtype") && value["dtype"].is_string());
    field("shape", value.contains("shape") && value["shape"].is_array());
    field("data_offsets",
          value.contains("data_offsets") && value["data_offsets"].is_array() && value["data_offsets"].size() == 2);

    const auto type_name = value["dtype"].get<std::string>();
    const auto* row =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeRow& r) { return type_name == r.name; });
    if (row == std::end(kTypes)) {
        fail(path, fmt::format("tensor '{}': dtype {} is not supported; expected F32, F64, I32 or U8", name,
                               printable(type_name)));
    }

    Entry entry;
    entry.tensor.type = row->type;
    std::uint64_t bytes = row->bytes;
    bool overflow = false;
    for (const auto& extent : value["shape"]) {
        const std::uint64_t size = unsigned_number(extent, path, name, "shape");
        constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
        overflow = overflow || size > kMax || (size != 0 && bytes > kMax / size);
        bytes = overflow ? 0 : bytes * size;
        entry.tensor.shape.push_back(static_cast<std::int64_t>(size));
    }
    const std::uint64_t begin = unsigned_number(value["data_offsets"][0], path, name, "data_offsets");
    const std::uint64_t end = unsigned_number(value["data_offsets"][1], path, name, "data_offsets");
    if (begin > end) {
        fail(path, fmt::format("tensor '{}': data_offsets {} to {} run backwards", name, begin, end));
    }
    if (end > body_bytes) {
        fail(path, fmt::format("tensor '{}': data_offsets {} to {} leave the file, which holds {} bytes of data (is it "
                               "truncated?)",
                               name, begin, end, body_bytes));
    }
    if (overflow || end - begin != bytes) {
        fail(path, fmt::format("tensor '{}': data_offsets hold {} bytes, but {} elements of its shape take {}", name,
                               end - begin, row->name, overflow ? "more than a file can hold" : fmt::to_string(bytes)));
    }
    if (begin % row->bytes != 0) {
        fail(path, fmt::format("tensor '{}': data offset {} is not a multiple of its {} bytes per element", name, begin,
                               row->bytes));
    }
    entry.extent = {begin, end, key};
    return entry;
}

// Every byte of the body belongs to exactly one tensor.
void check_cover(const std::string& path, std::vector<Extent> extents, std::uint64_t body_bytes) {
    std::sort(extents.begin(), extents.end(),
              [](const Extent& a, const Extent& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
    std::uint64_t covered = 0;
    const Extent* previous = nullptr;
    for (const Extent& extent : extents) {
        if (extent.begin < covered) {
            fail(path, fmt::format("tensor '{}': data_offsets {} to {} overlap those of '{}'", printable(extent.name),
                                   extent.begin, extent.end, printable(previous->name)));
        }
        if (extent.begin > covered) {
            fail(path, fmt::format("tensor '{}': bytes {} to {} before it belong to no tensor", printable(extent.name),
                                   covered, extent.begin));
        }
        covered = extent.end;
        previous = &extent;
    }
    if (covered != body_bytes) {
        fail(path, fmt::format("{} bytes of data behind the last tensor belong to none", body_bytes - covered));
    }
}

std::uint64_t regular_file_bytes(const std::string& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found) {
        fail(path, "no such file");
    }
    if (fs::is_directory(status)) {
        fail(path, "is a directory, expected a safetensors file");
    }
    if (status.type() != fs::file_type::regular) {
        fail(path, "is not a regular file, expected a safetensors file");
    }
    const std::uint64_t bytes = fs::file_size(path, error);
    if (error) {
        fail(path, "cannot be read: " + error.message());
    }
    return bytes;
}

std::string header_text(const TensorFile& file, const std::vector<const std::string*>& order) {
    nlohmann::ordered_json header = nlohmann::ordered_json::object();
    if (!file.metadata.empty()) {
        header[kMetadata] = file.metadata;
    }
    std::size_t offset = 0;
    for (const std::string* name : order) {
        const StoredTensor& tensor = file.tensors.at(*name);
        const std::size_t end = offset + tensor.data.size();
        header[*name] = {
            {"dtype", type_row(tensor.type).name}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
        offset = end;
    }
    std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return text;
}

// Where a file of this name really ends up: through symbolic links, and never over something that is not a file.
fs::path write_target(const std::string& path) {
    std::error_code error;
    fs::path target = path;
    if (target.empty()) {
        throw ConfigError("the name of a file to write is empty");
    }
    if (fs::is_symlink(target, error)) {
        const fs::path resolved = fs::weakly_canonical(target, error);
        target = error ? target : resolved;
    }
    const fs::file_status status = fs::status(target, error);
    if (fs::is_directory(status)) {
        fail(path, "is a directory, expected the name of a file to write");
    }
    if (fs::exists(status) && status.type() != fs::file_type::regular) {
        fail(path, "is not a regular file and would be replaced; expected the name of a file to write");
    }
    const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
    if (!fs::is_directory(folder, error)) {
        fail(path, fmt::format("cannot be written: no folder {}", folder.string()));
    }
    return target;
}

}  // namespace

std::int64_t StoredTensor::elements() const {
    std::int64_t product = 1;
    for (const std::int64_t extent : shape) {
        product *= extent;
    }
    return product;
}

std::vector<float> StoredTensor::as_floats() const {
    std::vector<float> values(data.size() / type_row(type).bytes);
    for_each_element(*this, [&](std::size_t i, auto value) { values[i] = static_cast<float>(value); });
    return values;
}

std::vector<double> StoredTensor::as_doubles() const {
    std::vector<double> values(data.size() / type_row(type).bytes);
    for_each_element(*this, [&](std::size_t i, auto value) { values[i] = static_cast<double>(value); });
    return values;
}

std::vector<std::int32_t> StoredTensor::as_ints() const {
    std::vector<std::int32_t> values(data.size() / type_row(type).bytes);
    for_each_element(*this, [&](std::size_t i, auto value) {
        const auto number = static_cast<double>(value);
        if (!(number >= std::numeric_limits<std::int32_t>::min() &&
              number <= std::numeric_limits<std::int32_t>::max() && number == std::floor(number))) {
            throw ConfigError(fmt::format("element {} is {}, expected a whole number of 32 bits", i, number));
        }
        values[i] = static_cast<std::int32_t>(value);
    });
    return values;
}

TensorFile read_safetensors(const std::string& path) {
    const std::uint64_t file_bytes = regular_file_bytes(path);
    errno = 0;
    std::ifstream in(path, std::ios::binary);
    if (!in.is_open()) {
        fail(path, fmt::format("cannot be read: {}", std::strerror(errno)));
    }
    const auto read = [&](std::byte* to, std::uint64_t bytes) {
        in.read(reinterpret_cast<char*>(to), static_cast<std::streamsize>(bytes));
        if (static_cast<std::uint64_t>(in.gcount()) != bytes) {
            fail(path, "cannot be read to its end");
        }
    };
    if (file_bytes < kLengthBytes) {
        fail(path, fmt::format("holds {} bytes; a safetensors file starts with 8 bytes of header length", file_bytes));
    }
    std::byte length[kLengthBytes];
    read(length, kLengthBytes);
    const auto header_bytes = read_word<std::uint64_t>(length);
    if (header_bytes > kMaxHeaderBytes) {
        fail(path, fmt::format("header length {} is above the format's limit of {} bytes: not a safetensors file",
                               header_bytes, kMaxHeaderBytes));
    }
    if (header_bytes > file_bytes - kLengthBytes) {
        fail(path,
             fmt::format("header length {} reaches beyond the file, which holds {} bytes", header_bytes, file_bytes));
    }
    std::string text(static_cast<std::size_t>(header_bytes), ' ');
    read(reinterpret_cast<std::byte*>(text.data()), header_bytes);
    const nlohmann::json header = parse_header(path, text);
    const std::uint64_t body_start = kLengthBytes + header_bytes;
    const std::uint64_t body_bytes = file_bytes - body_start;

    TensorFile file;
    std::vector<Extent> extents;
    for (const auto& [name, value] : header.items()) {
        if (name == kMetadata) {
            const bool all_strings = value.is_object() && std::all_of(value.begin(), value.end(),
                                                                      [](const auto& v) { return v.is_string(); });
            if (!all_strings) {
                fail(path, "__metadata__ is not an object of strings");
            }
            file.metadata = value.get<std::map<std::string, std::string>>();
            continue;
        }
        Entry entry = parse_entry(path, name, value, body_bytes);
        extents.push_back(entry.extent);
        file.tensors.emplace(name, std::move(entry.tensor));
    }
    check_cover(path, extents, body_bytes);
    for (const Extent& extent : extents) {
        std::vector<std::byte>& data = file.tensors.at(extent.name).data;
        data.resize(static_cast<std::size_t>(extent.end - extent.begin));
        in.seekg(static_cast<std::streamoff>(body_start + extent.begin));
        read(data.data(), data.size());
    }
    return file;
}

void write_safetensors(const std::string& path, const TensorFile& file) {
    std::vector<const std::string*> order;
    for (const auto& [name, tensor] : file.tensors) {
        const auto bytes = static_cast<std::uint64_t>(tensor.elements()) * type_row(tensor.type).bytes;
        if (name == kMetadata || bytes != tensor.data.size()) {
            throw std::invalid_argument(fmt::format("tensor '{}' cannot be stored: {} bytes of data, {} of shape", name,
                                                    tensor.data.size(), bytes));
        }
        order.push_back(&name);
    }
    // Widest elements first: then each tensor is aligned to its own element size.
    std::stable_sort(order.begin(), order.end(), [&](const std::string* a, const std::string* b) {
        return type_row(file.tensors.at(*a).type).bytes > type_row(file.tensors.at(*b).type).bytes;
    });
    const std::string header = header_text(file, order);
    std::byte length[kLengthBytes];
    write_word<std::uint64_t>(header.size(), length);

    const fs::path target = write_target(path);
    const fs::path temporary = target.parent_path() / fmt::format(".{}.{}.tmp", target.filename().string(), ::getpid());
    std::error_code error;
    errno = 0;
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(length), kLengthBytes);
    out.write(header.data(), static_cast<std::streamsize>(header.size()));
    for (const std::string* name : order) {
        const std::vector<std::byte>& data = file.tensors.at(*name).data;
        out.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
    }
    out.close();
    if (!out) {
        const int reason = errno;
        fs::remove(temporary, error);
        fail(path, fmt::format("cannot be written: {}", std::strerror(reason)));
    }
    fs::rename(temporary, target, error);
    if (error) {
        const std::string reason = error.message();
        fs::remove(temporary, error);
        fail(path, fmt::format("cannot be written: {}", reason));
    }
}

StoredTensor make_f32(std::vector<std::int64_t> shape, const std::vector<float>& values) {
    StoredTensor tensor;
    tensor.type = StoredType::F32;
    tensor.shape = std::move(shape);
    if (tensor.elements() != static_cast<std::int64_t>(values.size())) {
        throw std::invalid_argument(
            fmt::format("{} values for a tensor of {} elements", values.size(), tensor.elements()));
    }
    tensor.data.resize(values.size() * sizeof(float));
    for (std::size_t i = 0; i < values.size(); ++i) {
        write_word(same_bits<std::uint32_t>(values[i]), tensor.data.data() + i * sizeof(float));
    }
    return tensor;
}

}  // namespace contraflow
