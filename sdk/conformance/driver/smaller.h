// Generates kernels one step smaller than a given one. If the given kernel has no races and no
// reads before writes, neither do they.
#pragma once

#include <vector>

#include "conformance/driver/editable_ir.h"

namespace plugrad::conformance {

// Largest steps first.
std::vector<EditableIr> smaller_kernels(const EditableIr& ir);

}  // namespace plugrad::conformance
