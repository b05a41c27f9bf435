// Queries a physical device, and decides whether the plugin can use it.
#pragma once

#include <string>
#include <vector>

#include "plugrad/plugin_api/device.h"
#include "vulkan_api.h"

namespace plugrad::vulkan {

struct Facts {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  std::string name, uuid, driver;
  uint32_t api_version = 0;
  VkDriverId driver_id{};
  VkPhysicalDeviceType type{};
  VkPhysicalDeviceLimits limits{};
  VkPhysicalDeviceFloatControlsProperties floats{};
  VkPhysicalDeviceMemoryProperties memory{};
  uint32_t vendor_id = 0;
  uint32_t subgroup_size = 1;
  // Limit of a work-group whose pipeline requires subgroup_size; 0: pipelines cannot require it, or
  // the device has several sizes.
  uint32_t max_subgroups = 0;
  uint64_t max_allocation_bytes = 0;
  uint32_t queue_family = 0, queue_count = 0;
  uint32_t timestamp_bits = 0;
  bool int16 = false, float16 = false, float64 = false;  // arithmetic and storage
  bool atomic_int64 = false, atomic_float32 = false;     // on buffers and local arrays
  bool addresses = false, timeline = false, int8 = false, int64 = false;  // required
  bool calibrated = false;              // VK_EXT_calibrated_timestamps with CLOCK_MONOTONIC
  std::vector<const char*> extensions;  // extensions to enable
  std::string lacks;                    // reason that the plugin cannot use the device; empty: none
  uint32_t device_memory = 0, host_memory = 0;  // memory types; may be equal
  bool is_software() const { return type == VK_PHYSICAL_DEVICE_TYPE_CPU; }
  // True if every buffer can be mapped and the device accesses it at full speed.
  bool is_unified() const;
  bool is_mappable(uint32_t memory_type) const;
  uint64_t memory_bytes() const;
};

// Of one device.
Facts read_facts(const InstanceApi& api, VkPhysicalDevice handle);

// The capabilities reported to schedule and codegen.
pgr_device_caps make_caps(const Facts& facts);

// Device facts on which a compiled binary depends.
std::string target_text(const Facts& facts);

// Alignment of every buffer, in bytes.
inline constexpr uint32_t kBufferAlign = 256;

}  // namespace plugrad::vulkan
