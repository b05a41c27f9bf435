/// Reads and sets the default device and adds plugins. Device names: "CPU", "CUDA:1", …
#pragma once

#include <string>
#include <string_view>

#include "plugrad/export.h"

namespace plugrad {

struct PLUGRAD_API Device {
  /// The device of new tensors that name no other: the one that DEV names, else the plugin of
  /// highest priority that opens. Errors: User when DEV names no device, or none is found.
  static std::string default_device();
  /// Changes the default for later calls. Errors: User for an unknown device; the message lists the
  /// devices found.
  static void set_default_device(std::string_view name);
};

/// While it lives, the default device of this thread. Scopes nest.
class PLUGRAD_API DeviceScope {
 public:
  /// Errors: User for an unknown device; the message lists the devices found.
  explicit DeviceScope(std::string_view name);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  unsigned outer_;
};

/// Adds the plugin library at `path` in front of all others with its device name, and returns that
/// name. Reads and checks the manifest now and opens the library at the device's first use; a
/// failure then appears in the load record (`plugrad devices --why`, errors of device selection).
/// Errors: User for a path without a directory, a refused plugin, or a device name that has been
/// opened from another library; the message has the reason and a hint.
PLUGRAD_API std::string add_plugin(const std::string& path);

}  // namespace plugrad
