// What the kernels compute that plugrad writes itself (codegen/running_kernels.h): running totals.
// They go in order, each step rounded, so that their values are exact.
#pragma once

#include <span>
#include <string_view>

#include "oracle/measured.h"

namespace plugrad::oracle {

/// By the kernel's name, which says all about it, of what its sources are. Errors: Unsupported for
/// a user's own kernel.
Measured running(std::string_view name, std::span<const Measured* const> sources);

}  // namespace plugrad::oracle
