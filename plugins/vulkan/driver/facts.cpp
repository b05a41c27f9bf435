#include "facts.h"

#include <algorithm>
#include <cstring>

#include "plugrad/sdk/guard.h"

namespace plugrad::vulkan {
namespace {

constexpr VkMemoryPropertyFlags kMappable =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

template <typename Struct>
Struct chained(VkStructureType type, void*& chain) {
  Struct made{};
  made.sType = type;
  made.pNext = chain;
  return made;
}

std::string hex(const uint8_t* bytes, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    out += "0123456789abcdef"[bytes[i] >> 4];
    out += "0123456789abcdef"[bytes[i] & 15];
  }
  return out;
}

std::vector<VkExtensionProperties> extensions_of(const InstanceApi& api, VkPhysicalDevice handle) {
  uint32_t count = 0;
  api.vkEnumerateDeviceExtensionProperties(handle, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> found(count);
  api.vkEnumerateDeviceExtensionProperties(handle, nullptr, &count, found.data());
  found.resize(count);
  return found;
}

bool has(const std::vector<VkExtensionProperties>& found, const char* name) {
  return std::any_of(found.begin(), found.end(),
                     [&](const auto& one) { return std::strcmp(one.extensionName, name) == 0; });
}

// Extensions that became part of 1.2 or 1.3, and those that are in no version.
void choose_extensions(const std::vector<VkExtensionProperties>& found, Facts& facts) {
  const auto enable = [&](const char* name) {
    const bool is_there = has(found, name);
    if (is_there) facts.extensions.push_back(name);
    return is_there;
  };
  if (facts.api_version < VK_API_VERSION_1_2)
    for (const char* name :
         {VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME,
          VK_KHR_8BIT_STORAGE_EXTENSION_NAME, VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME,
          VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME, VK_KHR_SHADER_ATOMIC_INT64_EXTENSION_NAME})
      enable(name);
  facts.calibrated = enable(VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME);
  facts.atomic_float32 = enable(VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME);
  facts.max_subgroups = facts.api_version >= VK_API_VERSION_1_3 ||
                        enable(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
}

void read_properties(const InstanceApi& api, Facts& facts) {
  void* chain = nullptr;
  auto ids =
      chained<VkPhysicalDeviceIDProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES, chain);
  chain = &ids;
  auto subgroup = chained<VkPhysicalDeviceSubgroupProperties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, chain);
  chain = &subgroup;
  auto sizes = chained<VkPhysicalDeviceSubgroupSizeControlProperties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES, chain);
  if (facts.max_subgroups > 0) chain = &sizes;
  auto maintenance = chained<VkPhysicalDeviceMaintenance3Properties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, chain);
  chain = &maintenance;
  auto driver = chained<VkPhysicalDeviceDriverProperties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES, chain);
  chain = &driver;
  facts.floats = chained<VkPhysicalDeviceFloatControlsProperties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES, chain);
  chain = &facts.floats;
  auto all =
      chained<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, chain);
  api.vkGetPhysicalDeviceProperties2(facts.handle, &all);
  facts.floats.pNext = nullptr;
  facts.name = all.properties.deviceName;
  facts.uuid = hex(ids.deviceUUID, VK_UUID_SIZE);
  facts.driver_id = driver.driverID;
  facts.driver = std::string(driver.driverName) + " " + driver.driverInfo + " (" +
                 std::to_string(all.properties.driverVersion) + ")";
  facts.type = all.properties.deviceType;
  facts.vendor_id = all.properties.vendorID;
  facts.limits = all.properties.limits;
  facts.subgroup_size = std::max(1u, subgroup.subgroupSize);
  const bool has_one_size = sizes.minSubgroupSize == sizes.maxSubgroupSize &&
                            (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT);
  facts.max_subgroups = has_one_size ? sizes.maxComputeWorkgroupSubgroups : 0;
  facts.max_allocation_bytes = maintenance.maxMemoryAllocationSize;
}

void read_features(const InstanceApi& api, Facts& facts) {
  void* chain = nullptr;
  auto storage8 = chained<VkPhysicalDevice8BitStorageFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES, chain);
  chain = &storage8;
  auto storage16 = chained<VkPhysicalDevice16BitStorageFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES, chain);
  chain = &storage16;
  auto small = chained<VkPhysicalDeviceShaderFloat16Int8Features>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, chain);
  chain = &small;
  auto addresses = chained<VkPhysicalDeviceBufferDeviceAddressFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES, chain);
  chain = &addresses;
  auto timeline = chained<VkPhysicalDeviceTimelineSemaphoreFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, chain);
  chain = &timeline;
  auto int64 = chained<VkPhysicalDeviceShaderAtomicInt64Features>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_INT64_FEATURES, chain);
  chain = &int64;
  auto floats = chained<VkPhysicalDeviceShaderAtomicFloatFeaturesEXT>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT, chain);
  if (facts.atomic_float32) chain = &floats;
  auto sizes = chained<VkPhysicalDeviceSubgroupSizeControlFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES, chain);
  if (facts.max_subgroups > 0) chain = &sizes;
  auto all =
      chained<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, chain);
  api.vkGetPhysicalDeviceFeatures2(facts.handle, &all);
  if (!sizes.subgroupSizeControl) facts.max_subgroups = 0;
  facts.int8 = storage8.storageBuffer8BitAccess && small.shaderInt8;
  facts.int64 = all.features.shaderInt64;
  facts.int16 = storage16.storageBuffer16BitAccess && all.features.shaderInt16;
  facts.float16 = facts.int16 && small.shaderFloat16;
  facts.float64 = all.features.shaderFloat64;
  facts.addresses = addresses.bufferDeviceAddress;
  facts.timeline = timeline.timelineSemaphore;
  facts.atomic_int64 = int64.shaderBufferInt64Atomics && int64.shaderSharedInt64Atomics;
  facts.atomic_float32 = floats.shaderBufferFloat32AtomicAdd && floats.shaderSharedFloat32AtomicAdd;
}

