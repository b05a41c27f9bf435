// SPDX-License-Identifier: Apache-2.0
// Limits of private arrays of CPU kernels, which are allocated on the thread's stack.
#pragma once

#include <algorithm>
#include <cstdint>

namespace plugrad::sdk {

/// Stack space for all private arrays of a rendered kernel, in bytes.
inline constexpr uint64_t kMostPrivateBytes = uint64_t{2} << 20;

/// `private_bytes` of a CPU: half of the level 2 cache, whose size is `cache_bytes` (0: unknown).
/// All arrays of a kernel together may use four times that (docs/optimisations.md), which must fit
/// on the stack.
constexpr uint64_t private_bytes_of_cpu(uint64_t cache_bytes) {
  return cache_bytes == 0 ? uint64_t{128} * 1024 : std::min(cache_bytes / 2, kMostPrivateBytes / 4);
}

}  // namespace plugrad::sdk
