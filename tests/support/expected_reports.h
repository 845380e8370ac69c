// SystemC reports a test provokes on purpose. Every other warning, error or fatal report fails the test.
#pragma once

#include <systemc>

namespace contraflow::test {

// From now on `count` more reports of this severity must be made before the test ends; fewer fail it as well.
void expect_reports(sc_core::sc_severity severity, int count = 1);

// Number of reports of this severity announced so far.
[[nodiscard]] int expected_reports(sc_core::sc_severity severity);

}  // namespace contraflow::test
