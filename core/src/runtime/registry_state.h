// The registry's state: the plugins found, in order of preference, and the chosen devices. Requires
// `mutex`.
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/discovery/plugin_entry.h"
#include "runtime/registry.h"

namespace plugrad::runtime {

struct Registry::State {
  explicit State(RegistryOptions o) : options(std::move(o)) {}

  RegistryOptions options;
  std::recursive_mutex mutex;
  bool searched = false;
  bool ended = false;  // by shut_down
  std::vector<std::unique_ptr<PluginEntry>> entries;
  std::optional<Selection> visible;
  LayerList layers;
  std::string chosen;              // by set_default_device
  std::set<std::string> reported;  // emulated devices that report_emulated named
  Device* fallback = nullptr;      // result of the default rule

  // Entries: registry_state.cpp.
  void search();
  PluginEntry& add(LoadRecord record);
  std::vector<LoadRecord> records() const;
  PluginOptions options_of(const LoadRecord& record) const;
  /// The entry that is or would be opened for a device name.
  PluginEntry* available(const std::string& name);
  /// The entry of a library that is open or can be opened.
  PluginEntry* usable_from(const std::string& path);
  /// Moves an entry to the front; if it can be opened, it shadows others of its device name.
  void prefer(PluginEntry& preferred);
  /// Device names of usable plugins, in the order of the default rule.
  std::vector<std::string> names_by_priority();
  /// Opens the plugin of that device name; null without a visible device. If a plugin is refused,
  /// tries the next of the same name.
  PluginEntry* open(const std::string& name);

  // Choices: discovery/default_device.cpp.
  Device& find(const Selection& selection);
  /// Highest priority first; skips emulated devices and priority 0.
  Device& by_rule(const Selection& selection);
  /// Refuses a plugin if none of its devices opens and another of its device name waits behind it;
  /// returns whether that one is to be tried.
  bool gives_way(PluginEntry& entry);
  /// The device name set by CUDA=1 and the like: at most one.
  std::string named_by_environment();
  void require_known(const Selection& selection);
  /// Errors: User if a plugin has no device of a requested number. Opens no device.
  void require_numbers(const Selection& selection);
  /// Opens a second handle of the device that the selection allows, without layers; it does not
  /// count as a device of the registry.
  std::unique_ptr<Device> open_beside(const std::string& selection);

 private:
  LoadRecord* shadowed(const std::string& name);
  void lift_shadow(const std::string& name);
  bool open_or_note(PluginEntry& entry, std::uint32_t number, std::exception_ptr& failure);
  bool is_excluded(const Selection& selection, const Device& device);
  Device* match(const std::string& name, const DeviceChoice& choice, const Selection& selection,
                bool emulated_too, std::exception_ptr& failure);
  Device* match_any(const DeviceChoice& choice, const Selection& selection,
                    std::exception_ptr& failure);
  void require_known(const Selection& selection, const DeviceChoice& choice);
  /// Removes the records that it describes from `unsaid`.
  std::string why_nothing(const DeviceChoice& choice, std::vector<LoadRecord>& unsaid);
  void report_emulated(const Selection& selection, const DeviceChoice& choice, const Device& found);
};

}  // namespace plugrad::runtime
