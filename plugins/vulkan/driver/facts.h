// What a physical device is and can do, and whether the plugin can use it.
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
  uint64_t max_allocation_bytes = 0;
  uint32_t queue_family = 0, queue_count = 0;
  uint32_t timestamp_bits = 0;
  bool int16 = false, float16 = false, float64 = false;  // values, and memory of them
  bool atomic_int64 = false, atomic_float32 = false;     // in buffers and in local arrays
  bool addresses = false, timeline = false, int8 = false, int64 = false;  // indispensable
  bool calibrated = false;                      // VK_EXT_calibrated_timestamps with CLOCK_MONOTONIC
  std::vector<const char*> extensions;          // to enable
  std::string lacks;                            // why the plugin cannot use it; empty: it can
  uint32_t device_memory = 0, host_memory = 0;  // memory types; the same one where both are one
  bool is_software() const { return type == VK_PHYSICAL_DEVICE_TYPE_CPU; }
  // Every buffer can be mapped, and the device reads it at full speed.
  bool is_unified() const;
  bool is_mappable(uint32_t memory_type) const;
  uint64_t memory_bytes() const;
};

// Of one device.
Facts read_facts(const InstanceApi& api, VkPhysicalDevice handle);

// What schedule and codegen decide by.
pgr_device_caps make_caps(const Facts& facts);

// Device facts that the binary of a text depends on.
std::string target_text(const Facts& facts);

// Every buffer starts at a multiple of it.
inline constexpr uint32_t kBufferAlign = 256;

}  // namespace plugrad::vulkan
