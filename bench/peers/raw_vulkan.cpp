#include "bench/peers/raw_launch.h"

#if __has_include(<vulkan/vulkan.h>)
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <vector>

#include "plugrad/sdk/dynamic_library.h"

namespace plugrad::bench {
namespace {

// void main() {} with a local size of 1.
constexpr uint32_t kEmptyShader[] = {0x07230203,
                                     0x00010000,
                                     0,
                                     5,
                                     0,  // version 1.0, ids below 5
                                     2 << 16 | 17,
                                     1,  // OpCapability Shader
                                     3 << 16 | 14,
                                     0,
                                     1,  // OpMemoryModel Logical GLSL450
                                     5 << 16 | 15,
                                     5,
                                     3,
                                     0x6e69616d,
                                     0,  // OpEntryPoint GLCompute %3 "main"
                                     6 << 16 | 16,
                                     3,
                                     17,
                                     1,
                                     1,
                                     1,  // OpExecutionMode %3 LocalSize 1 1 1
                                     2 << 16 | 19,
                                     1,  // %1 = OpTypeVoid
                                     3 << 16 | 33,
                                     2,
                                     1,  // %2 = OpTypeFunction %1
                                     5 << 16 | 54,
                                     1,
                                     3,
                                     0,
                                     2,
                                     2 << 16 | 248,
                                     4,  // %3 = OpFunction; %4 = OpLabel
                                     1 << 16 | 253,
                                     1 << 16 | 56};  // OpReturn; OpFunctionEnd

// A device, one recorded command buffer, a fence.
class Vulkan {
 public:
  bool make() {
    const sdk::DynamicLibrary library({"libvulkan.so.1"});
    return library.find("vkGetInstanceProcAddr", get_) && make_device() && make_pipeline() &&
           record();
  }
  void launch() {
    submit_(queue_, 1, &submission_, fence_);
    wait_(device_, 1, &fence_, VK_TRUE, UINT64_MAX);
    reset_(device_, 1, &fence_);
  }

 private:
  template <class Function>
  Function find(const char* name) const {
    return reinterpret_cast<Function>(get_(instance_, name));
  }

  bool make_device() {
    VkApplicationInfo application{
        VK_STRUCTURE_TYPE_APPLICATION_INFO, nullptr, nullptr, 0, nullptr, 0, VK_API_VERSION_1_1};
    VkInstanceCreateInfo instance{
        VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, nullptr, 0, &application, 0, nullptr, 0, nullptr};
    if (find<PFN_vkCreateInstance>("vkCreateInstance")(&instance, nullptr, &instance_) !=
        VK_SUCCESS)
      return false;
    uint32_t count = 1;
    VkPhysicalDevice physical = nullptr;
    find<PFN_vkEnumeratePhysicalDevices>("vkEnumeratePhysicalDevices")(instance_, &count,
                                                                       &physical);
    if (count == 0) return false;
    uint32_t families = 0;
    const auto properties = find<PFN_vkGetPhysicalDeviceQueueFamilyProperties>(
        "vkGetPhysicalDeviceQueueFamilyProperties");
    properties(physical, &families, nullptr);
    std::vector<VkQueueFamilyProperties> all(families);
    properties(physical, &families, all.data());
    for (family_ = 0; family_ < families && !(all[family_].queueFlags & VK_QUEUE_COMPUTE_BIT);)
      ++family_;
    const float priority = 1;
    VkDeviceQueueCreateInfo queue{
        VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, nullptr, 0, family_, 1, &priority};
    VkDeviceCreateInfo device{};
    device.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    device.queueCreateInfoCount = 1;
    device.pQueueCreateInfos = &queue;
    if (find<PFN_vkCreateDevice>("vkCreateDevice")(physical, &device, nullptr, &device_) !=
        VK_SUCCESS)
      return false;
    find<PFN_vkGetDeviceQueue>("vkGetDeviceQueue")(device_, family_, 0, &queue_);
    return true;
  }

  bool make_pipeline() {
    VkShaderModuleCreateInfo shader{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, nullptr, 0,
                                    sizeof kEmptyShader, kEmptyShader};
    VkShaderModule module = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    VkPipelineLayoutCreateInfo no_layout{};
    no_layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    find<PFN_vkCreateShaderModule>("vkCreateShaderModule")(device_, &shader, nullptr, &module);
    find<PFN_vkCreatePipelineLayout>("vkCreatePipelineLayout")(device_, &no_layout, nullptr,
                                                               &layout);
    VkComputePipelineCreateInfo pipeline{};
    pipeline.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    pipeline.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    pipeline.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    pipeline.stage.module = module;
    pipeline.stage.pName = "main";
    pipeline.layout = layout;
    return find<PFN_vkCreateComputePipelines>("vkCreateComputePipelines")(
               device_, VK_NULL_HANDLE, 1, &pipeline, nullptr, &pipeline_) == VK_SUCCESS;
  }

  bool record() {
    VkCommandPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr, 0,
                                      family_};
    VkCommandPool pool = VK_NULL_HANDLE;
    if (find<PFN_vkCreateCommandPool>("vkCreateCommandPool")(device_, &pool_info, nullptr, &pool) !=
        VK_SUCCESS)
      return false;
    VkCommandBufferAllocateInfo one{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, pool,
                                    VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
    if (find<PFN_vkAllocateCommandBuffers>("vkAllocateCommandBuffers")(device_, &one, &commands_) !=
        VK_SUCCESS)
      return false;
    VkCommandBufferBeginInfo begin{};
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    find<PFN_vkBeginCommandBuffer>("vkBeginCommandBuffer")(commands_, &begin);
    find<PFN_vkCmdBindPipeline>("vkCmdBindPipeline")(commands_, VK_PIPELINE_BIND_POINT_COMPUTE,
                                                     pipeline_);
    find<PFN_vkCmdDispatch>("vkCmdDispatch")(commands_, 1, 1, 1);
    find<PFN_vkEndCommandBuffer>("vkEndCommandBuffer")(commands_);
    VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
    find<PFN_vkCreateFence>("vkCreateFence")(device_, &fence, nullptr, &fence_);
    submission_.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    submission_.commandBufferCount = 1;
    submission_.pCommandBuffers = &commands_;
    submit_ = find<PFN_vkQueueSubmit>("vkQueueSubmit");
    wait_ = find<PFN_vkWaitForFences>("vkWaitForFences");
    reset_ = find<PFN_vkResetFences>("vkResetFences");
    return submit_ && wait_ && reset_;
  }

  std::remove_pointer_t<PFN_vkGetInstanceProcAddr>* get_ = nullptr;
  VkInstance instance_ = nullptr;
  VkDevice device_ = nullptr;
  uint32_t family_ = 0;
  VkQueue queue_ = nullptr;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = nullptr;
  VkFence fence_ = VK_NULL_HANDLE;
  VkSubmitInfo submission_{};
  PFN_vkQueueSubmit submit_ = nullptr;
  PFN_vkWaitForFences wait_ = nullptr;
  PFN_vkResetFences reset_ = nullptr;
};

}  // namespace

RawLaunch raw_vulkan_launch() {
  auto* const vulkan = new Vulkan;
  if (!vulkan->make()) return {};
  return {"Vulkan: vkQueueSubmit, vkWaitForFences", [vulkan] { vulkan->launch(); }};
}

}  // namespace plugrad::bench
#else
plugrad::bench::RawLaunch plugrad::bench::raw_vulkan_launch() {
  return {};
}
#endif
