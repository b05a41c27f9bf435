// A plugin that the search found and, once it is opened, its visible devices.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/device/plugin.h"
#include "runtime/discovery/load_record.h"
#include "runtime/discovery/selection.h"

namespace plugrad::runtime {

struct PluginEntry {
  LoadRecord record;
  PluginOptions options;                         // for each of its devices
  LayerList layers;                              // around each of them
  std::vector<std::unique_ptr<Device>> devices;  // by visible number; null until it is opened

  std::uint32_t trial_limit_ms = 0;  // for opening the library

  /// Opens the library and counts its devices; without a `visible` selection all of them show.
  /// Whether there is one now; the record says why not. Errors: User, where `visible` names a
  /// number that the plugin has not.
  bool start(const std::optional<Selection>& visible);
  /// Opens it on first use. Errors: as opening it, which the record keeps; User in a process that
  /// was forked after it was opened.
  Device& device(std::uint32_t number);
  /// Shuts its devices down, then the plugin.
  void shut_down();

 private:
  void count_devices(const std::optional<Selection>& visible);
  void open(std::uint32_t number);
  void check_identity(std::uint32_t number);
  void choose_visible(const std::optional<Selection>& visible, std::uint32_t count);
  std::vector<std::uint32_t> filtered(const Selection& visible, std::uint32_t count) const;
  bool physical_matches(const DeviceChoice& choice, std::uint32_t index) const;

  Plugin* plugin_ = nullptr;
  std::vector<std::uint32_t> physical_;             // the plugin's index of each visible device
  std::map<std::uint32_t, std::string> id_of_;      // by the plugin's index, of those opened so far
  std::map<std::string, std::uint32_t> number_of_;  // visible number by id
};

/// Whether the device has the name and identity that the choice asks for.
bool facts_match(const Device& device, const DeviceChoice& choice);

}  // namespace plugrad::runtime
