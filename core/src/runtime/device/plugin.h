// An opened plugin: entry called, hello exchanged, table copied.
#pragma once

#include <memory>
#include <string>

#include "runtime/checks/layers.h"
#include "runtime/device/device.h"
#include "runtime/device/tables.h"
#include "runtime/discovery/load_record.h"

namespace plugrad::runtime {

/// The largest number of devices of one plugin.
inline constexpr std::uint32_t kMostDevices = 65536;

/// One for each library in the process; never closed.
class Plugin {
 public:
  /// Opens the library of `record`, first in a probe process, and sets the record to Loaded, or to
  /// Refused with a reason. Returns the same Plugin for the same library; null if it is refused.
  static Plugin* open(LoadRecord& record, std::uint32_t trial_limit_ms);

  const pgr_plugin_api& api() const { return api_; }
  const std::string& path() const { return path_; }
  const std::string& device_name() const { return device_name_; }
  const std::string& version() const { return version_; }
  const Manifest& manifest() const { return manifest_; }

  /// Number of devices present. If 0, `reason` is the plugin's explanation. Errors: Device.
  std::uint32_t device_count(std::string& reason) const;
  /// Opens physical device `index` under the name "CPU:number".
  std::unique_ptr<Device> open_device(std::uint32_t index, std::uint32_t number,
                                      const PluginOptions& options,
                                      const LayerList& layers = {}) const;
  /// Tells the plugin once that all devices are closed; none can be opened afterwards.
  void shut_down();
  /// Reads a table by name; false if the plugin does not offer it. Errors: Device.
  template <class Table>
  bool interface(const char* name, std::uint32_t struct_id, Table& out) const;

 private:
  void open_and_close(std::uint32_t index) const;
  void read_facts(const pgr_device_api& calls, pgr_device* device) const;
  static bool survives_trial(LoadRecord& record, std::uint32_t limit_ms);
  bool start(const std::string& path, void* entry, LoadRecord& record);
  bool read_info(LoadRecord& record);

  std::string path_, device_name_, version_;
  Manifest manifest_;
  pgr_plugin_api api_{};
  bool is_shut_down_ = false;
};

template <class Table>
bool Plugin::interface(const char* name, std::uint32_t struct_id, Table& out) const {
  pgr_string text = c_string(name);
  const void* theirs = nullptr;
  CallError error;
  std::string escaped;
  pgr_status status = guarded(error, escaped, [&](pgr_error* e) {
    return api_.query_interface(api_.plugin, &text, PGR_API_MINOR, &theirs, e);
  });
  out = {};
  fill_stubs(out);
  if (status == PGR_STATUS_UNSUPPORTED || status == PGR_STATUS_NOT_FOUND) return false;
  if (status != PGR_STATUS_OK)
    throw_status(device_name_, "query_interface", status,
                 escaped.empty() ? error.message() : escaped);
  if (const char* wrong = copy_table(theirs, struct_id, out))
    throw_status(device_name_, "query_interface", PGR_STATUS_INCOMPATIBLE,
                 std::string(name) + ": " + wrong);
  fill_stubs(out);
  return true;
}

}  // namespace plugrad::runtime
