#include "contraflow/safetensors.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <limits>
#include <stdexcept>

#include "contraflow/error.h"
#include "support/temporary_folder.h"

using contraflow::ConfigError;
using contraflow::make_f32;
using contraflow::read_safetensors;
using contraflow::StoredTensor;
using contraflow::StoredType;
using contraflow::TensorFile;
using contraflow::write_safetensors;
using contraflow::test::read_bytes;
using contraflow::test::TemporaryFolder;

namespace {

std::string length_bytes(std::uint64_t length) {
    std::string bytes;
    for (unsigned i = 0; i < 8; ++i) {
        bytes += static_cast<char>(length >> (8 * i));
    }
    return bytes;
}

// A file of this header and `body_bytes` bytes of data.
std::string file_bytes(const std::string& header, std::size_t body_bytes) {
    return length_bytes(header.size()) + header + std::string(body_bytes, '\0');
}

// The one line that reading a file of these bytes fails with, without the file's name.
std::string error_of(const std::string& bytes) {
    const TemporaryFolder folder;
    const std::string path = folder.write("t.safetensors", bytes);
    try {
        (void)read_safetensors(path);
    } catch (const ConfigError& error) {
        REQUIRE(error.lines().size() == 1);
        const std::string line = error.what();
        REQUIRE(line.substr(0, path.size() + 2) == path + ": ");
        REQUIRE(line.find('\n') == std::string::npos);
        return line.substr(path.size() + 2);
    }
    return "no error";
}

std::string header_error(const std::string& header, std::size_t body_bytes) {
    return error_of(file_bytes(header, body_bytes));
}

StoredTensor stored(StoredType type, std::vector<std::int64_t> shape, const std::vector<unsigned>& bytes) {
    StoredTensor tensor;
    tensor.type = type;
    tensor.shape = std::move(shape);
    for (const unsigned byte : bytes) {
        tensor.data.push_back(static_cast<std::byte>(byte));
    }
    return tensor;
}

std::string write_error(const std::string& path) {
    try {
        write_safetensors(path, TensorFile{{}, {{"x", make_f32({1}, {1.0F})}}});
    } catch (const ConfigError& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace

TEST_CASE("a tensor file that is written reads back unchanged") {
    const TemporaryFolder folder;
    TensorFile file;
    file.metadata = {{"kind", "test"}, {"quote", "a \"b\" \xC3\xA9"}};
    file.tensors["scalar"] = make_f32({}, {-0.0F});
    file.tensors["b"] = make_f32({2, 3}, {1, 2, 3, 4, 5, std::numeric_limits<float>::denorm_min()});
    file.tensors["empty"] = make_f32({0, 4}, {});
    file.tensors["flags"] = stored(StoredType::U8, {3}, {0, 1, 255});
    file.tensors["ids"] = stored(StoredType::I32, {2}, {0xff, 0xff, 0xff, 0xff, 0, 1, 0, 0});
    file.tensors["wide"] = stored(StoredType::F64, {1}, {0, 0, 0, 0, 0, 0, 0xf0, 0x3f});
    const std::string path = folder.file("a.safetensors");
    write_safetensors(path, file);
    const TensorFile back = read_safetensors(path);

    CHECK(back.metadata == file.metadata);
    REQUIRE(back.tensors.size() == file.tensors.size());
    for (const auto& [name, tensor] : file.tensors) {
        INFO(name);
        CHECK(back.tensors.at(name).type == tensor.type);
        CHECK(back.tensors.at(name).shape == tensor.shape);
        CHECK((back.tensors.at(name).data == tensor.data));
    }
    CHECK(back.tensors.at("ids").as_ints() == std::vector<std::int32_t>{-1, 256});
    CHECK(back.tensors.at("flags").as_ints() == std::vector<std::int32_t>{0, 1, 255});
    CHECK(back.tensors.at("wide").as_doubles() == std::vector<double>{1.0});
    CHECK(back.tensors.at("scalar").elements() == 1);
    CHECK(back.tensors.at("empty").elements() == 0);
}

TEST_CASE("a stored double is rounded to float once") {
    const double value = 1.0 + 0x1p-24 + 0x1p-50;  // above the middle between two floats
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    StoredTensor tensor;
    tensor.type = StoredType::F64;
    for (unsigned i = 0; i < 8; ++i) {
        tensor.data.push_back(static_cast<std::byte>(bits >> (8 * i)));
    }
    CHECK(tensor.as_floats() == std::vector<float>{1.0F + 0x1p-23F});
}

TEST_CASE("only whole numbers of 32 bits convert to ids") {
    CHECK(make_f32({2}, {3, -4}).as_ints() == std::vector<std::int32_t>{3, -4});
    CHECK_THROWS_AS(make_f32({1}, {0.5F}).as_ints(), ConfigError);
    CHECK_THROWS_AS(make_f32({1}, {3e9F}).as_ints(), ConfigError);
    CHECK_THROWS_AS(make_f32({1}, {std::numeric_limits<float>::quiet_NaN()}).as_ints(), ConfigError);
}

TEST_CASE("tensors are written widest first, then by name, behind a header of a multiple of 8 bytes") {
    const TemporaryFolder folder;
    TensorFile file;
    file.tensors["a"] = stored(StoredType::U8, {1}, {7});
    file.tensors["c"] = make_f32({1}, {1.0F});
    file.tensors["b"] = make_f32({1}, {2.0F});
    file.tensors["d"] = stored(StoredType::F64, {1}, {1, 2, 3, 4, 5, 6, 7, 8});
    write_safetensors(folder.file("x"), file);
    const std::string bytes = read_bytes(folder.file("x"));

    const std::string header = R"({"d":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},)"
                               R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},)"
                               R"("c":{"dtype":"F32","shape":[1],"data_offsets":[12,16]},)"
                               R"("a":{"dtype":"U8","shape":[1],"data_offsets":[16,17]}})";
    const std::string padding((8 - header.size() % 8) % 8, ' ');
    const std::string data("\1\2\3\4\5\6\7\10\0\0\0\x40\0\0\x80\x3f\7", 17);
    CHECK((bytes == length_bytes(header.size() + padding.size()) + header + padding + data));
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path().string()), {}) ==
          1);  // no temporary file is left
}

