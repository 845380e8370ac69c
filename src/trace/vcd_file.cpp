#include "trace/vcd_file.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include <sysc/tracing/sc_tracing_ids.h>

#include "common/sim_check.h"

namespace contraflow {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

std::uint64_t load(const void* object, std::size_t bytes) {
    switch (bytes) {
        case 1: {
            std::uint8_t value = 0;
            std::memcpy(&value, object, sizeof value);
            return value;
        }
        case 2: {
            std::uint16_t value = 0;
            std::memcpy(&value, object, sizeof value);
            return value;
        }
        case 4: {
            std::uint32_t value = 0;
            std::memcpy(&value, object, sizeof value);
            return value;
        }
        default: {
            std::uint64_t value = 0;
            std::memcpy(&value, object, sizeof value);
            return value;
        }
    }
}

// Identifiers count through the printable characters.
void make_id(std::size_t index, char* id) {
    constexpr std::size_t kFirst = '!';
    constexpr std::size_t kCount = '~' - '!' + 1;
    do {
        *id++ = static_cast<char>(kFirst + index % kCount);
        index /= kCount;
    } while (index != 0);
    *id = '\0';
}

// The shortest digits that give the value with these bits; returns the place after them.
template <typename Real>
char* write_real(char* first, char* last, std::uint64_t bits) {
    Real value = 0;
    std::memcpy(&value, &bits, sizeof value);
    // A nan without its sign, which readers do not expect.
    return std::to_chars(first, last, std::isnan(value) ? std::numeric_limits<Real>::quiet_NaN() : value).ptr;
}

const char* type_of(TracedSignal::Kind kind) {
    switch (kind) {
        case TracedSignal::Kind::Real:
            return "real";
        case TracedSignal::Kind::Text:
            return "string";
        default:
            return "wire";
    }
}

// Scopes as a tree, each with its signals in order of registration.
struct Scope {
    std::vector<std::pair<std::string, std::unique_ptr<Scope>>> scopes;
    std::vector<std::size_t> signals;

    Scope& scope(const std::string& name) {
        for (auto& [own, child] : scopes) {
            if (own == name) {
                return *child;
            }
        }
        scopes.emplace_back(name, std::make_unique<Scope>());
        return *scopes.back().second;
    }
};

}  // namespace

VcdFile::VcdFile(const std::string& path, std::uint64_t max_bytes) : path_(path), max_bytes_(max_bytes) {
    file_ = std::fopen(path.c_str(), "wb");
    if (file_ == nullptr) {
        throw std::runtime_error(fmt::format("{}: {}", path, std::strerror(errno)));
    }
    std::setvbuf(file_, nullptr, _IONBF, 0);
    buffer_.reserve(kBufferBytes + kBufferBytes / 4);
    sc_core::sc_get_curr_simcontext()->add_trace_file(this);
}

VcdFile::~VcdFile() {
    sc_core::sc_get_curr_simcontext()->remove_trace_file(this);
    try {
        close();
    } catch (const std::runtime_error&) {  // on the way out of an error, which is told instead
    }
}

void VcdFile::cycle(bool delta_cycle) {
    if (!delta_cycle && on_time_step) {
        on_time_step();
    }
}

void VcdFile::begin(std::uint64_t ps) {
    write_header();
    const bool first = !stamped_;
    stamp(ps);
    buffer_ += first ? "$dumpvars\n" : "$dumpon\n";
    for (Signal& signal : table_) {
        signal.last = load(signal.object, signal.bytes);
        write(signal, signal.last);
    }
    buffer_ += "$end\n";
    commit();
}

void VcdFile::sample(std::uint64_t ps) {
    std::size_t i = 0;
    for (const Group& group : groups_) {
        if (group.live != nullptr && !*group.live) {
            i = group.end;
            continue;
        }
        for (; i < group.end; ++i) {
            Signal& signal = table_[i];
            const std::uint64_t value = load(signal.object, signal.bytes);
            if (value != signal.last) {
                stamp(ps);
                signal.last = value;
                write(signal, value);
            }
        }
    }
    commit();
}

void VcdFile::set(const bool& bit, std::uint64_t ps) {
    const auto place = bits_.find(&bit);
    if (place == bits_.end()) {
        return;
    }
    Signal& signal = table_[place->second];
    stamp(ps);
    signal.last = bit ? 1 : 0;
    write(signal, signal.last);
    commit();
}

void VcdFile::end(std::uint64_t ps) {
    stamp(ps);
    buffer_ += "$dumpoff\n";
    for (const Signal& signal : table_) {
        write_unknown(signal);
    }
    buffer_ += "$end\n";
    commit();
}

