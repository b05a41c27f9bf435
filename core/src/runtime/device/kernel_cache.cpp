#include "runtime/device/kernel_cache.h"

#include "base/clock.h"
#include "base/trace/trace.h"

namespace plugrad::runtime {

std::shared_ptr<Kernel> KernelCache::get(const Hash128& key, bool keep, const Make& make) {
  const std::uint64_t start_ns = tracing() ? monotonic_ns() : 0;
  std::shared_ptr<Entry> entry;
  {
    std::lock_guard lock(mutex_);
    std::shared_ptr<Entry>& slot = entries_[key];
    if (!slot) slot = std::make_shared<Entry>();
    entry = slot;
  }
  std::lock_guard lock(entry->mutex);
  std::shared_ptr<Kernel> kernel = entry->kernel.lock();
  if (kernel) {
    from_process.fetch_add(1);
    if (tracing()) trace::span(trace::Category::Compile, kernel->name(), start_ns, 2);
  } else {
    kernel = make();
    entry->kernel = kernel;
  }
  if (keep) entry->kept = kernel;
  return kernel;
}

void KernelCache::clear() {
  std::lock_guard lock(mutex_);
  entries_.clear();
}

}  // namespace plugrad::runtime
