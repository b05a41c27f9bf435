// Reduces a kernel that differs between two devices to a small one that still does.
#pragma once

#include <chrono>
#include <functional>

#include "runtime/checks/compare/launch_data.h"

namespace plugrad::runtime {

struct SmallKernel {
  KernelLines lines;
  LaunchData data;
  uint64_t tried = 0;
  bool is_complete = false;  // no candidate differs any more; false: the time was up
};

/// Whether a candidate still differs. Must return false for kernels that cannot run.
using Differs = std::function<bool(const KernelLines& kernel, const LaunchData& data)>;

SmallKernel shrink_kernel(KernelLines kernel, LaunchData data, const Differs& differs,
                          std::chrono::steady_clock::time_point deadline);

/// The operations left in a small kernel: those that compute what it stores, without the index
/// arithmetic, e.g. "IDIV i32". Structure and plain memory where nothing else is left.
std::string operations_text(const KernelLines& kernel);

/// The conformance suite's tests of these operations, for --filter; empty if it has none.
std::string suite_filter(const KernelLines& kernel);

}  // namespace plugrad::runtime
