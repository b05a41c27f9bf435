// The logical device: creation, queries, waiting, destruction.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "plugin.h"

namespace plugrad::vulkan {
namespace {

constexpr uint32_t kMostHardwareQueues = 4;

std::string vendor_name(uint32_t id) {
  switch (id) {
    case 0x1002:
      return "AMD";
    case 0x10de:
      return "NVIDIA";
    case 0x8086:
      return "Intel";
    case 0x13b5:
      return "ARM";
    case 0x5143:
      return "Qualcomm";
    case VK_VENDOR_ID_MESA:
      return "Mesa";
    default: {
      char text[16];
      std::snprintf(text, sizeof text, "0x%04x", id);
      return text;
    }
  }
}

// The features used by rendered shaders, if the device has them.
struct Features {
  VkPhysicalDevice8BitStorageFeatures storage8{};
  VkPhysicalDevice16BitStorageFeatures storage16{};
  VkPhysicalDeviceShaderFloat16Int8Features small{};
  VkPhysicalDeviceBufferDeviceAddressFeatures addresses{};
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline{};
  VkPhysicalDeviceShaderAtomicInt64Features atomic_int64{};
  VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic_float{};
  VkPhysicalDeviceSubgroupSizeControlFeatures sizes{};
  VkPhysicalDeviceFeatures2 all{};

