// Runs this program again in a process of its own: what crashes or hangs there is an answer here.
#pragma once

#include <string>
#include <vector>

namespace plugrad::tools {

struct ChildOutcome {
  enum class End { Exited, Signalled, TimedOut };
  End end = End::Exited;
  int code = 0;        ///< exit code, or the signal's number
  std::string output;  ///< what the child wrote to the file descriptor kChildResult
  std::string errors;  ///< the last of what it wrote to stdout and stderr
};

/// File descriptor to which a child writes its result, out of reach of what a plugin prints.
inline constexpr int kChildResult = 3;

/// Runs `plugrad arguments…` for at most `seconds`, then kills it. `environment` holds "NAME=text".
/// Errors: std::system_error where no process can be made.
ChildOutcome run_child(const std::vector<std::string>& arguments,
                       const std::vector<std::string>& environment, double seconds);

}  // namespace plugrad::tools
