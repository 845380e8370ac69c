#include "simulate/elaboration.h"

#include <systemc>

namespace contraflow {

bool forget_elaboration() {
    constexpr bool kIsKnown = SC_VERSION_MAJOR == 2 && SC_VERSION_MINOR == 3;
    if (kIsKnown) {
        delete sc_core::sc_curr_simcontext;
        sc_core::sc_curr_simcontext = nullptr;  // the next call that needs one makes it
        sc_core::sc_default_global_context = nullptr;
    }
    return kIsKnown;
}

}  // namespace contraflow