  explicit Features(const Facts& facts) {
    storage8.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES;
    storage8.storageBuffer8BitAccess = VK_TRUE;
    storage16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
    storage16.storageBuffer16BitAccess = facts.int16;
    small.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
    small.shaderInt8 = VK_TRUE;
    small.shaderFloat16 = facts.float16;
    addresses.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES;
    addresses.bufferDeviceAddress = VK_TRUE;
    timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
    timeline.timelineSemaphore = VK_TRUE;
    atomic_int64.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_INT64_FEATURES;
    atomic_int64.shaderBufferInt64Atomics = atomic_int64.shaderSharedInt64Atomics = VK_TRUE;
    atomic_float.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT;
    atomic_float.shaderBufferFloat32AtomicAdd = atomic_float.shaderSharedFloat32AtomicAdd = VK_TRUE;
    sizes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
    sizes.subgroupSizeControl = VK_TRUE;
    all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    all.features.shaderInt64 = VK_TRUE;
    all.features.shaderInt16 = facts.int16;
    all.features.shaderFloat64 = facts.float64;
    all.pNext = &storage8;
    storage8.pNext = &storage16;
    storage16.pNext = &small;
    small.pNext = &addresses;
    addresses.pNext = &timeline;
    void** end = &timeline.pNext;
    if (facts.atomic_int64) {
      *end = &atomic_int64;
      end = &atomic_int64.pNext;
    }
    if (facts.atomic_float32) {
      *end = &atomic_float;
      end = &atomic_float.pNext;
    }
    if (facts.max_subgroups > 0) *end = &sizes;
  }
};

void create_device(pgr_device& device) {
  const Facts& facts = device.facts;
  const uint32_t queues = std::min(facts.queue_count, kMostHardwareQueues);
  const std::vector<float> priorities(queues, 1.0f);
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = facts.queue_family;
  queue.queueCount = queues;
  queue.pQueuePriorities = priorities.data();
  const Features features(facts);
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &features.all;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(facts.extensions.size());
  info.ppEnabledExtensionNames = facts.extensions.data();
  const InstanceApi& instance = device.instance->api();
  check(instance.vkCreateDevice(facts.handle, &info, nullptr, &device.api.handle),
        "vkCreateDevice of " + facts.name);
  load_functions(instance, device.api);
  for (uint32_t i = 0; i < queues; ++i) {
    device.hardware_queues.push_back(std::make_unique<HardwareQueue>());
    device.api.vkGetDeviceQueue(device.api.handle, facts.queue_family, i,
                                &device.hardware_queues.back()->handle);
  }
}

void create_objects(pgr_device& device) {
  const DeviceApi& api = device.api;
  VkPushConstantRange range{};
  range.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  range.size = kSlots * sizeof(uint64_t);
  VkPipelineLayoutCreateInfo layout{};
  layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &range;
  check(api.vkCreatePipelineLayout(api.handle, &layout, nullptr, &device.layout),
        "vkCreatePipelineLayout");
  VkPipelineCacheCreateInfo cache{};
  cache.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  check(api.vkCreatePipelineCache(api.handle, &cache, nullptr, &device.pipelines),
        "vkCreatePipelineCache");
  device.memory = std::make_unique<Memory>(api, device.facts);
  device.streams.push_back(std::make_unique<Stream>(device, *device.hardware_queues.front()));
  device.cut_loops =
      device.memory->take(device.facts.host_memory, sizeof(uint64_t), sizeof(uint64_t));
  std::memset(device.cut_loops.mapped(), 0, sizeof(uint64_t));
}

const Instance& validating_instance(pgr_plugin& plugin) {
  const std::lock_guard lock(plugin.mutex);
  if (!plugin.validating)
    plugin.validating = std::make_unique<Instance>([&plugin](const std::string& message) {
      const pgr_string text = sdk::to_pgr(message);
      plugin.host->log(plugin.host->host, PGR_LOG_ERROR, &text);
      const std::lock_guard message_lock(plugin.messages_mutex);
      if (plugin.validation_message.empty()) plugin.validation_message = message;
      plugin.has_message = true;
    });
  return *plugin.validating;
}

}  // namespace

std::unique_ptr<pgr_device> open_device(pgr_plugin& plugin, uint32_t index, bool validates) {
  auto device = std::make_unique<pgr_device>();
  device->plugin = &plugin;
  const std::string uuid = plugin.instance->devices()[index].uuid;
  device->validates = validates;
  device->instance = validates ? &validating_instance(plugin) : plugin.instance.get();
  for (const Facts& facts : device->instance->devices())
    if (facts.uuid == uuid) device->facts = facts;
  sdk::require(device->facts.handle != VK_NULL_HANDLE, PGR_STATUS_DEVICE_LOST,
               "the device with UUID " + uuid + " is gone");
  device->vendor = vendor_name(device->facts.vendor_id);
  device->caps = make_caps(device->facts);
  const pgr_host_api& host = *plugin.host;
  if (device->facts.is_software()) device->caps.threads = host.thread_count(host.host);
  create_device(*device);
  create_objects(*device);
  withdraw_broken_claims(*device);
  after_call(*device);
  return device;
}

void before_call(pgr_device& device) {
  if (device.is_lost)
    throw sdk::StatusError(PGR_STATUS_DEVICE_LOST,
                           device.facts.name + " was lost; close it and open it anew");
}

void after_call(pgr_device& device) {
  pgr_plugin& plugin = *device.plugin;
  if (!device.validates || !plugin.has_message) return;
  std::string message;
  {
    const std::lock_guard lock(plugin.messages_mutex);
    message.swap(plugin.validation_message);
    plugin.has_message = false;
  }
  throw sdk::StatusError(PGR_STATUS_INTERNAL, "the validation layer: " + message);
}

void check_device(pgr_device& device, VkResult result, const char* what) {
  if (result >= 0) return;
  if (result == VK_ERROR_DEVICE_LOST) device.is_lost = true;
  check(result, what + (" on " + device.facts.name));
}

void report_cut_loops(pgr_device& device) {
  volatile uint32_t& word = *reinterpret_cast<volatile uint32_t*>(device.cut_loops.mapped());
  if (word == 0) return;
  word = 0;
  throw sdk::StatusError(
      PGR_STATUS_LAUNCH_FAILED,
      "a kernel did not finish: the driver (" + device.facts.driver +
          ") ended a loop of it too early. llvmpipe does so after 65,535 turns of "
          "a work-item; give the kernel more work-items");
}

void finish_all(pgr_device& device) {
  std::vector<Stream*> streams;
  {
    const std::lock_guard lock(device.mutex);
    for (const auto& stream : device.streams) streams.push_back(stream.get());
  }
  for (Stream* stream : streams) stream->flush();  // one stream may wait for another
  for (Stream* stream : streams) stream->finish();
}

void collect(pgr_device& device) {
  std::vector<MemoryRange> done;
  {
    const std::lock_guard lock(device.mutex);
    std::erase_if(device.retired, [&](pgr_device::Retired& one) {
      std::erase_if(one.work, [](const auto& work) { return work.first->reached(work.second); });
      if (one.work.empty()) done.push_back(one.range);
      return one.work.empty();
    });
  }
  for (const MemoryRange& range : done) device.memory->give_back(range);
}

void retire(pgr_device& device, const MemoryRange& range) {
  if (!range.block) return;
  {
    const std::lock_guard lock(device.mutex);
    pgr_device::Retired one;
    one.range = range;
    for (const auto& stream : device.streams) one.work.emplace_back(stream.get(), stream->last());
    device.retired.push_back(std::move(one));
  }
  if (!device.is_lost) collect(device);
}

MemoryRange take_memory(pgr_device& device, uint32_t type, uint64_t size, uint64_t align) {
  collect(device);
  try {
    return device.memory->take(type, size, align);
  } catch (const sdk::StatusError& e) {
    if (e.status() != PGR_STATUS_OUT_OF_MEMORY) throw;
    const std::lock_guard lock(device.mutex);
    if (device.retired.empty()) throw;
  }
  finish_all(device);
  collect(device);
  return device.memory->take(type, size, align);
}

namespace {

pgr_status device_info(pgr_device* device, pgr_device_info* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    const Facts& facts = device->facts;
    pgr_device_info own;
    PGR_INIT(own, DEVICE_INFO);
    own.stable_id = sdk::to_pgr(facts.uuid);
    own.name = sdk::to_pgr(facts.name);
    own.arch = sdk::to_pgr("spirv1.3");
    own.vendor = sdk::to_pgr(device->vendor);
    own.driver = sdk::to_pgr(facts.driver);
    own.memory_bytes = facts.memory_bytes();
    own.is_software = facts.is_software();
    sdk::fill(out, own);
  });
}

