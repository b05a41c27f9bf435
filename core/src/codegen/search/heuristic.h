// Picks optimisations at once, from the kernel's accesses and the device's description. No device
// names.
#pragma once

#include "codegen/kernel.h"

namespace plugrad::codegen {

void apply_heuristic(Kernel& kernel);

/// Whether kernels for the device are spread over work-items that run in step, as on a GPU.
inline bool works_in_groups(const pgr_device_caps& caps) {
  return caps.has_local != 0 && caps.subgroup_size > 1;
}

/// The choice for such devices.
void apply_group_heuristic(Kernel& kernel);

/// Gives a product of matrices to a tensor core of the device; false where there is none for it.
bool apply_tensor_core_heuristic(Kernel& kernel);

}  // namespace plugrad::codegen
