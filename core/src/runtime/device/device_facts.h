// Checks the facts that a device reports before schedule, codegen and users read them.
#pragma once

#include <string>
#include <vector>

#include "plugrad/plugin_api/device.h"
#include "runtime/device/device.h"

namespace plugrad::runtime {

/// Copies the plugin's facts. Sanitises texts; an empty name becomes the arch. Errors: Device if
/// the stable id is empty.
DeviceInfo checked_info(const std::string& device, const pgr_device_info& theirs);

/// Makes `caps` safe to compute with: replaces constants of later minors by their meaning for this
/// host, limits widths to those of kernel IR. Moves the tensor cores to `cores`, to which `caps`
/// then points. Errors: Device, naming field and value, for values that must be mistakes.
void check_caps(const std::string& device, pgr_device_caps& caps,
                std::vector<pgr_tensor_core>& cores);

}  // namespace plugrad::runtime
