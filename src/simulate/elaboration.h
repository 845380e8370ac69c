// More than one machine, one after the other, in one process.
#pragma once

namespace contraflow {

// SystemC elaborates once: what a machine leaves behind belongs to its simulation context, which goes with this call,
// so that the next machine starts in a new one, at time zero. Only SystemC 2.3 is known to keep all of its state there;
// this says whether it is what the program runs on. REQUIRES: no Simulation exists. The process has to end by _exit,
// since what SystemC does at a normal end takes its first context for granted.
[[nodiscard]] bool forget_elaboration();

}  // namespace contraflow
