#include "dram_trace/request_trace.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>

#include "contraflow/error.h"

namespace contraflow {

namespace {

constexpr Cycle kMaxCycle = 1'000'000'000'000;
constexpr std::size_t kMaxLineBytes = 200;

struct Close {
    void operator()(gzFile_s* file) const { gzclose(file); }
};

// Lines of a file that may be compressed.
class Lines {
public:
    explicit Lines(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
        if (!file_) {
            throw ConfigError(path + ": " + (errno != 0 ? std::strerror(errno) : "not enough memory to read it"));
        }
        gzbuffer(file_.get(), 1U << 16);
    }

    // False at the end of the file.
    bool next(std::string_view& line) {
        const bool any = gzgets(file_.get(), buffer_.data(), static_cast<int>(buffer_.size())) != nullptr;
        line = std::string_view(any ? buffer_.data() : "");
        number_ += any ? 1 : 0;
        if (line.empty() || line.back() != '\n') {
            check_end();
        }
        while (!line.empty() && std::strchr(" \t\r\n", line.back()) != nullptr) {
            line.remove_suffix(1);
        }
        return any;
    }

    [[nodiscard]] std::uint32_t number() const { return number_; }  // of the latest line, from 1

private:
    // What was read does not end a line, so it must be the end of the file.
    void check_end() const {
        int code = Z_OK;
        const char* text = gzerror(file_.get(), &code);
        if (code != Z_OK && code != Z_STREAM_END) {
            throw ConfigError(fmt::format("{}:{}: is not readable: {}", path_, number_ + 1,
                                          code == Z_ERRNO ? std::strerror(errno) : text));
        }
        if (gzeof(file_.get()) == 0) {
            throw ConfigError(
                fmt::format("{}:{}: is longer than {} characters, or not text", path_, number_, buffer_.size() - 2));
        }
    }

    const std::string& path_;
    std::unique_ptr<gzFile_s, Close> file_;
    std::array<char, kMaxLineBytes> buffer_{};
    std::uint32_t number_ = 0;
};

std::string_view take_word(std::string_view& line) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) {
        line = {};
        return {};
    }
    const std::size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    const std::string_view word = line.substr(begin, end - begin);
    line.remove_prefix(end);
    return word;
}

bool parse(std::string_view word, int base, std::uint64_t& value) {
    const auto result = std::from_chars(word.data(), word.data() + word.size(), value, base);
    return !word.empty() && result.ec == std::errc() && result.ptr == word.data() + word.size();
}

// Returns what is wrong with the line; empty if nothing is.
std::string parse_request(std::string_view line, TraceRequest& request) {
    const std::string_view cycle = take_word(line);
    const std::string_view kind = take_word(line);
    const std::string_view address = take_word(line);
    if (!parse(cycle, 10, request.cycle) || request.cycle > kMaxCycle) {
        return fmt::format("cycle \"{}\" is not a whole number of 0 to {}", cycle, kMaxCycle);
    }
    if (kind != "R" && kind != "W") {
        return fmt::format("request \"{}\" is neither R nor W", kind);
    }
    request.write = kind == "W";
    if (address.substr(0, 2) != "0x" || !parse(address.substr(2), 16, request.address)) {
        return fmt::format("address \"{}\" is not a hexadecimal number such as 0x1f40", address);
    }
    const std::string_view rest = take_word(line);
    return rest.empty() ? "" : fmt::format("\"{}\" follows the address; expected nothing", rest);
}

}  // namespace

std::vector<TraceRequest> read_request_trace(const std::string& path, std::uint64_t capacity_bytes,
                                             const std::string& memory_name) {
    std::vector<TraceRequest> requests;
    Lines lines(path);
    std::string_view line;
    Cycle latest = 0;
    while (lines.next(line)) {
        if (line.empty() || line.front() == '#') {
            continue;
        }
        TraceRequest request;
        request.line = lines.number() - 1;
        std::string problem = parse_request(line, request);
        if (problem.empty() && request.cycle < latest) {
            problem =
                fmt::format("cycle {} comes after cycle {}; expected requests in order of time", request.cycle, latest);
        }
        if (problem.empty() && request.address >= capacity_bytes) {
            problem = fmt::format("address 0x{:x} is beyond {}, which holds {} bytes (0x{:x})", request.address,
                                  memory_name, capacity_bytes, capacity_bytes);
        }
        if (!problem.empty()) {
            throw ConfigError(fmt::format("{}:{}: {}", path, lines.number(), problem));
        }
        latest = request.cycle;
        requests.push_back(request);
    }
    if (requests.empty()) {
        throw ConfigError(path + ": holds no request; expected lines `cycle R|W 0xaddress`");
    }
    return requests;
}

}  // namespace contraflow
