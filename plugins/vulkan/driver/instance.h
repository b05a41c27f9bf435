// The Vulkan instance and its usable devices.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "facts.h"

namespace plugrad::vulkan {

// Receives each message of the validation layer, on any thread.
using ValidationSink = std::function<void(const std::string&)>;

class Instance {
 public:
  // Throws StatusError if there is no loader or no instance can be created. With `sink`, enables
  // the Khronos validation layer; NOT_FOUND if it is not installed.
  explicit Instance(ValidationSink sink = nullptr);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const InstanceApi& api() const { return api_; }
  // Sorted by UUID.
  const std::vector<Facts>& devices() const { return devices_; }
  // Reasons for excluded devices, on one line.
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
