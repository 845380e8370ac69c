// Entry point. SystemC's main wants to be sc_main; ours only keeps the library's banner off the user's terminal.
#include <systemc>

#include <cstdlib>

#include "cli/program.h"

int sc_main(int argc, char* argv[]) {
    contraflow::cli::prepare_streams();
    return contraflow::cli::finish_streams(contraflow::cli::run_program({argv + 1, argv + argc}));
}

int main(int argc, char* argv[]) {
    setenv("SC_COPYRIGHT_MESSAGE", "DISABLE", 0);
    return sc_core::sc_elab_and_sim(argc, argv);
}
