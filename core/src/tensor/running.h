// Running totals and scattered values as kernels of their own (codegen/running_kernels.h), with
// gradients.
#pragma once

#include <functional>

#include "codegen/running_kernels.h"
#include "plugrad/user_kernel.h"

namespace plugrad::tensor {

/// What a kernel that plugrad writes itself makes of the inputs. Its name says all about it.
Tensor run_written(const std::string& name, const codegen::KernelWriter& writer,
                   const std::vector<Tensor>& inputs, const KernelOutput& output);

using Formula = std::function<Tensor(const std::vector<Tensor>&)>;

/// Whether running kernels compute with the dtype on every device that holds it.
bool runs_on(DType dtype);

/// Totals of axis 1 of x (outer, length, inner) after `before` (outer, inner), which may be
/// undefined. No gradient.
Tensor run_scan(Op op, const Tensor& x, const Tensor& before);

/// x (outer, rows, inner) combined with values (outer, count, inner) at rows places (outer or 1,
/// count), in order. Has a gradient where op is Add.
Tensor combine_at(Op op, const Tensor& x, const Tensor& places, const Tensor& values);

/// Rows of x (outer, rows, inner) at places (outer or 1, count), read by `read`; the gradient adds
/// them up again.
Tensor with_scattered_gradient(const Tensor& x, const Tensor& places, const Formula& read);

/// From so many pairs of a place and an element on, comparing all of them costs more than a kernel
/// of its own.
inline bool is_long(int64_t places, int64_t elements) {
  return places > 0 && elements > 0 && places > 65536 / elements;
}

}  // namespace plugrad::tensor
