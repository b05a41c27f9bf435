// Finds plugins, opens the selected ones and owns their devices. One of the project's two globals.
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

/// Search places for plugins, in order; the first plugin with a device name wins.
struct SearchPlace {
  std::string path;    // a directory, or a library file
  std::string origin;  // for records
  bool is_file = false;
  bool named = false;  // by the user: a missing directory leaves a record
};

struct RegistryOptions {
  std::vector<SearchPlace> places;
  std::string selection;                                 // DEV; empty: the default rule
  std::string visible_devices;                           // PLUGRAD_VISIBLE_DEVICES
  std::map<std::string, PluginOptions> plugin_options;   // for devices, by device name
  std::map<std::string, PluginOptions> default_options;  // for options not set there
  /// The value of NAME, a plugin's device name, in the environment (NAME=1); nothing if not set.
  std::function<std::optional<std::string>(const char* name)> environment;
  std::string layers;     // PLUGRAD_LAYERS
  bool validate = false;  // PLUGRAD_VALIDATE
  /// Time limit in ms for opening a library in a probe process.
  std::uint32_t trial_limit_ms = 20000;
};

/// Search places: the files and paths in the settings, the user's data directory, the directory of
/// this library, the system's directories.
RegistryOptions options_from_settings();

class Registry {
 public:
  explicit Registry(RegistryOptions options);
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  /// The process's registry, made from settings() on first use. In a forked child, calls throw.
  static Registry& instance();

  /// The device of set_default_device, else of DEV or NAME=1, else that of highest priority whose
  /// probes pass and that has a device other than software; never REFERENCE. Errors: User, with all
  /// load records.
  Device& default_device();
  /// Sets options for devices of a plugin opened from now on. Errors when opening them: User or
  /// Device.
  void set_plugin_options(const std::string& device_name, PluginOptions options);
  /// Accepts the selection grammar; empty: the default rule.
  void set_default_device(std::string_view selection);

  /// The first device that the selection allows; opens plugins in its order until one matches.
  /// Errors: User, with the mistake, the nearest name and the reasons for refused plugins.
  Device& find_device(std::string_view selection, std::string_view source = "device");

  /// Errors: User, with the mistake, if the selection names a device number that a plugin does not
  /// have. Opens the plugins but no device.
  void require_numbers(std::string_view selection, std::string_view source = "device");

  /// Devices of open plugins.
  std::vector<Device*> devices();
  /// Opens every plugin whose probes pass, and returns devices().
  std::vector<Device*> open_all();
  /// A record for each candidate, in search order; discovery runs on first use.
  std::vector<LoadRecord> records();
  /// Adds a library before all others and returns its device name; opens it when it is selected.
  /// Errors: User, with its record.
  std::string add_plugin(const std::string& path);

  /// Shuts down every open device and plugin; none can be used afterwards.
  void shut_down();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plugrad::runtime
