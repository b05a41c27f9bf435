#include "conformance/plugin/span_pool.h"

#include <algorithm>

namespace plugrad::conformance {
namespace {

thread_local bool inside_a_span = false;

}  // namespace

SpanPool& SpanPool::instance() {
  static auto* pool = new SpanPool;
  return *pool;
}

SpanPool::SpanPool() : thread_count_(std::max(1u, std::thread::hardware_concurrency())) {}

void SpanPool::start_threads() {
  while (threads_.size() + 1 < thread_count_) {
    const auto worker = static_cast<uint32_t>(threads_.size() + 1);
    threads_.emplace_back([this, worker] { serve(worker); });
  }
}

void SpanPool::take_spans(uint32_t worker) {
  inside_a_span = true;
  for (uint64_t begin; (begin = job_.next.fetch_add(job_.span)) < job_.count;)
    job_.fn(job_.context, begin, std::min(job_.count, begin + job_.span), worker);
  inside_a_span = false;
}

void SpanPool::serve(uint32_t worker) {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    job_posted_.wait(lock, [&] { return generation_ != seen; });
    seen = generation_;
    if (!open_) continue;
    ++at_work_;
    lock.unlock();
    take_spans(worker);
    lock.lock();
    if (--at_work_ == 0) job_done_.notify_one();
  }
}

void SpanPool::run(uint64_t count, uint64_t min_span, pgr_span_fn fn, void* context) {
  if (count == 0) return;
  const uint64_t least = std::max<uint64_t>(min_span, 1);
  std::unique_lock busy(busy_, std::defer_lock);
  if (inside_a_span || thread_count_ == 1 || count <= least || !busy.try_lock())
    return fn(context, 0, count, 0);
  std::unique_lock lock(mutex_);
  start_threads();
  job_.fn = fn;
  job_.context = context;
  job_.count = count;
  job_.span = std::max(least, count / (uint64_t{thread_count_} * 4));
  job_.next = 0;
  open_ = true;
  ++generation_;
  job_posted_.notify_all();
  lock.unlock();
  take_spans(0);
  lock.lock();
  open_ = false;
  job_done_.wait(lock, [&] { return at_work_ == 0; });
}

}  // namespace plugrad::conformance
