// Parses PLUGRAD_LAYERS and wraps devices in layers when they are opened.
//   list  := layer (',' layer)*          the first is nearest to the host
//   layer := name (':' key '=' value)*   validate, redzone, faults, compare, record, skip
// docs/debugging-a-plugin.md describes the layers, docs/scale.md skip.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/checks/layer.h"

namespace plugrad::runtime {

class Device;

/// Opens a second handle of a device, without layers, for a layer that runs kernels itself. Errors:
/// those of Registry::find_device, and of opening.
using OpenBeside = std::function<std::unique_ptr<Device>(const std::string& selection)>;

struct LayerChoice {
  std::string name;
  std::string device;                         // key "device" of any layer; empty: all devices
  std::map<std::string, std::string> values;  // the layer's own keys
  bool is_implied = false;  // by PLUGRAD_VALIDATE: skips its own comparison device
  OpenBeside open_beside;   // the registry's; null: no other device can be used
  std::shared_ptr<std::atomic<uint32_t>> devices = {};  // the number of those that it wraps
};
using LayerList = std::vector<LayerChoice>;

/// Errors: User, with the text, a caret line below the mistake, the nearest name and the valid
/// names.
LayerList parse_layers(std::string_view text, std::string_view source = "PLUGRAD_LAYERS");

/// The layer of PLUGRAD_VALIDATE: compares a sample of launches with REFERENCE. 8 %: the limit of
/// 10 % includes what the layer costs where it checks nothing.
LayerChoice validation_layer();

using LayerStack = std::vector<std::unique_ptr<Layer>>;  // from the plugin outwards

/// Wraps `tables` in the layers of the list that apply to this device and replaces them by the
/// outermost layer's; unchanged if no layer applies.
LayerStack wrap(DeviceTables& tables, const LayerList& list, const std::string& plugin_name,
                const std::string& device_name);

/// The kernel IR from which this thread currently makes a kernel, for layers that check launches:
/// no other source of a kernel's parameters exists when it comes from the disk cache.
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

/// The AST from which this thread currently makes a kernel, as text.
class KernelAstScope {
 public:
  explicit KernelAstScope(const std::function<std::string()>& text);
  ~KernelAstScope();
  KernelAstScope(const KernelAstScope&) = delete;
  KernelAstScope& operator=(const KernelAstScope&) = delete;
  static std::string current();  // empty outside a scope

 private:
  const std::function<std::string()>* outer_;
};

// The layers, one file each.
std::unique_ptr<Layer> make_validate_layer(const DeviceTables& inner, const LayerChoice& choice,
                                           const std::string& device_name);
std::unique_ptr<Layer> make_redzone_layer(const DeviceTables& inner, const LayerChoice& choice,
                                          const std::string& device_name);
/// Errors: User if the device would be compared with itself.
std::unique_ptr<Layer> make_compare_layer(const DeviceTables& inner, const LayerChoice& choice,
                                          const std::string& device_name);
/// Errors: User if the file cannot be written.
std::unique_ptr<Layer> make_record_layer(const DeviceTables& inner, const LayerChoice& choice,
                                         const std::string& device_name);
std::unique_ptr<Layer> make_skip_layer(const DeviceTables& inner, const LayerChoice& choice,
                                       const std::string& device_name);
/// The outermost layer, with PLUGRAD_DEVICE_TIMEOUT.
std::unique_ptr<Layer> make_time_limit_layer(const DeviceTables& inner, double seconds,
                                             const std::string& device_name);
std::unique_ptr<Layer> make_faults_layer(const DeviceTables& inner, const LayerChoice& choice,
                                         const std::string& device_name);

/// Empty, or the error in the value of a key of the faults, compare or record layer.
std::string faults_value_error(std::string_view key, std::string_view value);
std::string compare_value_error(std::string_view key, std::string_view value);
std::string record_value_error(std::string_view key, std::string_view value);

}  // namespace plugrad::runtime
