// Kernels that are a step smaller than a given one, and mean as much: where the given one is free
// of races and of reads before writes, so are they.
#pragma once

#include <vector>

#include "conformance/driver/editable_ir.h"

namespace plugrad::conformance {

// Largest steps first.
std::vector<EditableIr> smaller_kernels(const EditableIr& ir);

}  // namespace plugrad::conformance
