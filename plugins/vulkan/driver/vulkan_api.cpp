#include "vulkan_api.h"

#include "plugrad/sdk/guard.h"

namespace plugrad::vulkan {
namespace {

// clang-format off
#define PLUGRAD_VK_RESULTS(X) \
  X(VK_NOT_READY) X(VK_TIMEOUT) X(VK_EVENT_SET) X(VK_EVENT_RESET) X(VK_INCOMPLETE) \
  X(VK_ERROR_OUT_OF_HOST_MEMORY) X(VK_ERROR_OUT_OF_DEVICE_MEMORY) \
  X(VK_ERROR_INITIALIZATION_FAILED) X(VK_ERROR_DEVICE_LOST) X(VK_ERROR_MEMORY_MAP_FAILED) \
  X(VK_ERROR_LAYER_NOT_PRESENT) X(VK_ERROR_EXTENSION_NOT_PRESENT) \
  X(VK_ERROR_FEATURE_NOT_PRESENT) X(VK_ERROR_INCOMPATIBLE_DRIVER) X(VK_ERROR_TOO_MANY_OBJECTS) \
  X(VK_ERROR_FORMAT_NOT_SUPPORTED) X(VK_ERROR_FRAGMENTED_POOL) X(VK_ERROR_UNKNOWN) \
  X(VK_ERROR_OUT_OF_POOL_MEMORY) X(VK_ERROR_INVALID_EXTERNAL_HANDLE) X(VK_ERROR_FRAGMENTATION) \
  X(VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS) X(VK_ERROR_INVALID_SHADER_NV) \
  X(VK_ERROR_VALIDATION_FAILED_EXT) X(VK_ERROR_NOT_PERMITTED_KHR) X(VK_PIPELINE_COMPILE_REQUIRED)
// clang-format on

pgr_status status_of(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return PGR_STATUS_OUT_OF_HOST_MEMORY;
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
    case VK_ERROR_FRAGMENTATION:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
      return PGR_STATUS_OUT_OF_MEMORY;
    case VK_ERROR_DEVICE_LOST:
      return PGR_STATUS_DEVICE_LOST;
    case VK_ERROR_NOT_PERMITTED_KHR:
      return PGR_STATUS_PERMISSION_DENIED;
    case VK_ERROR_LAYER_NOT_PRESENT:
    case VK_ERROR_EXTENSION_NOT_PRESENT:
    case VK_ERROR_FEATURE_NOT_PRESENT:
      return PGR_STATUS_UNSUPPORTED;
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return PGR_STATUS_INCOMPATIBLE;
    default:
      return PGR_STATUS_INTERNAL;
  }
}

template <typename Function>
void require_function(Function* function, const char* name) {
  sdk::require(function != nullptr, PGR_STATUS_INCOMPATIBLE,
               std::string("the Vulkan driver lacks ") + name + "; update it");
}

}  // namespace

void load_functions(InstanceApi& api) {
#define PLUGRAD_VK_LOAD(name)                                          \
  api.name = reinterpret_cast<PFN_##name>(api.get(api.handle, #name)); \
  require_function(api.name, #name);
  PLUGRAD_VK_INSTANCE_FUNCTIONS(PLUGRAD_VK_LOAD)
#undef PLUGRAD_VK_LOAD
}

void load_functions(const InstanceApi& instance, DeviceApi& api) {
  const auto find = [&](const char* name) {
    return instance.vkGetDeviceProcAddr(api.handle, name);
  };
#define PLUGRAD_VK_LOAD(name)                           \
  api.name = reinterpret_cast<PFN_##name>(find(#name)); \
  require_function(api.name, #name);
  PLUGRAD_VK_DEVICE_FUNCTIONS(PLUGRAD_VK_LOAD)
#undef PLUGRAD_VK_LOAD
#define PLUGRAD_VK_LOAD(name)                                                \
  api.name = reinterpret_cast<PFN_##name>(find(#name));                      \
  if (!api.name) api.name = reinterpret_cast<PFN_##name>(find(#name "KHR")); \
  require_function(api.name, #name);
  PLUGRAD_VK_DEVICE_FUNCTIONS_1_2(PLUGRAD_VK_LOAD)
#undef PLUGRAD_VK_LOAD
  api.vkGetCalibratedTimestampsEXT =
      reinterpret_cast<PFN_vkGetCalibratedTimestampsEXT>(find("vkGetCalibratedTimestampsEXT"));
}

std::string result_name(VkResult result) {
  switch (static_cast<int>(result)) {
#define PLUGRAD_VK_NAME(name) \
  case name:                  \
    return #name;
    PLUGRAD_VK_RESULTS(PLUGRAD_VK_NAME)
#undef PLUGRAD_VK_NAME
    default:
      return "VkResult " + std::to_string(static_cast<int>(result));
  }
}

void check(VkResult result, const std::string& what) {
  if (result >= 0) return;
  throw sdk::StatusError(status_of(result), what + ": " + result_name(result),
                         static_cast<int32_t>(result));
}

}  // namespace plugrad::vulkan
