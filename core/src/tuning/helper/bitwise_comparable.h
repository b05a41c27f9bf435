// Whether rounding happens at all in a kernel that is run on the contents of a search.
#pragma once

#include "ir/kernel_ast.h"

namespace plugrad::tuning {

/// Whether every float that the kernel stores comes without any rounding, or with the one of the
/// store itself, in whatever order its sums are taken: then two right kernels agree to the bit.
/// For inputs as contents_of() makes them: multiples of 1/8 up to 2.
bool is_exact(const KernelAst& ast);

}  // namespace plugrad::tuning
