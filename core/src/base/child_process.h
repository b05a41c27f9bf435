// Starts programs as child processes.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plugrad {

struct ProcessSpec {
  std::string program;  ///< a path, or a name that PATH finds
  std::vector<std::string> arguments = {};
  std::vector<std::string> environment = {};  ///< all of it, "NAME=text"; empty: this process's
  /// Descriptors here and there; -1 here is /dev/null. The child has these, its remaining standard
  /// streams, and no others.
  std::vector<std::pair<int, int>> descriptors = {};
  bool leads_group = false;  ///< terminal signals do not reach it, and kill_group() ends it
};

/// A child process, killed and reaped by the destructor.
class ChildProcess {
 public:
  /// Errors: std::system_error if the program cannot be started.
  explicit ChildProcess(const ProcessSpec& spec);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// Of a leader: ends its processes, also after its own end.
  void kill_group() const;
  /// The status of waitpid(2) once it has ended.
  std::optional<int> status();
  /// Waits until it has ended.
  int wait();

 private:
  pid_t pid_ = -1;
  bool leads_group_;
  std::optional<int> status_;
};

/// This process's environment with these "NAME=text" instead of its own of the same names.
std::vector<std::string> environment_with(const std::vector<std::string>& added);

/// "signal 11 (Segmentation fault)", or "exit code 1".
std::string describe_end(int status);

/// Runs a program to its end and returns what it wrote to stdout. Errors: std::system_error if it
/// cannot be started, std::runtime_error if it fails.
std::string output_of(ProcessSpec spec);

/// The path of a program beside this one.
std::string program_beside(std::string_view name);

}  // namespace plugrad
