// The machine model of each device: its calibration if there is one, else the table's.
#pragma once

#include <memory>
#include <string>

#include "cost/machine.h"
#include "runtime/device/device.h"

namespace plugrad::tuning {

/// Returns the same object until a calibration is kept or forgotten. With `deterministic`: the
/// table's.
std::shared_ptr<const cost::Machine> machine_of(runtime::Device& device);
/// The table's machine, even if there is a calibration.
cost::Machine table_machine_of(const runtime::Device& device);

/// One line that identifies the device of a calibration.
std::string machine_identity(const runtime::Device& device);
/// Path of the calibration file; empty without a cache directory.
std::string calibration_path(const runtime::Device& device);
/// Whether machine_of() returns measured figures.
bool is_calibrated(runtime::Device& device);

/// Stores the calibration for plans and kernels made from now on. Returns 0 or an errno.
int keep_calibration(const runtime::Device& device, const cost::Machine& machine);
/// Returns whether there was one.
bool forget_calibration(const runtime::Device& device);

}  // namespace plugrad::tuning
