// Which layers stand around devices: read from PLUGRAD_LAYERS, put there when a device is opened.
//   list  := layer (',' layer)*          the first is nearest to the host
//   layer := name (':' key '=' value)*   validate, redzone, faults
// docs/debugging-a-plugin.md describes them.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/checks/layer.h"

namespace plugrad::runtime {

struct LayerChoice {
  std::string name;
  std::string device;                         // key "device", of every layer; empty: all
  std::map<std::string, std::string> values;  // the layer's own keys
};
using LayerList = std::vector<LayerChoice>;

/// Errors: User, with the text, a caret line under the place, the nearest name and what there is.
LayerList parse_layers(std::string_view text, std::string_view source = "PLUGRAD_LAYERS");

using LayerStack = std::vector<std::unique_ptr<Layer>>;  // from the plugin outwards

/// Puts those layers of the list that are for this device around `tables`, which then are those of
/// the outermost. Without one, nothing changes.
LayerStack wrap(DeviceTables& tables, const LayerList& list, const std::string& plugin_name,
                const std::string& device_name);

/// The kernel IR that this thread's host makes a kernel of, for a layer that checks its launches:
/// from disk cache to launch nothing else says which parameters a kernel has.
class KernelIrScope {
 public:
  explicit KernelIrScope(std::span<const std::byte> ir);
  ~KernelIrScope();
  KernelIrScope(const KernelIrScope&) = delete;
  KernelIrScope& operator=(const KernelIrScope&) = delete;
  static std::span<const std::byte> current();

 private:
  std::span<const std::byte> outer_;
};

// The layers, a file each.
std::unique_ptr<Layer> make_validate_layer(const DeviceTables& inner, const LayerChoice& choice,
                                           const std::string& device_name);
std::unique_ptr<Layer> make_redzone_layer(const DeviceTables& inner, const LayerChoice& choice,
                                          const std::string& device_name);
/// Around all others, with PLUGRAD_DEVICE_TIMEOUT.
std::unique_ptr<Layer> make_time_limit_layer(const DeviceTables& inner, double seconds,
                                             const std::string& device_name);
std::unique_ptr<Layer> make_faults_layer(const DeviceTables& inner, const LayerChoice& choice,
                                         const std::string& device_name);

/// Empty, or what is wrong with the value of a faults layer's key.
std::string faults_value_error(std::string_view key, std::string_view value);

}  // namespace plugrad::runtime
