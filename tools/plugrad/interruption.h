// Records SIGINT and SIGTERM, so that completed work is reported before the process ends.
#pragma once

namespace plugrad::tools {

/// From now on, the first of these signals is recorded; a second one ends the process.
void catch_interruption();

bool is_interrupted();

/// Whether a terminal sent it, which sends it to all programs that it runs.
bool is_from_terminal();

/// The shell's exit code for a program ended by the signal: 130 for SIGINT, 143 for SIGTERM.
int interruption_exit_code();

/// From now on, a signal ends the process again.
void release_interruption();

}  // namespace plugrad::tools
