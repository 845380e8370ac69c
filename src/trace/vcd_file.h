// A value change dump behind SystemC's sc_trace interface, written within windows of time only.
//
// sc_trace registers references to plain members; cycle(), which SystemC calls before its time advances, hands over to
// the observer (who brings the members up to date and calls sample), and that does nothing outside of windows. A change
// costs one write of some ten bytes into a buffer. Numbers become wires, float and double reals, numbers with literals
// strings ($var string, which GTKWave and vcd2fst read), so that names need no translation files.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <systemc>
#include <unordered_map>
#include <vector>

namespace contraflow {

struct TracedSignal {
    enum class Kind : std::uint8_t { Bit, Number, Real, Text };
    std::string name;  // scopes and name, joined by dots
    Kind kind = Kind::Bit;
    int width = 1;
};

class VcdFile : public sc_core::sc_trace_file {
public:
    // Creates the file; throws std::runtime_error if it cannot. The file never exceeds max_bytes; what would do so ends
    // the dump (full()).
    VcdFile(const std::string& path, std::uint64_t max_bytes);
    ~VcdFile() override;
    VcdFile(const VcdFile&) = delete;
    VcdFile& operator=(const VcdFile&) = delete;

    // Called from cycle(), once all of a time step's delta cycles are over.
    std::function<void()> on_time_step;

    // Signals registered from now on are looked at only while `live` is true: they must not change otherwise. Null:
    // always.
    void look_while(const bool* live) { live_ = live; }

    // Time stamps in ns instead of ps. REQUIRES: nothing has been written; all times are whole ns.
    void use_ns() { unit_ps_ = 1000; }
    // A window begins: all values are written. Times must not fall.
    void begin(std::uint64_t ps);
    // The values that changed, in a window.
    void sample(std::uint64_t ps);
    // One bit at a time between samples (a clock's falling edge), in a window. No effect if it is not traced.
    void set(const bool& bit, std::uint64_t ps);
    // The window ends: no value is known from here on.
    void end(std::uint64_t ps);
    // Everything is in the file. Later calls do nothing. Throws std::runtime_error if writing failed.
    void close();

    [[nodiscard]] const std::vector<TracedSignal>& signals() const { return signals_; }
    [[nodiscard]] std::uint64_t header_bytes() const;
    [[nodiscard]] std::uint64_t unit_ps() const { return unit_ps_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_ + buffer_.size(); }
    [[nodiscard]] bool full() const { return full_; }

    // sc_trace_file. Types that the simulator does not trace are refused (SC_REPORT_ERROR).
    void trace(const bool& object, const std::string& name) override;
    void trace(const float& object, const std::string& name) override;
    void trace(const double& object, const std::string& name) override;
    void trace(const unsigned int& object, const std::string& name, int width) override;
    void trace(const sc_dt::uint64& object, const std::string& name, int width) override;
    void trace(const unsigned long& object, const std::string& name, int width) override;
    void trace(const unsigned char& object, const std::string& name, int width) override;
    void trace(const unsigned short& object, const std::string& name, int width) override;
    void trace(const unsigned int& object, const std::string& name, const char** enum_literals) override;
    void trace(const char& object, const std::string& name, int width) override;
    void trace(const short& object, const std::string& name, int width) override;
    void trace(const int& object, const std::string& name, int width) override;
    void trace(const long& object, const std::string& name, int width) override;
    void trace(const sc_dt::int64& object, const std::string& name, int width) override;
    void trace(const sc_core::sc_event& object, const std::string& name) override;
    void trace(const sc_core::sc_time& object, const std::string& name) override;
    void trace(const sc_dt::sc_bit& object, const std::string& name) override;
    void trace(const sc_dt::sc_logic& object, const std::string& name) override;
    void trace(const sc_dt::sc_int_base& object, const std::string& name) override;
    void trace(const sc_dt::sc_uint_base& object, const std::string& name) override;
    void trace(const sc_dt::sc_signed& object, const std::string& name) override;
    void trace(const sc_dt::sc_unsigned& object, const std::string& name) override;
    void trace(const sc_dt::sc_fxval& object, const std::string& name) override;
    void trace(const sc_dt::sc_fxval_fast& object, const std::string& name) override;
    void trace(const sc_dt::sc_fxnum& object, const std::string& name) override;
    void trace(const sc_dt::sc_fxnum_fast& object, const std::string& name) override;
    void trace(const sc_dt::sc_bv_base& object, const std::string& name) override;
    void trace(const sc_dt::sc_lv_base& object, const std::string& name) override;
    void write_comment(const std::string& comment) override;
    void set_time_unit(double v, sc_core::sc_time_unit tu) override;

private:
    struct Signal {
        const void* object = nullptr;
        std::uint8_t bytes = 1;  // of the object
        TracedSignal::Kind kind = TracedSignal::Kind::Bit;
        std::uint8_t width = 1;
        char id[6] = {};
        const char* const* literals = nullptr;
        std::uint64_t last = 0;
    };
    struct Group {
        const bool* live = nullptr;
        std::size_t end = 0;  // index after its last signal
    };

    void cycle(bool delta_cycle) override;
    void add(const void* object, std::size_t bytes, TracedSignal::Kind kind, int width, const std::string& name,
             const char* const* literals = nullptr);
    void refuse(const std::string& name) const;
    [[nodiscard]] std::string header() const;
    void write_header();
    void stamp(std::uint64_t ps);
    void write(const Signal& signal, std::uint64_t value);
    void write_unknown(const Signal& signal);
    void commit();
    void flush();

    std::FILE* file_ = nullptr;
    std::string path_;
    std::uint64_t unit_ps_ = 1, max_bytes_;
    const bool* live_ = nullptr;
    std::vector<Signal> table_;
    std::unordered_map<const void*, std::size_t> bits_;  // place of a bit in the table
    std::vector<Group> groups_;
    std::vector<TracedSignal> signals_;
    std::string buffer_;
    std::size_t committed_ = 0;  // bytes of the buffer that are in the file for good
    std::uint64_t bytes_ = 0;    // written to the file
    std::uint64_t time_ = 0;     // of the latest stamp, in units
    bool started_ = false, stamped_ = false, full_ = false, failed_ = false;
};

}  // namespace contraflow
