// Kernels of a plugin in a process of their own: launches that may crash or hang cost no more than
// an exception.
#pragma once

#include <array>
#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "conformance/worker/launches.h"
#include "conformance/worker/worker.h"

namespace plugrad::conformance {

struct IsolatedLaunch {
  uint64_t kernel = 0;
  std::vector<std::span<std::byte>> buffers;  // each from `allocate`
  std::vector<uint64_t> scalars;
  std::array<uint64_t, 3> group_count{1, 1, 1};
  std::array<uint32_t, 3> local_size{1, 1, 1};
};

// All functions throw std::runtime_error with what the plugin said; after a crash or a hang, with
// the signal and the stack, and then this object is of no more use.
class IsolatedKernels {
 public:
  explicit IsolatedKernels(WorkerTarget target, std::chrono::nanoseconds limit);

  // Memory that both processes see; it lives as long as this.
  std::span<std::byte> allocate(uint64_t size_bytes);
  uint64_t load(std::span<const std::byte> kernel_ir);
  // Time of the kernel in ns. A message costs less than 30 microseconds where the one before was
  // answered less than 100 microseconds ago; later ones wake the worker.
  uint64_t launch(const IsolatedLaunch& launch);

 private:
  [[noreturn]] void fail(const std::string& what) const;

  Worker worker_;
  std::chrono::nanoseconds limit_;
  uint64_t used_bytes_ = 0;
};

}  // namespace plugrad::conformance
