#include "support/expected_reports.h"

#include <array>
#include <cstddef>

namespace contraflow::test {

namespace {
std::array<int, sc_core::SC_MAX_SEVERITY> expected{};
}  // namespace

void expect_reports(sc_core::sc_severity severity, int count) {
    expected.at(static_cast<std::size_t>(severity)) += count;
}

int expected_reports(sc_core::sc_severity severity) {
    return expected.at(static_cast<std::size_t>(severity));
}

}  // namespace contraflow::test
