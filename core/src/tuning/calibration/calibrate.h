// Runs the kernels that tell what a device's machine can do.
#pragma once

#include <optional>
#include <string>

#include "cost/machine.h"
#include "runtime/device/device.h"

namespace plugrad::tuning {

/// Seconds that a calibration takes at most, about.
inline constexpr double kCalibrationSeconds = 3;

/// Nothing is kept. Nothing, and why, where runs do not agree or the device cannot be measured so.
/// Errors: what compiling and launching throw.
std::optional<cost::Machine> calibrate(runtime::Device& device, std::string& problem);

}  // namespace plugrad::tuning
