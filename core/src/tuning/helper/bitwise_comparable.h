// Decides whether a kernel rounds at all when run on the contents of a search.
#pragma once

#include "ir/kernel_ast.h"

namespace plugrad::tuning {

/// Whether every float that the kernel stores is exact, or rounded only by the store, for any order
/// of its sums: two correct kernels then agree bit by bit. Assumes inputs as made by contents_of():
/// multiples of 1/8 up to 2.
bool is_exact(const KernelAst& ast);

}  // namespace plugrad::tuning
