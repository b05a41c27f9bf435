// A peer in a process of its own, which takes turns with us: it is stopped while others run, so
// that its waiting threads cost them nothing.
//
// It says {"found": bool, "isa": what it runs, "level": of x86-64} when it starts and answers each
// line on stdin with a line on stdout:
//   {"do": "setup", "kind", "shapes", "threads", "input", "output", …}   ->   {"variants": [names]}
//       reads the f32 inputs from one file; writes what each variant computes to "OUTPUT.number";
//       with "processor_time", turns give that time of all threads
//   {"do": "turn", "variant", "seconds"}   ->   {"times": [seconds of each call after the first]}
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/file.h"
#include "bench/isa.h"

namespace plugrad::bench {

class PeerProcess {
 public:
  /// Starts it with these words and "NAME=text" added to the environment. Errors:
  /// std::system_error.
  PeerProcess(std::vector<std::string> words, const std::vector<std::string>& environment);
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  /// It is there and its library or module was found.
  bool found() const { return found_; }
  /// The instruction set that it reported. One that uses instructions of a higher level than the
  /// chosen one, or does not tell, is measured for information only.
  const RunningIsa& isa() const { return isa_; }
  bool keeps_to(const Isa& chosen) const { return isa_.level <= chosen.level; }
  /// Nothing when it has died or does not answer in time.
  std::optional<nlohmann::json> ask(const nlohmann::json& request);

 private:
  std::optional<nlohmann::json> read_answer();
  void stop();
  void end();

  std::optional<ChildProcess> process_;
  FileDescriptor in_, out_;  // its stdin and stdout
  std::string read_;         // behind the last whole line
  bool found_ = false;
  RunningIsa isa_;
};

}  // namespace plugrad::bench
