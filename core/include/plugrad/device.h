/// The default device, read and set in code; plugins that a program brings. Names: "CPU", "CUDA:1",
/// …
#pragma once

#include <string>
#include <string_view>

#include "plugrad/export.h"

namespace plugrad {

struct PLUGRAD_API Device {
  /// Where new tensors live unless they are told otherwise: the setting DEV, or the plugin of
  /// highest priority that opens. Errors: User when DEV names no device, or none is found.
  static std::string default_device();
  /// From now on. Errors: User for an unknown device; the message lists those found.
  static void set_default_device(std::string_view name);
};

/// Adds the plugin library at `path` ahead of all others of its device name, and gives that name.
/// Its manifest is read and checked now; the library is opened when the device is first used, and
/// what fails then is in its load record (`plugrad devices --why`, every failed selection).
/// Errors: User for a path without a directory, a refused plugin, or one whose device name has
/// been opened from another library; the message has the reason and a hint.
PLUGRAD_API std::string add_plugin(const std::string& path);

}  // namespace plugrad
