// SIGINT and SIGTERM as a question: what has run is reported before the process ends.
#pragma once

namespace plugrad::tools {

/// From here on the first of these signals is remembered; a second one ends the process.
void catch_interruption();

bool is_interrupted();

}  // namespace plugrad::tools
