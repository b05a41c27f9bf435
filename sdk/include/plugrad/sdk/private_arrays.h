// SPDX-License-Identifier: Apache-2.0
// Private arrays of a kernel that runs on a CPU: they lie on the stack of the thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace plugrad::sdk {

/// What a thread's stack has room for, of all arrays of a rendered kernel.
inline constexpr uint64_t kMostPrivateBytes = uint64_t{2} << 20;

/// `private_bytes` of a CPU with a second cache of so many bytes (0: unknown): half of it. All
/// arrays of a kernel together may have four times that (docs/optimisations.md), which the stack
/// has to hold.
constexpr uint64_t private_bytes_of_cpu(uint64_t cache_bytes) {
  return cache_bytes == 0 ? uint64_t{128} * 1024 : std::min(cache_bytes / 2, kMostPrivateBytes / 4);
}

}  // namespace plugrad::sdk
