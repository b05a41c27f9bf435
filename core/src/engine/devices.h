// Maps device names to the numbers that nodes store.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/registry.h"
#include "sharding/mesh.h"

namespace plugrad::engine {

class DeviceTable {
 public:
  /// Called once for each device when it is opened.
  std::function<void(runtime::Device&)> on_open;

  /// The number of the device that a selection denotes. Does not open the device if the selection
  /// names one plugin and an index listed in its manifest. Errors: User, as Registry::find_device.
  uint32_t number(std::string_view selection);
  uint32_t number(runtime::Device& device);
  /// "CPU", "CUDA:1".
  const std::string& name(uint32_t number) const { return entry(number).name; }
  runtime::Device& open(uint32_t number);
  /// Null if the device is not open.
  runtime::Device* find_open(uint32_t number) const { return entry(number).device; }
  /// The number that the calling thread has set, else the registry's default device.
  uint32_t default_number();
  /// Sets the default of the calling thread, 0 for none; returns the one before.
  static uint32_t set_default_of_thread(uint32_t number);
  /// The number of a mesh, under which its values are known. Equal meshes have one number.
  uint32_t number(sharding::Mesh mesh);
  /// Null if the number is that of a device.
  const sharding::Mesh* mesh(uint32_t number) const { return entry(number).mesh.get(); }
  bool has_meshes() const { return has_meshes_; }
  /// Whether there is a mesh that not all processes are part of.
  bool has_meshes_of_some() const { return has_meshes_of_some_; }
  /// Devices opened so far.
  std::vector<runtime::Device*> opened() const;

 private:
  struct Entry {
    std::string name;
    runtime::Device* device = nullptr;
    std::shared_ptr<const sharding::Mesh> mesh{};
  };
  const Entry& entry(uint32_t number) const;
  uint32_t number_of_name(const std::string& name);
  void set_device(uint32_t number, runtime::Device& device);

  std::vector<Entry> entries_;
  bool has_meshes_ = false, has_meshes_of_some_ = false;
  std::map<std::string, uint32_t, std::less<>> by_selection_;
};

}  // namespace plugrad::engine