pgr_status caps(pgr_device* device, pgr_device_caps* out, pgr_error* error) {
  return sdk::guard(error, [&] { sdk::fill(out, device->caps); });
}

pgr_status memory_stats(pgr_device* device, pgr_memory_stats* out, pgr_error* error) {
  return call(device, error, [&] {
    collect(*device);
    pgr_memory_stats own;
    PGR_INIT(own, MEMORY_STATS);
    own.total_bytes = device->facts.memory_bytes();
    own.used_bytes = device->memory->used_bytes();
    own.free_bytes = own.total_bytes > own.used_bytes ? own.total_bytes - own.used_bytes : 0;
    sdk::fill(out, own);
  });
}

pgr_status health(pgr_device* device, uint32_t* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    *out = device->is_lost ? PGR_HEALTH_LOST : PGR_HEALTH_OK;
  });
}

pgr_status synchronize(pgr_device* device, pgr_error* error) {
  return call(device, error, [&] {
    finish_all(*device);
    report_cut_loops(*device);
  });
}

}  // namespace

const pgr_device_api* device_table() {
  static const pgr_device_api table = [] {
    pgr_device_api made;
    PGR_INIT(made, DEVICE_API);
    made.info = device_info;
    made.caps = caps;
    made.memory_stats = memory_stats;
    made.health = health;
    made.synchronize = synchronize;
    return made;
  }();
  return &table;
}

}  // namespace plugrad::vulkan

pgr_device::~pgr_device() {
  using namespace plugrad;
  if (api.handle && api.vkDestroyDevice) {
    if (!is_lost) sdk::guard(nullptr, [&] { vulkan::finish_all(*this); });
    sdk::guard(nullptr, [&] {
      for (const auto& one : retired) memory->give_back(one.range);
    });
    streams.clear();
    for (VkQueryPool pool : query_pools) api.vkDestroyQueryPool(api.handle, pool, nullptr);
    memory.reset();
    if (pipelines) api.vkDestroyPipelineCache(api.handle, pipelines, nullptr);
    if (layout) api.vkDestroyPipelineLayout(api.handle, layout, nullptr);
    api.vkDestroyDevice(api.handle, nullptr);
  }
}