// Prefers a compute-only family, which leaves graphics queues free.
void choose_queues(const InstanceApi& api, Facts& facts) {
  uint32_t count = 0;
  api.vkGetPhysicalDeviceQueueFamilyProperties(facts.handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  api.vkGetPhysicalDeviceQueueFamilyProperties(facts.handle, &count, families.data());
  bool is_alone = false;
  for (uint32_t i = 0; i < count; ++i) {
    if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) continue;
    const bool is_better = !(families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT);
    if (facts.queue_count > 0 && (is_alone || !is_better)) continue;
    is_alone = is_better;
    facts.queue_family = i;
    facts.queue_count = families[i].queueCount;
    facts.timestamp_bits = families[i].timestampValidBits;
  }
}

// The type for buffers: device-local, and mappable if that is the largest heap; and the type for
// host access, cached if possible.
void choose_memory(Facts& facts) {
  uint64_t best_device = 0, best_host = 0;
  for (uint32_t i = 0; i < facts.memory.memoryTypeCount; ++i) {
    const VkMemoryType& type = facts.memory.memoryTypes[i];
    const uint64_t heap = facts.memory.memoryHeaps[type.heapIndex].size;
    const bool is_local = type.propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    const bool is_mappable = (type.propertyFlags & kMappable) == kMappable;
    const bool is_cached = type.propertyFlags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    if (type.propertyFlags &
        (VK_MEMORY_PROPERTY_PROTECTED_BIT | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT))
      continue;
    const uint64_t device_score = heap / 4096 * 8 + is_mappable * 2 + is_cached;
    if (is_local && device_score > best_device) {
      best_device = device_score;
      facts.device_memory = i;
    }
    const uint64_t host_score = 1 + is_cached * 2 + (is_local && facts.is_software());
    if (is_mappable && host_score > best_host) {
      best_host = host_score;
      facts.host_memory = i;
    }
  }
  if (best_device == 0) facts.device_memory = facts.host_memory;
  if (facts.is_mappable(facts.device_memory) && facts.type != VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU)
    facts.host_memory = facts.device_memory;
  if (best_host == 0) facts.lacks = "memory that the host can map";
}

void judge(Facts& facts) {
  const std::pair<bool, const char*> needs[] = {
      {facts.api_version >= VK_API_VERSION_1_1, "Vulkan 1.1"},
      {facts.queue_count > 0, "a queue that computes"},
      {facts.addresses, "bufferDeviceAddress"},
      {facts.timeline, "timelineSemaphore"},
      {facts.int64, "shaderInt64"},
      {facts.int8, "shaderInt8 and storageBuffer8BitAccess"},
      {facts.limits.maxPushConstantsSize >= 128, "128 bytes of push constants"}};
  for (const auto& [is_there, what] : needs)
    if (!is_there) facts.lacks += (facts.lacks.empty() ? "" : ", ") + std::string(what);
}

}  // namespace

bool Facts::is_mappable(uint32_t memory_type) const {
  return (memory.memoryTypes[memory_type].propertyFlags & kMappable) == kMappable;
}

bool Facts::is_unified() const {
  return device_memory == host_memory;
}

uint64_t Facts::memory_bytes() const {
  return memory.memoryHeaps[memory.memoryTypes[device_memory].heapIndex].size;
}

Facts read_facts(const InstanceApi& api, VkPhysicalDevice handle) {
  Facts facts;
  facts.handle = handle;
  VkPhysicalDeviceProperties plain;
  api.vkGetPhysicalDeviceProperties(handle, &plain);
  facts.api_version = plain.apiVersion;
  facts.name = plain.deviceName;
  if (facts.api_version < VK_API_VERSION_1_1) {
    judge(facts);
    return facts;
  }
  choose_extensions(extensions_of(api, handle), facts);
  read_properties(api, facts);
  read_features(api, facts);
  choose_queues(api, facts);
  api.vkGetPhysicalDeviceMemoryProperties(handle, &facts.memory);
  choose_memory(facts);
  judge(facts);
  return facts;
}

}  // namespace plugrad::vulkan
