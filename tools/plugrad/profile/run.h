// Runs a program and reads the trace that it records.
#pragma once

#include <optional>
#include <string>

#include "command.h"
#include "trace/trace.h"

namespace plugrad::tools {

struct RecordedRun {
  std::optional<trace::Trace> trace;  ///< none of a program that failed before its first tensor
  int exit_code = kSuccess;  ///< of this command: 0, 1 if the program failed, or of the signal
};

struct RunOptions {
  bool stdout_to_stderr = false;  ///< the program's output leaves stdout to this one's
  std::string stdout_file = {};   ///< file for the program's output; empty: none
  std::string keep = {};          ///< file that the trace is copied to; empty: none
};

/// Runs `words` with PLUGRAD_TRACE set. Says on stderr if the program fails. Errors: User, if it
/// cannot be started, or ends
/// well without a trace.
RecordedRun run_and_record(const Arguments& words, const RunOptions& options);

}  // namespace plugrad::tools
