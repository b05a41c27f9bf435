// The scheduler's options for some devices, and the key of a plan in the cache.
#pragma once

#include <span>

#include "base/hash.h"
#include "engine/devices.h"
#include "engine/kernels/kernel_cache.h"
#include "schedule/schedule.h"

namespace plugrad::engine {

/// Options valid for every device in `used`: work is split for the one with most threads,
/// parameters are limited to the least maximum, and costs are those of the first.
schedule::Options plan_options(DeviceTable& devices, std::span<const uint32_t> used);

/// How a graph is planned and its kernels are made.
struct PlanRequest {
  uint32_t default_device = 0;
  schedule::Options options;
  KernelOptions kernels;

  /// The key of the plan of a graph with this hash.
  Hash128 key(const Hash128& graph) const;
};

}  // namespace plugrad::engine
