// The program around the subcommands.
#pragma once

#include "cli/commands.h"

namespace contraflow::cli {

extern const char* const kVersion;

// Runs the command line (without the program's name) and returns the exit status: 0, 1 for a failed run, 2 for the
// user's mistakes, whose lines go to stderr, each beginning with "contraflow: ".
int run_program(const Arguments& args);

// Before anything is printed: a closed standard stream must not become the number of a file opened later, and a reader
// of the output that goes away (`contraflow keys | head -1`) is no error.
void prepare_streams();

// Flushes stdout. Returns `status`, or 1 with a line on stderr when the output could not be written though somebody
// wants it.
int finish_streams(int status);

}  // namespace contraflow::cli