TEST_CASE("a file that is there is replaced as a whole, through a symbolic link as well") {
    const TemporaryFolder folder;
    folder.write("real", "something much longer than the file that replaces it, or so it was meant to be" +
                             std::string(1000, '.'));
    std::filesystem::create_symlink("real", folder.file("link"));
    CHECK(write_error(folder.file("link")) == "no error");
    CHECK(std::filesystem::is_symlink(folder.file("link")));
    CHECK(read_safetensors(folder.file("real")).tensors.at("x").as_floats() == std::vector<float>{1.0F});
}

TEST_CASE("a file that cannot be written is an error that names it and leaves nothing") {
    const TemporaryFolder folder;
    CHECK(write_error(folder.file("none/x")) ==
          folder.file("none/x") + ": cannot be written: no folder " + folder.file("none"));
    CHECK(write_error(folder.path().string()) ==
          folder.path().string() + ": is a directory, expected the name of a file to write");
    CHECK(write_error("/dev/null").find("/dev/null: is not a regular file") == 0);
    CHECK(write_error("") == "the name of a file to write is empty");
    CHECK(write_error(folder.file(std::string(300, 'x'))).find("cannot be written: File name too long") !=
          std::string::npos);
    if (::geteuid() != 0) {  // root may write everywhere
        ::chmod(folder.path().string().c_str(), 0500);
        CHECK(write_error(folder.file("x")) == folder.file("x") + ": cannot be written: Permission denied");
        ::chmod(folder.path().string().c_str(), 0700);
    }
    CHECK(std::filesystem::is_empty(folder.path().string()));
}

TEST_CASE("a tensor whose data does not match its shape is not written") {
    const TemporaryFolder folder;
    StoredTensor tensor = make_f32({2}, {1, 2});
    tensor.shape = {3};
    CHECK_THROWS_AS(write_safetensors(folder.file("x"), TensorFile{{}, {{"x", tensor}}}), std::invalid_argument);
    CHECK_THROWS_AS(make_f32({3}, {1, 2}), std::invalid_argument);
}

