// The driver's end of a worker process: starts it, asks it, sees it end.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "conformance/worker/channel.h"

namespace plugrad::conformance {

// What a worker opens.
struct WorkerTarget {
  std::string program;  // plugrad-conformance-worker
  std::string plugin_path;
  uint32_t device_index = 0;
  std::map<std::string, std::string> device_options, plugin_options;
  std::function<bool()> interrupted = {};  // true ends whatever the worker does
};

// How a worker came to its end.
struct Ending {
  bool timed_out = false, interrupted = false;
  int signal = 0;                // 0: it ended by itself
  int exit_code = 0;             // of its own ending
  std::string stack;             // where it crashed or hung
  std::string printed;           // on stdout and stderr, while opening and in the last test
  std::string describe() const;  // "crashed with SIGSEGV"
};

class Worker {
 public:
  // Throws std::runtime_error where the program cannot be started.
  explicit Worker(WorkerTarget target);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The answer; nothing where the worker ended, or was ended because it took longer: `ending` says.
  std::optional<Message> ask(Request kind, std::string_view text, std::span<const std::byte> bytes,
                             std::chrono::nanoseconds limit);
  // Opens the plugin. Empty, or why it cannot be opened.
  std::string open(std::chrono::nanoseconds limit);

  // A request that was laid out in the channel; false as `ask` gives nothing.
  bool exchange(Request kind, std::chrono::nanoseconds limit);

  Channel& channel() { return channel_; }
  bool alive() const { return process_ > 0; }
  const Ending& ending() const { return ending_; }
  // What the worker printed while the plugin was opened and in the last test.
  std::string printed() const;

 private:
  void start();
  void end_with_stack();
  bool has_ended();
  void bury(int status);

  WorkerTarget target_;
  Channel channel_;
  int printed_file_ = -1, crash_pipe_ = -1;
  pid_t process_ = -1;
  Ending ending_;
};

}  // namespace plugrad::conformance
