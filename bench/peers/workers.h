// Threads for the limit kernels and the C peer. Idle threads spin, as the peers' OpenMP threads do;
// between turns the whole process is stopped.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace plugrad::bench {

class Workers {
 public:
  explicit Workers(int count);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int count() const { return static_cast<int>(threads_.size()) + 1; }
  /// Calls work(0) … work(count - 1), one per thread, and waits for all.
  void run(const std::function<void(int)>& work);
  /// The same for equal parts of [0, size), each a multiple of `step`.
  void split(size_t size, size_t step, const std::function<void(int, size_t, size_t)>& work);

 private:
  std::atomic<unsigned> epoch_ = 0;
  std::atomic<int> busy_ = 0;
  std::atomic<bool> ends_ = false;
  const std::function<void(int)>* work_ = nullptr;
  std::vector<std::thread> threads_;
};

}  // namespace plugrad::bench
