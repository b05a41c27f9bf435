// How much memory the host has, against which announced sizes are held before they are allocated.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace plugrad {

/// All that is built in, used or not; the largest number where the system does not say.
inline std::uint64_t host_memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return UINT64_MAX;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
}

}  // namespace plugrad
