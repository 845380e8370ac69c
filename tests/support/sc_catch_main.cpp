// Entry point of module and system tests: runs the Catch2 session inside sc_main and turns every SystemC report that
// the test did not announce into a failure.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include "support/expected_reports.h"

#include <systemc>

#include <cstdlib>
#include <iostream>

namespace {

bool counts_as_expected(sc_core::sc_severity severity, const char* name) {
    const int seen = sc_core::sc_report_handler::get_count(severity);
    const int expected = contraflow::test::expected_reports(severity);
    if (seen != expected) {
        std::cerr << "SystemC made " << seen << " " << name << " reports, the test expected " << expected << '\n';
    }
    return seen == expected;
}

}  // namespace

int sc_main(int argc, char* argv[]) {
    const int result = Catch::Session().run(argc, argv);
    bool expected = counts_as_expected(sc_core::SC_WARNING, "warning");
    expected = counts_as_expected(sc_core::SC_ERROR, "error") && expected;
    expected = counts_as_expected(sc_core::SC_FATAL, "fatal") && expected;
    return result != 0 ? result : (expected ? 0 : 1);
}

// The library's own main prints its banner first, which the test discovery would have to skip.
int main(int argc, char* argv[]) {
    setenv("SC_COPYRIGHT_MESSAGE", "DISABLE", 0);
    return sc_core::sc_elab_and_sim(argc, argv);
}
