// Finds plugins, opens those that are selected, owns their devices. One of the project's two
// globals.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/discovery/load_record.h"
#include "runtime/discovery/selection.h"

namespace plugrad::runtime {

/// Where plugins are looked for, in order; a device name that came earlier wins.
struct SearchPlace {
  std::string path;    // a directory, or a library file
  std::string origin;  // for records
  bool is_file = false;
  bool named = false;  // by the user: a directory that is not there leaves a record
};

struct RegistryOptions {
  std::vector<SearchPlace> places;
  std::string selection;                                 // DEV; empty: the default rule
  std::string visible_devices;                           // PLUGRAD_VISIBLE_DEVICES
  std::map<std::string, PluginOptions> plugin_options;   // by device name, for opening its devices
  std::map<std::string, PluginOptions> default_options;  // where those name no such option
  /// Text of NAME in NAME=1, for each plugin's device name; nothing: not set.
  std::function<std::optional<std::string>(const char* name)> environment;
  std::string layers;  // PLUGRAD_LAYERS
  /// How long a library may take when it is opened on trial, before it counts as hanging.
  std::uint32_t trial_limit_ms = 20000;
};

/// The settings' files and paths, the user's data directory, beside this library, the system's
/// directories.
RegistryOptions options_from_settings();

class Registry {
 public:
  explicit Registry(RegistryOptions options);
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  /// The process's registry, made from settings() on first use. After a fork the child's calls
  /// throw.
  static Registry& instance();

  /// What set_default_device chose, else DEV or NAME=1, else the highest priority whose probes pass
  /// and that has a device that is not software; never REFERENCE. Errors: User, with every load
  /// record.
  Device& default_device();
  /// Options for the devices of a plugin that are opened from now on. Errors: from opening them,
  /// User or Device.
  void set_plugin_options(const std::string& device_name, PluginOptions options);
  /// Takes the selection grammar; empty: back to the rule.
  void set_default_device(std::string_view selection);

  /// The first device that the selection allows; opens plugins in its order until one fits. Errors:
  /// User, with the place, the nearest name and why plugins were refused.
  Device& find_device(std::string_view selection, std::string_view source = "device");

  /// Errors: User, with the place, where a plugin has no device of a number that the selection
  /// names. Opens plugins for it, no device.
  void require_numbers(std::string_view selection, std::string_view source = "device");

  /// Devices of plugins that are open.
  std::vector<Device*> devices();
  /// Opens every plugin whose probes pass, then as devices().
  std::vector<Device*> open_all();
  /// One for each candidate, in search order; the search runs on first need.
  std::vector<LoadRecord> records();
  /// Adds a library ahead of all others and gives its device name; it is opened when it is
  /// selected. Errors: User, with its record.
  std::string add_plugin(const std::string& path);

  /// Shuts down every device that is open and every plugin; none can be used any more.
  void shut_down();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plugrad::runtime
