#pragma once

#include "conformance/device.h"

namespace plugrad::conformance {

// A handle of its own of the plugin's device `index`. Throws Failed.
std::unique_ptr<Device> open_device(Plugin& plugin, uint32_t index,
                                    const std::map<std::string, std::string>& options);

}  // namespace plugrad::conformance
