// The machine of each device: its calibration where there is one, else the table.
#pragma once

#include <memory>
#include <string>

#include "cost/machine.h"
#include "runtime/device/device.h"

namespace plugrad::tuning {

/// The same object until the next calibration is kept or forgotten. With `deterministic` the table.
std::shared_ptr<const cost::Machine> machine_of(runtime::Device& device);
/// The table's alone.
cost::Machine table_machine_of(const runtime::Device& device);

/// One line: what a calibration is of.
std::string machine_identity(const runtime::Device& device);
/// Of the file; empty where there is no cache directory.
std::string calibration_path(const runtime::Device& device);
/// Whether machine_of gives figures that were measured.
bool is_calibrated(runtime::Device& device);

/// Plans and kernels made from now on use it. 0 or an errno.
int keep_calibration(const runtime::Device& device, const cost::Machine& machine);
/// Whether there was one.
bool forget_calibration(const runtime::Device& device);

}  // namespace plugrad::tuning
