// A plugin found by discovery and, once opened, its visible devices.
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
  std::vector<std::unique_ptr<Device>> devices;  // by visible number; null until opened

  std::uint32_t trial_limit_ms = 0;  // time limit for opening the library

  /// Opens the library and counts its devices; all are visible without a `visible` selection.
  /// Returns whether there is one; else the record has the reason. Errors: User if `visible` names
  /// a number that the plugin does not have.
  bool start(const std::optional<Selection>& visible);
  /// Opens the device on first use. Errors: those of opening, also kept in the record; User in a
  /// process forked after it was opened.
  Device& device(std::uint32_t number);
  /// A second handle of a visible device, without layers.
  std::unique_ptr<Device> open_beside(std::uint32_t number) const;
  void shut_down_devices();
  /// After shut_down_devices() of every entry: layers have devices of other plugins.
  void shut_down_plugin();

 private:
  void count_devices(const std::optional<Selection>& visible);
  void open(std::uint32_t number);
  void check_identity(std::uint32_t number);
  void choose_visible(const std::optional<Selection>& visible, std::uint32_t count);
  std::vector<std::uint32_t> filtered(const Selection& visible, std::uint32_t count) const;
  bool physical_matches(const DeviceChoice& choice, std::uint32_t index) const;

  Plugin* plugin_ = nullptr;
  std::vector<std::uint32_t> physical_;             // by visible device: the plugin's index
  std::map<std::uint32_t, std::string> id_of_;      // of opened devices, by the plugin's index
  std::map<std::string, std::uint32_t> number_of_;  // visible number by id
};

/// Whether the device has the name and identity of the choice.
bool facts_match(const Device& device, const DeviceChoice& choice);

}  // namespace plugrad::runtime