TEST_CASE("a path that is no readable file is named") {
    const TemporaryFolder folder;
    CHECK_THROWS_WITH(read_safetensors(folder.file("none")), folder.file("none") + ": no such file");
    CHECK_THROWS_WITH(read_safetensors(folder.path().string()),
                      folder.path().string() + ": is a directory, expected a safetensors file");
    CHECK_THROWS_WITH(read_safetensors("/dev/null"), "/dev/null: is not a regular file, expected a safetensors file");
    if (::geteuid() != 0) {
        const std::string path = folder.write("locked", "x");
        ::chmod(path.c_str(), 0);
        CHECK_THROWS_WITH(read_safetensors(path), path + ": cannot be read: Permission denied");
    }
}

TEST_CASE("a header length that cannot be is refused") {
    CHECK(error_of("") == "holds 0 bytes; a safetensors file starts with 8 bytes of header length");
    CHECK(error_of("1234567") == "holds 7 bytes; a safetensors file starts with 8 bytes of header length");
    CHECK(error_of(length_bytes(3) + "{}") == "header length 3 reaches beyond the file, which holds 10 bytes");
    CHECK(error_of(length_bytes(~std::uint64_t{0}) + "{}") ==
          "header length 18446744073709551615 is above the format's limit of 100000000 bytes: not a safetensors file");
    CHECK(error_of(length_bytes(100'000'001) + "{}").find("above the format's limit") != std::string::npos);
    CHECK(error_of(length_bytes(100'000'000) + "{}").find("reaches beyond the file") != std::string::npos);
}

