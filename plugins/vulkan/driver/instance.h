// The Vulkan instance and the devices in it that the plugin can use.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "facts.h"

namespace plugrad::vulkan {

// Called with each message of the validation layer, from any thread.
using ValidationSink = std::function<void(const std::string&)>;

class Instance {
 public:
  // Throws StatusError where there is no loader, or it makes no instance. With `sink` the Khronos
  // validation layer stands between; NOT_FOUND where it is not installed.
  explicit Instance(ValidationSink sink = nullptr);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const InstanceApi& api() const { return api_; }
  // Sorted by UUID.
  const std::vector<Facts>& devices() const { return devices_; }
  // Why others are not there: a line.
  const std::string& left_out() const { return left_out_; }

 private:
  void enumerate();

  InstanceApi api_;
  ValidationSink sink_;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::vector<Facts> devices_;
  std::string left_out_;
};

}  // namespace plugrad::vulkan
