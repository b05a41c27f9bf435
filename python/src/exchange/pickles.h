// Pickles of tensors.
#pragma once

#include <nanobind/nanobind.h>

#include "plugrad/tensor.h"

namespace plugrad::python {

void bind_pickles(nanobind::module_& module, nanobind::class_<Tensor>& tensor);

}  // namespace plugrad::python
