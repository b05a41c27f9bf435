// Runs a program and reads the trace that it records.
#pragma once

#include <string>

#include "command.h"
#include "trace/trace.h"

namespace plugrad::tools {

struct RecordedRun {
  trace::Trace trace;
  int exit_code = kSuccess;  ///< of this command: 0, 1 if the program failed, or of the signal
};

struct RunOptions {
  bool stdout_to_stderr = false;  ///< the program's output leaves stdout to this one's
  std::string keep = {};          ///< file that the trace is copied to; empty: none
};

/// Runs `words` with PLUGRAD_TRACE set. Says on stderr if the program fails. Errors: User, if it
/// cannot be started or records nothing.
RecordedRun run_and_record(const Arguments& words, const RunOptions& options);

}  // namespace plugrad::tools