// The time of what follows. Times that are equal are written once.
void VcdFile::stamp(std::uint64_t ps) {
    const std::uint64_t time = ps / unit_ps_;
    if (!stamped_ || time != time_) {
        SIM_CHECK(!stamped_ || time > time_, "the time of " << path_ << " falls");
        buffer_ += '#';
        char digits[24];
        buffer_.append(digits, std::to_chars(digits, digits + sizeof digits, time).ptr);
        buffer_ += '\n';
    }
    time_ = time;
    stamped_ = true;
}

void VcdFile::write(const Signal& signal, std::uint64_t value) {
    // Put together in one place and added at once.
    std::array<char, 2 + 64 + sizeof signal.id + 2> line;
    char* const end = line.data() + line.size();
    char* next = line.data();
    switch (signal.kind) {
        case TracedSignal::Kind::Bit:
            *next++ = value != 0 ? '1' : '0';
            break;
        case TracedSignal::Kind::Number: {
            *next++ = 'b';
            next = std::to_chars(next, end, value, 2).ptr;
            *next++ = ' ';
            break;
        }
        case TracedSignal::Kind::Real:
            *next++ = 'r';
            next = signal.bytes == sizeof(float) ? write_real<float>(next, end, value)
                                                 : write_real<double>(next, end, value);
            *next++ = ' ';
            break;
        case TracedSignal::Kind::Text:
            buffer_ += 's';
            buffer_ += signal.literals[value];
            *next++ = ' ';
            break;
    }
    for (const char* id = signal.id; *id != '\0'; ++id) {
        *next++ = *id;
    }
    *next++ = '\n';
    buffer_.append(line.data(), next);
}

void VcdFile::write_unknown(const Signal& signal) {
    switch (signal.kind) {
        case TracedSignal::Kind::Bit:
            buffer_ += 'x';
            break;
        case TracedSignal::Kind::Number:
            buffer_ += "bx ";
            break;
        case TracedSignal::Kind::Real:
            buffer_ += "rnan ";
            break;
        case TracedSignal::Kind::Text:
            buffer_ += "sx ";
            break;
    }
    buffer_ += signal.id;
    buffer_ += '\n';
}

// What has been added to the buffer goes to the file, whole, or not at all if the file would become too large.
void VcdFile::commit() {
    if (full_ || failed_ || bytes_ + buffer_.size() > max_bytes_) {
        full_ = true;
        buffer_.resize(committed_);
        return;
    }
    committed_ = buffer_.size();
    if (committed_ >= kBufferBytes) {
        flush();
    }
}

void VcdFile::flush() {
    if (std::fwrite(buffer_.data(), 1, committed_, file_) != committed_) {
        failed_ = true;
        full_ = true;
    }
    bytes_ += committed_;
    buffer_.clear();
    committed_ = 0;
}

void VcdFile::close() {
    if (file_ == nullptr) {
        return;
    }
    write_header();
    buffer_.resize(committed_);
    flush();
    failed_ = std::fclose(file_) != 0 || failed_;
    file_ = nullptr;
    if (failed_) {
        throw std::runtime_error(fmt::format("{}: could not be written: {}", path_, std::strerror(errno)));
    }
}

void VcdFile::write_header() {
    if (!started_) {
        started_ = true;
        buffer_ += header();
        committed_ = buffer_.size();
    }
}

std::uint64_t VcdFile::header_bytes() const {
    return header().size();
}

std::string VcdFile::header() const {
    Scope root;
    for (std::size_t i = 0; i < signals_.size(); ++i) {
        Scope* scope = &root;
        const std::string& name = signals_[i].name;
        std::size_t begin = 0;
        for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', begin)) {
            scope = &scope->scope(name.substr(begin, dot - begin));
            begin = dot + 1;
        }
        scope->signals.push_back(i);
    }
    std::string text =
        fmt::format("$version contraflow trace $end\n$timescale 1 {} $end\n", unit_ps_ == 1 ? "ps" : "ns");
    const std::function<void(const Scope&)> write_scope = [&](const Scope& scope) {
        for (const std::size_t i : scope.signals) {
            const TracedSignal& signal = signals_[i];
            const std::string base = signal.name.substr(signal.name.rfind('.') + 1);
            // A string has no width, a real 64 bits.
            const int width = signal.kind == TracedSignal::Kind::Real ? 64 : signal.width;
            text += fmt::format("$var {} {} {} {}{} $end\n", type_of(signal.kind), width, table_[i].id, base,
                                signal.kind == TracedSignal::Kind::Number ? fmt::format(" [{}:0]", width - 1) : "");
        }
        for (const auto& [name, child] : scope.scopes) {
            text += fmt::format("$scope module {} $end\n", name);
            write_scope(*child);
            text += "$upscope $end\n";
        }
    };
    write_scope(root);
    return text + "$enddefinitions $end\n";
}

