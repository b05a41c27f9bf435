// Launches an empty kernel by the driver's own functions: the reference for plugrad's launches.
#pragma once

#include <functional>
#include <string>

namespace plugrad::bench {

struct RawLaunch {
  std::string name;              ///< "OpenCL: clEnqueueNDRangeKernel, clFinish"
  std::function<void()> launch;  ///< launches once and waits
};

/// Uses the driver's first device. Empty if there is no driver, or the program was built without
/// its headers. The objects live as long as the process.
RawLaunch raw_opencl_launch();
RawLaunch raw_vulkan_launch();

}  // namespace plugrad::bench
