/// The default device, read and set in code. Names: "CPU", "CUDA:1", …
#pragma once

#include <string>
#include <string_view>

#include "plugrad/export.h"

namespace plugrad {

struct PLUGRAD_API Device {
  /// Where new tensors live unless they are told otherwise: the setting DEV, or the plugin of
  /// highest priority. Errors: User when DEV names no device, or none is found.
  static std::string default_device();
  /// From now on. Errors: User for an unknown device; the message lists those found.
  static void set_default_device(std::string_view name);
};

}  // namespace plugrad
