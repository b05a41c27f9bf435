// Loads the Vulkan functions used by the plugin at run time; the loader is not linked.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <string>

namespace plugrad::vulkan {

// clang-format off
#define PLUGRAD_VK_GLOBAL_FUNCTIONS(X) \
  X(vkCreateInstance) X(vkEnumerateInstanceLayerProperties) X(vkEnumerateInstanceVersion)
#define PLUGRAD_VK_INSTANCE_FUNCTIONS(X) \
  X(vkCreateDevice) X(vkDestroyInstance) X(vkEnumerateDeviceExtensionProperties) \
  X(vkEnumeratePhysicalDevices) X(vkGetDeviceProcAddr) X(vkGetPhysicalDeviceFeatures2) \
  X(vkGetPhysicalDeviceMemoryProperties) X(vkGetPhysicalDeviceProperties) \
  X(vkGetPhysicalDeviceProperties2) X(vkGetPhysicalDeviceQueueFamilyProperties)
#define PLUGRAD_VK_DEVICE_FUNCTIONS(X) \
  X(vkAllocateCommandBuffers) X(vkAllocateMemory) X(vkBeginCommandBuffer) X(vkBindBufferMemory) \
  X(vkCmdBindPipeline) X(vkCmdCopyBuffer) X(vkCmdDispatch) X(vkCmdFillBuffer) \
  X(vkCmdPipelineBarrier) X(vkCmdPushConstants) X(vkCmdResetQueryPool) X(vkCmdWriteTimestamp) \
  X(vkCreateBuffer) X(vkCreateCommandPool) X(vkCreateComputePipelines) X(vkCreatePipelineCache) \
  X(vkCreatePipelineLayout) X(vkCreateQueryPool) X(vkCreateSemaphore) X(vkCreateShaderModule) \
  X(vkDestroyBuffer) X(vkDestroyCommandPool) X(vkDestroyDevice) X(vkDestroyPipeline) \
  X(vkDestroyPipelineCache) X(vkDestroyPipelineLayout) X(vkDestroyQueryPool) \
  X(vkDestroySemaphore) X(vkDestroyShaderModule) X(vkEndCommandBuffer) X(vkFreeCommandBuffers) \
  X(vkFreeMemory) X(vkGetBufferMemoryRequirements) X(vkGetDeviceQueue) X(vkGetQueryPoolResults) \
  X(vkMapMemory) X(vkQueueSubmit) X(vkResetCommandBuffer)
// In Vulkan 1.2, or in extensions of 1.1 with the suffix KHR.
#define PLUGRAD_VK_DEVICE_FUNCTIONS_1_2(X) \
  X(vkGetBufferDeviceAddress) X(vkGetSemaphoreCounterValue) X(vkWaitSemaphores)
// clang-format on

#define PLUGRAD_VK_MEMBER(name) PFN_##name name = nullptr;

struct InstanceApi {
  VkInstance handle = VK_NULL_HANDLE;
  PFN_vkGetInstanceProcAddr get = nullptr;
  PLUGRAD_VK_INSTANCE_FUNCTIONS(PLUGRAD_VK_MEMBER)
};

struct DeviceApi {
  VkDevice handle = VK_NULL_HANDLE;
  PLUGRAD_VK_DEVICE_FUNCTIONS(PLUGRAD_VK_MEMBER)
  PLUGRAD_VK_DEVICE_FUNCTIONS_1_2(PLUGRAD_VK_MEMBER)
  PFN_vkGetCalibratedTimestampsEXT vkGetCalibratedTimestampsEXT = nullptr;  // optional
};

// Fills the table for the handles in it. Throws StatusError if a function is missing.
void load_functions(InstanceApi& api);
void load_functions(const InstanceApi& instance, DeviceApi& api);

// The name of a result code: "VK_ERROR_DEVICE_LOST".
std::string result_name(VkResult result);

// Throws StatusError with the code's name if `result` is an error of `what`.
void check(VkResult result, const std::string& what);

}  // namespace plugrad::vulkan
