// A plugin that the search found and, once it is opened, its visible devices.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/device.h"
#include "runtime/load_record.h"
#include "runtime/plugin.h"
#include "runtime/selection.h"

namespace plugrad::runtime {

struct PluginEntry {
  LoadRecord record;
  PluginOptions options;                         // for each of its devices
  LayerList layers;                              // around each of them
  std::vector<std::unique_ptr<Device>> devices;  // by visible number; null until it is opened

  /// Opens the library and counts its devices; without a `visible` selection all of them show.
  /// Whether there is one now; the record says why not.
  bool start(const std::optional<Selection>& visible);
  /// Opens it on first use.
  Device& device(std::uint32_t number);

 private:
  void choose_visible(const std::optional<Selection>& visible, std::uint32_t count);
  std::vector<std::uint32_t> filtered(const Selection& visible, std::uint32_t count) const;
  bool physical_matches(const DeviceChoice& choice, std::uint32_t index) const;

  Plugin* plugin_ = nullptr;
  std::vector<std::uint32_t> physical_;  // the plugin's index of each visible device
};

/// Whether the device has the name and identity that the choice asks for.
bool facts_match(const Device& device, const DeviceChoice& choice);

}  // namespace plugrad::runtime
