// What people are told of a kernel: its name and what it does.
#pragma once

#include "codegen/kernel.h"

namespace plugrad::codegen {

/// "r" or "E" (with or without a reduction), then the size of each axis; in color each size shows
/// what the axis became.
std::string kernel_name(const Kernel& kernel, bool in_color);
/// Floating-point operations (a multiply-add is two) and bytes that must move at least, before
/// optimisation.
Estimates estimate(Kernel& kernel);

}  // namespace plugrad::codegen