TEST_CASE("a header that is not a JSON object of tensors is refused") {
    CHECK(header_error("", 0) == "the header is not valid JSON (at byte 1 of it)");
    CHECK(header_error("{\"x\":", 0) == "the header is not valid JSON (at byte 6 of it)");
    CHECK(header_error("{} x", 0).find("not valid JSON") != std::string::npos);
    CHECK(header_error("{\"\xff\":1}", 0).find("not valid JSON") != std::string::npos);
    CHECK(header_error("[]", 0) == "the header is not a JSON object of tensors");
    CHECK(header_error(std::string(100'000, '['), 0).find("not valid JSON") != std::string::npos);
    CHECK(header_error(R"({"__metadata__":{"a":1}})", 0) == "__metadata__ is not an object of strings");
    CHECK(header_error(R"({"x":3})", 0) == "tensor 'x': no usable \"dtype\" in the header");
    CHECK(header_error(R"({"x":{"dtype":"F32","data_offsets":[0,4]}})", 4) ==
          "tensor 'x': no usable \"shape\" in the header");
    CHECK(header_error(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4) ==
          "tensor 'x': no usable \"data_offsets\" in the header");
    CHECK(header_error("{}   ", 0) == "no error");
}

TEST_CASE("a name that stands twice in the header is refused") {
    const std::string x = R"("x":{"dtype":"U8","shape":[1],"data_offsets":)";
    CHECK(header_error("{" + x + "[0,1]}," + x + "[1,2]}}", 2) == "the header names 'x' twice");
    CHECK(header_error(R"({"x":{"dtype":"U8","dtype":"F32","shape":[1],"data_offsets":[0,1]}})", 1) ==
          "the header names 'dtype' twice");
}

TEST_CASE("a type that is not supported is named") {
    for (const std::string type : {"F16", "BF16", "I64", "f32", ""}) {
        CHECK(header_error(R"({"enc.w":{"dtype":")" + type + R"(","shape":[2],"data_offsets":[0,4]}})", 4) ==
              "tensor 'enc.w': dtype " + type + " is not supported; expected F32, F64, I32 or U8");
    }
}

TEST_CASE("a shape that is not made of whole numbers from 0 is refused") {
    const auto error = [](const std::string& shape) {
        return header_error(R"({"x":{"dtype":"U8","shape":[)" + shape + R"(],"data_offsets":[0,6]}})", 6);
    };
    CHECK(error("2,3") == "no error");
    CHECK(error("-2,-3") == "tensor 'x': shape holds -2, expected whole numbers from 0");
    CHECK(error("6.0") == "tensor 'x': shape holds 6.0, expected whole numbers from 0");
    CHECK(error("\"6\"") == "tensor 'x': shape holds \"6\", expected whole numbers from 0");
    CHECK(error("1e99") == "tensor 'x': shape holds 1e+99, expected whole numbers from 0");
}

TEST_CASE("offsets that do not hold the elements of the shape are refused") {
    const auto error = [](const std::string& shape, const std::string& offsets, std::size_t body) {
        return header_error(R"({"x":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}", body);
    };
    CHECK(error("[2]", "[0,8]", 8) == "no error");
    CHECK(error("[2]", "[0,4]", 4) == "tensor 'x': data_offsets hold 4 bytes, but F32 elements of its shape take 8");
    CHECK(error("[]", "[0,8]", 8) == "tensor 'x': data_offsets hold 8 bytes, but F32 elements of its shape take 4");
    CHECK(error("[2]", "[8,0]", 8) == "tensor 'x': data_offsets 8 to 0 run backwards");
    CHECK(error("[2]", "[-8,0]", 8) == "tensor 'x': data_offsets holds -8, expected whole numbers from 0");
    CHECK(error("[2]", "[0,8]", 7) ==
          "tensor 'x': data_offsets 0 to 8 leave the file, which holds 7 bytes of data (is it truncated?)");
    CHECK(error("[4611686018427387904,4611686018427387904]", "[0,0]", 0) ==
          "tensor 'x': data_offsets hold 0 bytes, but F32 elements of its shape take more than a file can hold");
    CHECK(error("[18446744073709551615]", "[0,0]", 0).find("more than a file can hold") != std::string::npos);
    CHECK(error("[0,18446744073709551615]", "[0,0]", 0).find("more than a file can hold") != std::string::npos);
}

TEST_CASE("tensors that overlap, leave gaps or are not aligned are refused") {
    const auto error = [](const std::string& a, const std::string& b, std::size_t body) {
        return header_error(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)" + a +
                                R"(},"b":{"dtype":"U8","shape":[1],"data_offsets":)" + b + "}}",
                            body);
    };
    CHECK(error("[0,8]", "[8,9]", 9) == "no error");
    CHECK(error("[0,8]", "[7,8]", 8) == "tensor 'b': data_offsets 7 to 8 overlap those of 'a'");
    CHECK(error("[0,8]", "[9,10]", 10) == "tensor 'b': bytes 8 to 9 before it belong to no tensor");
    CHECK(error("[0,8]", "[8,9]", 12) == "3 bytes of data behind the last tensor belong to none");
    CHECK(error("[1,9]", "[0,1]", 9) == "tensor 'a': data offset 1 is not a multiple of its 4 bytes per element");
}

TEST_CASE("a name with control characters does not break the error line") {
    CHECK(header_error("{\"a\\nb\":3}", 0) == "tensor 'a\\x0Ab': no usable \"dtype\" in the header");
}

TEST_CASE("every vector file of the tests reads") {
    int files = 0;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::string(CONTRAFLOW_SOURCE_DIR) + "/tests/golden")) {
        if (entry.path().extension() == ".safetensors") {
            INFO(entry.path());
            const TensorFile file = read_safetensors(entry.path().string());
            CHECK(file.metadata.count("kind") == 1);
            CHECK_FALSE(file.tensors.empty());
            ++files;
        }
    }
    CHECK(files == 62);
}

TEST_CASE("a truncated or damaged vector file never reads as something else") {
    const std::string bytes =
        read_bytes(std::string(CONTRAFLOW_SOURCE_DIR) + "/tests/golden/ops/cross_entropy_intent.safetensors");
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        INFO(size);
        CHECK(error_of(bytes.substr(0, size)) != "no error");
    }
    CHECK(error_of(bytes + "x") != "no error");
    CHECK(error_of(bytes) == "no error");
}
