// The threads of the suite's host.parallel_for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "plugrad/plugin_api/plugin.h"

namespace plugrad::conformance {

class SpanPool {
 public:
  // The process's instance, never destroyed: plugins may still use it at exit.
  static SpanPool& instance();

  uint32_t thread_count() const { return thread_count_; }
  // Nested and concurrent calls run on the calling thread.
  void run(uint64_t count, uint64_t min_span, pgr_span_fn fn, void* context);

 private:
  struct Job {
    pgr_span_fn fn = nullptr;
    void* context = nullptr;
    uint64_t count = 0, span = 0;
    std::atomic<uint64_t> next{0};
  };

  SpanPool();
  void start_threads();
  void serve(uint32_t worker);
  void take_spans(uint32_t worker);

  const uint32_t thread_count_;
  std::mutex busy_;  // held during a job
  std::mutex mutex_;
  std::condition_variable job_posted_, job_done_;
  uint64_t generation_ = 0;  // number of the current job
  bool open_ = false;        // threads may still join; the job does not wait for late ones
  uint32_t at_work_ = 0;     // threads that joined and have not finished
  Job job_;
  std::vector<std::thread> threads_;
};

}  // namespace plugrad::conformance
