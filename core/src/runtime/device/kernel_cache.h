// Kernels of one device by kernel IR: identical ones are compiled once, for all callers and
// threads.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/hash.h"
#include "runtime/device/device.h"

namespace plugrad::runtime {

class KernelCache {
 public:
  using Make = std::function<std::shared_ptr<Kernel>()>;

  /// The kernel under `key`. The first caller makes it while others wait. A failure leaves no
  /// entry.
  std::shared_ptr<Kernel> get(const Hash128& key, bool keep, const Make& make);
  void clear();

  // For CompileStats.
  std::atomic<std::uint64_t> compiled{0}, from_disk{0}, from_process{0}, rejected{0}, compile_ns{0};

 private:
  struct Entry {
    std::mutex mutex;
    std::weak_ptr<Kernel> kernel;
    std::shared_ptr<Kernel> kept;
  };

  std::mutex mutex_;
  std::unordered_map<Hash128, std::shared_ptr<Entry>, Hash128Hasher> entries_;
};

}  // namespace plugrad::runtime
