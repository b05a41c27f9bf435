// What a device says of itself, checked: schedule and codegen compute with it, people read it.
#pragma once

#include <string>
#include <vector>

#include "plugrad/plugin_api/device.h"
#include "runtime/device/device.h"

namespace plugrad::runtime {

/// Copies what the plugin filled. Texts are sanitised, an empty name becomes the arch.
/// Errors: Device where the stable id is empty.
DeviceInfo checked_info(const std::string& device, const pgr_device_info& theirs);

/// Makes `caps` fit to compute with: constants of later minors become what they mean to this host,
/// widths above those of kernel IR the widest. `cores` receives the tensor cores, to which `caps`
/// points afterwards. Errors: Device, naming field and value, for what can only be a mistake.
void check_caps(const std::string& device, pgr_device_caps& caps,
                std::vector<pgr_tensor_core>& cores);

}  // namespace plugrad::runtime
