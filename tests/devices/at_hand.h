// The devices of this machine, in the order of `plugrad devices`.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/runtime.h"

namespace plugrad {

/// Plugins for hardware that a machine may lack; tools/setup --all installs drivers for the others.
inline constexpr const char* kNeedHardware[] = {"CUDA"};

inline bool needs_hardware(const std::string& plugin) {
  return std::ranges::find(kNeedHardware, plugin) != std::end(kNeedHardware);
}

/// "CPU:0", "REFERENCE:0", …
inline std::vector<std::string> devices_at_hand() {
  std::vector<std::string> names;
  for (const runtime::Device* device : runtime::Registry::instance().open_all())
    names.push_back(device->name());
  return names;
}

/// A device's name as a part of a test's name.
inline std::string test_name(std::string device) {
  std::ranges::replace(device, ':', '_');
  return device;
}

}  // namespace plugrad