void VcdFile::add(const void* object, std::size_t bytes, TracedSignal::Kind kind, int width, const std::string& name,
                  const char* const* literals) {
    if (started_ || sc_core::sc_start_of_simulation_invoked()) {
        SC_REPORT_ERROR(sc_core::SC_ID_TRACING_ALREADY_INITIALIZED_, name.c_str());
        return;
    }
    Signal signal;
    signal.object = object;
    signal.bytes = static_cast<std::uint8_t>(bytes);
    signal.kind = kind;
    signal.width = static_cast<std::uint8_t>(width);
    make_id(table_.size(), signal.id);
    signal.literals = literals;
    if (kind == TracedSignal::Kind::Bit) {
        bits_.emplace(object, table_.size());
    }
    table_.push_back(signal);
    signals_.push_back({name, kind, width});
    if (groups_.empty() || groups_.back().live != live_) {
        groups_.push_back({live_, 0});
    }
    groups_.back().end = table_.size();
}

void VcdFile::refuse(const std::string& name) const {
    SC_REPORT_ERROR("/contraflow/trace", (name + " is of a type that is not traced").c_str());
}

void VcdFile::trace(const bool& object, const std::string& name) {
    add(&object, sizeof object, TracedSignal::Kind::Bit, 1, name);
}
void VcdFile::trace(const float& object, const std::string& name) {
    add(&object, sizeof object, TracedSignal::Kind::Real, 32, name);
}
void VcdFile::trace(const double& object, const std::string& name) {
    add(&object, sizeof object, TracedSignal::Kind::Real, 64, name);
}
void VcdFile::trace(const unsigned int& object, const std::string& name, const char** enum_literals) {
    add(&object, sizeof object, TracedSignal::Kind::Text, 1, name, enum_literals);
}

#define CONTRAFLOW_TRACE_NUMBER(type)                                             \
    void VcdFile::trace(const type& object, const std::string& name, int width) { \
        add(&object, sizeof object, TracedSignal::Kind::Number, width, name);     \
    }
CONTRAFLOW_TRACE_NUMBER(unsigned char)
CONTRAFLOW_TRACE_NUMBER(unsigned short)
CONTRAFLOW_TRACE_NUMBER(unsigned int)
CONTRAFLOW_TRACE_NUMBER(unsigned long)
CONTRAFLOW_TRACE_NUMBER(sc_dt::uint64)
#undef CONTRAFLOW_TRACE_NUMBER

// No register of the machine is signed or of a SystemC type.
#define CONTRAFLOW_REFUSE_WIDTH(type)                                \
    void VcdFile::trace(const type&, const std::string& name, int) { \
        refuse(name);                                                \
    }
CONTRAFLOW_REFUSE_WIDTH(char)
CONTRAFLOW_REFUSE_WIDTH(short)
CONTRAFLOW_REFUSE_WIDTH(int)
CONTRAFLOW_REFUSE_WIDTH(long)
CONTRAFLOW_REFUSE_WIDTH(sc_dt::int64)
#undef CONTRAFLOW_REFUSE_WIDTH
#define CONTRAFLOW_REFUSE(type)                                 \
    void VcdFile::trace(const type&, const std::string& name) { \
        refuse(name);                                           \
    }
CONTRAFLOW_REFUSE(sc_core::sc_event)
CONTRAFLOW_REFUSE(sc_core::sc_time)
CONTRAFLOW_REFUSE(sc_dt::sc_bit)
CONTRAFLOW_REFUSE(sc_dt::sc_logic)
CONTRAFLOW_REFUSE(sc_dt::sc_int_base)
CONTRAFLOW_REFUSE(sc_dt::sc_uint_base)
CONTRAFLOW_REFUSE(sc_dt::sc_signed)
CONTRAFLOW_REFUSE(sc_dt::sc_unsigned)
CONTRAFLOW_REFUSE(sc_dt::sc_fxval)
CONTRAFLOW_REFUSE(sc_dt::sc_fxval_fast)
CONTRAFLOW_REFUSE(sc_dt::sc_fxnum)
CONTRAFLOW_REFUSE(sc_dt::sc_fxnum_fast)
CONTRAFLOW_REFUSE(sc_dt::sc_bv_base)
CONTRAFLOW_REFUSE(sc_dt::sc_lv_base)
#undef CONTRAFLOW_REFUSE

void VcdFile::write_comment(const std::string&) {}

void VcdFile::set_time_unit(double, sc_core::sc_time_unit) {
    refuse("the time unit is chosen with the file; it");
}

}  // namespace contraflow
