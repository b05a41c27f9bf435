// Running totals as kernels of their own (codegen/running_kernels.h).
#pragma once

#include "codegen/running_kernels.h"
#include "plugrad/user_kernel.h"

namespace plugrad::tensor {

/// What a kernel that plugrad writes itself makes of the inputs. Its name says all about it.
Tensor run_written(const std::string& name, const codegen::KernelWriter& writer,
                   const std::vector<Tensor>& inputs, const KernelOutput& output);

/// Whether running kernels compute with the dtype on every device that holds it.
bool runs_on(DType dtype);

/// Totals of axis 1 of x (outer, length, inner) after `before` (outer, inner), which may be
/// undefined. No gradient.
Tensor run_scan(Op op, const Tensor& x, const Tensor& before);

}  // namespace plugrad::tensor
