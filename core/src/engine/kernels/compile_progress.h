// A line on stderr for who waits for kernels: "compiling 34 of 120 kernels for OPENCL:0".
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace plugrad::engine {

/// Shows from its start to its end how many kernels are made. Nothing is written within the first
/// `after`; then a terminal's line is redrawn, and cleared at the end, and anything else than a
/// terminal gets a line every `every`. Silent with a negative DEBUG.
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

  /// One kernel more is ready. Any thread.
  void count();

 private:
  void show();  // under the mutex
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
