// SIGINT and SIGTERM as a question: what has run is reported before the process ends.
#pragma once

namespace plugrad::tools {

/// From here on the first of these signals is remembered; a second one ends the process.
void catch_interruption();

bool is_interrupted();

/// From here on a signal ends the process again.
void release_interruption();

}  // namespace plugrad::tools
