// The optimisation tensor_core(axis, n).
#pragma once

#include <optional>

#include "codegen/analysis/tensor_core.h"
#include "codegen/kernel.h"

namespace plugrad::codegen {

/// A product of matrices in a store: which output axes its rows and columns run along.
struct MatrixProduct {
  Id reduce, rows, columns;
  Id a, b;  // what is multiplied, of the tensor core's input dtype
};

/// The product that the store sums over `k`; nothing where it is none that the tensor core computes
/// as the kernel's options allow. `why`, where given, says the reason.
std::optional<MatrixProduct> find_product(const Kernel& kernel, Id store, Id k,
                                          const TensorCore& core, std::string* why = nullptr);

/// Tiles of the reductions over the axis are computed by tensor core `amount`.
void use_tensor_core(Kernel& kernel, const ScheduleStep& change);

/// Error(User) where the change cannot follow a tensor_core.
void check_beside_tensor_core(const Kernel& kernel, const ScheduleStep& change);

}  // namespace plugrad::codegen
