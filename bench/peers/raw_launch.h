// Launches of an empty kernel by a driver's own functions: what plugrad's launches are held
// against.
#pragma once

#include <functional>
#include <string>

namespace plugrad::bench {

struct RawLaunch {
  std::string name;              ///< "OpenCL: clEnqueueNDRangeKernel, clFinish"
  std::function<void()> launch;  ///< one, and waits for it
};

/// Of the first device that the driver lists. Empty where there is no driver, or where this program
/// was built without its headers. What is made lives as long as the process.
RawLaunch raw_opencl_launch();
RawLaunch raw_vulkan_launch();

}  // namespace plugrad::bench
