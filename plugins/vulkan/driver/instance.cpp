#include "instance.h"

#include <algorithm>
#include <cstring>

#include "plugrad/sdk/dynamic_library.h"
#include "plugrad/sdk/guard.h"

namespace plugrad::vulkan {
namespace {

constexpr const char* kLayer = "VK_LAYER_KHRONOS_validation";

struct GlobalApi {
  PFN_vkGetInstanceProcAddr get = nullptr;
  PLUGRAD_VK_GLOBAL_FUNCTIONS(PLUGRAD_VK_MEMBER)
};

GlobalApi open_loader() {
  static const sdk::DynamicLibrary library({"libvulkan.so.1", "libvulkan.so"});
  sdk::require(static_cast<bool>(library), PGR_STATUS_NOT_FOUND,
               "no Vulkan loader: " + library.reason() + "; install libvulkan1");
  GlobalApi api;
  sdk::require(library.find("vkGetInstanceProcAddr", api.get) && api.get, PGR_STATUS_INCOMPATIBLE,
               "libvulkan.so.1 has no vkGetInstanceProcAddr");
#define PLUGRAD_VK_LOAD(name) \
  api.name = reinterpret_cast<PFN_##name>(api.get(VK_NULL_HANDLE, #name));
  PLUGRAD_VK_GLOBAL_FUNCTIONS(PLUGRAD_VK_LOAD)
#undef PLUGRAD_VK_LOAD
  sdk::require(api.vkEnumerateInstanceVersion && api.vkCreateInstance, PGR_STATUS_INCOMPATIBLE,
               "the Vulkan loader is of version 1.0; install libvulkan1 1.1 or later");
  return api;
}

void require_layer(const GlobalApi& api) {
  uint32_t count = 0;
  api.vkEnumerateInstanceLayerProperties(&count, nullptr);
  std::vector<VkLayerProperties> layers(count);
  api.vkEnumerateInstanceLayerProperties(&count, layers.data());
  const bool is_there = std::any_of(layers.begin(), layers.end(), [](const auto& layer) {
    return std::strcmp(layer.layerName, kLayer) == 0;
  });
  sdk::require(
      is_there, PGR_STATUS_NOT_FOUND,
      std::string("option validation: no layer ") + kLayer + "; install vulkan-validationlayers");
}

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                          VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data,
                                          void* sink) {
  try {
    (*static_cast<const ValidationSink*>(sink))(data->pMessage ? data->pMessage : "");
  } catch (...) {  // exceptions must not cross the driver
  }
  return VK_FALSE;
}

VkDebugUtilsMessengerCreateInfoEXT messenger_info(ValidationSink& sink) {
  VkDebugUtilsMessengerCreateInfoEXT info{};
  info.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  info.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT;
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  info.pfnUserCallback = on_message;
  info.pUserData = &sink;
  return info;
}

}  // namespace

Instance::Instance(ValidationSink sink) : sink_(std::move(sink)) {
  const GlobalApi global = open_loader();
  uint32_t version = 0;
  check(global.vkEnumerateInstanceVersion(&version), "vkEnumerateInstanceVersion");
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pEngineName = "plugrad";
  application.apiVersion = std::min(version, uint32_t{VK_API_VERSION_1_3});
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  const char* extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  if (sink_) {
    require_layer(global);
    info.enabledLayerCount = info.enabledExtensionCount = 1;
    info.ppEnabledLayerNames = &kLayer;
    info.ppEnabledExtensionNames = &extension;
  }
  check(global.vkCreateInstance(&info, nullptr, &api_.handle), "vkCreateInstance");
  api_.get = global.get;
  load_functions(api_);
  if (sink_) {
    const auto create = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
        api_.get(api_.handle, "vkCreateDebugUtilsMessengerEXT"));
    const VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info(sink_);
    if (create) check(create(api_.handle, &messenger, nullptr, &messenger_), "the messenger");
  }
  enumerate();
}

Instance::~Instance() {
  if (messenger_)
    reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
        api_.get(api_.handle, "vkDestroyDebugUtilsMessengerEXT"))(api_.handle, messenger_, nullptr);
  if (api_.handle) api_.vkDestroyInstance(api_.handle, nullptr);
}

void Instance::enumerate() {
  uint32_t count = 0;
  check(api_.vkEnumeratePhysicalDevices(api_.handle, &count, nullptr),
        "vkEnumeratePhysicalDevices");
  std::vector<VkPhysicalDevice> handles(count);
  check(api_.vkEnumeratePhysicalDevices(api_.handle, &count, handles.data()),
        "vkEnumeratePhysicalDevices");
  handles.resize(count);
  for (VkPhysicalDevice handle : handles) {
    Facts facts = read_facts(api_, handle);
    if (facts.lacks.empty())
      devices_.push_back(std::move(facts));
    else
      left_out_ +=
          (left_out_.empty() ? "" : "; ") + ("\"" + facts.name + "\" lacks " + facts.lacks);
  }
  // Drivers may list a device twice; the first is used.
  std::stable_sort(devices_.begin(), devices_.end(),
                   [](const Facts& a, const Facts& b) { return a.uuid < b.uuid; });
  devices_.erase(std::unique(devices_.begin(), devices_.end(),
                             [](const Facts& a, const Facts& b) { return a.uuid == b.uuid; }),
                 devices_.end());
}

}  // namespace plugrad::vulkan
