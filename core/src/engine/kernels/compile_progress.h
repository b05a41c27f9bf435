// Shows progress of compilation on stderr: "compiling 34 of 120 kernels for OPENCL:0".
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace plugrad::engine {

/// Shows the number of finished kernels during its lifetime. Writes nothing for the first `after`;
/// then redraws a line on a terminal and clears it at the end, or else writes a line every `every`.
/// Silent with a negative DEBUG.
class CompileProgress {
 public:
  struct Pace {
    std::chrono::milliseconds after{2000}, redraw{250}, every{10'000};
  };
  CompileProgress(uint64_t total, std::string devices, Pace pace);
  CompileProgress(uint64_t total, std::string devices)
      : CompileProgress(total, std::move(devices), Pace{}) {}
  ~CompileProgress();
  CompileProgress(const CompileProgress&) = delete;
  CompileProgress& operator=(const CompileProgress&) = delete;

  /// One more kernel is ready. May be called from any thread.
  void count();

 private:
  void show();  // requires the mutex
  void watch();

  const uint64_t total_;
  const std::string devices_;
  const Pace pace_;
  const bool is_terminal_;
  std::mutex mutex_;
  std::condition_variable ended_;
  uint64_t done_ = 0, shown_ = UINT64_MAX;
  bool is_over_ = false, is_drawn_ = false;
  std::thread watcher_;
};

}  // namespace plugrad::engine
