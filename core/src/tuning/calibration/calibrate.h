// Measures the machine of a device with probe kernels.
#pragma once

#include <optional>
#include <string>

#include "cost/machine.h"
#include "runtime/device/device.h"

namespace plugrad::tuning {

/// Approximate upper limit of a calibration, in seconds.
inline constexpr double kCalibrationSeconds = 3;

/// Stores nothing. Returns nothing, and sets `problem`, if runs disagree or the device cannot be
/// measured. Errors: those of compiling and launching.
std::optional<cost::Machine> calibrate(runtime::Device& device, std::string& problem);

}  // namespace plugrad::tuning
