// Formats sizes for messages.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace plugrad::runtime {

/// "512 bytes", "1.5 MiB".
inline std::string format_size(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  double value = static_cast<double>(bytes) / 1024;
  int unit = 0;
  for (; value >= 1024 && unit < 3; ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace plugrad::runtime
