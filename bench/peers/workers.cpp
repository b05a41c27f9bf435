#include "bench/peers/workers.h"

#include <algorithm>

namespace plugrad::bench {

Workers::Workers(int count) {
  for (int t = 1; t < count; ++t)
    threads_.emplace_back([this, t] {
      unsigned seen = 0;
      while (true) {
        while (epoch_.load(std::memory_order_acquire) == seen) {
        }
        ++seen;
        if (ends_) return;
        (*work_)(t);
        busy_.fetch_sub(1, std::memory_order_release);
      }
    });
}

Workers::~Workers() {
  ends_ = true;
  epoch_.fetch_add(1, std::memory_order_release);
  for (std::thread& thread : threads_) thread.join();
}

void Workers::run(const std::function<void(int)>& work) {
  work_ = &work;
  busy_ = static_cast<int>(threads_.size());
  epoch_.fetch_add(1, std::memory_order_release);
  work(0);
  while (busy_.load(std::memory_order_acquire) > 0) {
  }
}

void Workers::split(size_t size, size_t step,
                    const std::function<void(int, size_t, size_t)>& work) {
  const size_t parts = static_cast<size_t>(count());
  const size_t part = (size / step + parts - 1) / parts * step;
  run([&](int t) {
    const size_t begin = std::min(size, part * static_cast<size_t>(t));
    work(t, begin, std::min(size, begin + part));
  });
}

}  // namespace plugrad::bench
