// SIGINT and SIGTERM as a question: what has run is reported before the process ends.
#pragma once

namespace plugrad::tools {

/// From here on the first of these signals is remembered; a second one ends the process.
void catch_interruption();

bool is_interrupted();

/// What a shell gives of a program that the signal ended: 130 after SIGINT, 143 after SIGTERM.
int interruption_exit_code();

/// From here on a signal ends the process again.
void release_interruption();

}  // namespace plugrad::tools
