// What the registry holds: the plugins that were found, in order of preference, and which devices
// were chosen. Callers hold `mutex`.
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <optional>
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
  std::string chosen;          // by set_default_device
  Device* fallback = nullptr;  // what the default rule gave

  // Entries: registry_state.cpp.
  void search();
  PluginEntry& add(LoadRecord record);
  std::vector<LoadRecord> records() const;
  PluginOptions options_of(const LoadRecord& record) const;
  /// The entry that would be, or has been, opened for a device name.
  PluginEntry* available(const std::string& name);
  /// The entry of a library that can be, or has been, opened.
  PluginEntry* usable_from(const std::string& path);
  /// Puts an entry first; one that could be opened shadows others of its device name.
  void prefer(PluginEntry& preferred);
  /// Device names of usable plugins, in the order in which an unnamed choice tries them.
  std::vector<std::string> names_by_priority();
  /// The opened plugin of that device name with at least one visible device; null when there is
  /// none. A plugin that is refused on the way gives its place to the next of the same name.
  PluginEntry* open(const std::string& name);

  // Choices: choosing.cpp.
  Device& find(const Selection& selection);
  /// Highest priority first; never software, never priority 0.
  Device& by_rule(const Selection& selection);
  /// CUDA=1 and the like: one at most.
  std::string named_by_environment();
  void require_known(const Selection& selection);
  /// Errors: User where the plugin of a choice has no device of its number. Opens no device.
  void require_numbers(const Selection& selection);

 private:
  void lift_shadow(const std::string& name);
  bool open_or_note(PluginEntry& entry, std::uint32_t number, std::exception_ptr& failure);
  bool is_excluded(const Selection& selection, const Device& device);
  Device* match(const std::string& name, const DeviceChoice& choice, const Selection& selection,
                std::exception_ptr& failure);
  Device* match_any(const DeviceChoice& choice, const Selection& selection,
                    std::exception_ptr& failure);
  void require_known(const Selection& selection, const DeviceChoice& choice);
  std::string why_nothing(const DeviceChoice& choice);
};

}  // namespace plugrad::runtime
