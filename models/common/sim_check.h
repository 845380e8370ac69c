// SIM_CHECK(condition, message): an invariant of the model, checked in every build type. A broken one leaves sc_start
// as an exception that names the instance, the time and the values; it is never the user's mistake.
#pragma once

#include <sstream>
#include <systemc>

#include "common/block.h"

#define SIM_CHECK(condition, message)                                                                             \
    do {                                                                                                          \
        if (!(condition)) {                                                                                       \
            std::ostringstream sim_check_text;                                                                    \
            sim_check_text << message << " (" << #condition << " failed at " << contraflow::ClockDomain::now_ps() \
                           << " ps)";                                                                             \
            SC_REPORT_ERROR("/contraflow/check", sim_check_text.str().c_str());                                   \
        }                                                                                                         \
    } while (false)
