// Checks a launch: the kernel's parameters, the device's limits, live buffers, aliasing.
#pragma once

#include <string>

#include "plugrad/plugin_api/device.h"
#include "runtime/checks/live_objects.h"

namespace plugrad::runtime {

/// Empty, or the first rule that the launch breaks. Requires a LiveObjects::Lock.
std::string launch_error(LiveObjects& live, const LiveKernel& kernel, const pgr_launch_desc& desc,
                         const pgr_device_caps& caps);

}  // namespace plugrad::runtime
