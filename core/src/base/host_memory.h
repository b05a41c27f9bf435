// The size of host memory, an upper bound for announced sizes before they are allocated.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace plugrad {

/// Physical memory, used or not; UINT64_MAX if the system does not report it.
inline std::uint64_t host_memory_bytes() {
  static const std::uint64_t bytes = [] {  // each read of a tensor asks; the system takes 1 us
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || page_bytes <= 0) return std::uint64_t{UINT64_MAX};
    return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
  }();
  return bytes;
}

}  // namespace plugrad
