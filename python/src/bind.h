// The parts of the module: each binds one subject.
#pragma once

#include <nanobind/nanobind.h>

#include "plugrad/tensor.h"

namespace plugrad::python {

namespace nb = nanobind;

void bind_errors();
void bind_interpreter(nb::module_& module);
void bind_dtypes(nb::module_& module);
void bind_devices(nb::module_& module);
void bind_tensor(nb::module_& module);
void bind_sharding(nb::module_& module);
void bind_functions(nb::module_& module);              // generated
void bind_tensor_methods(nb::class_<Tensor>& tensor);  // generated
void bind_operators(nb::class_<Tensor>& tensor);
void bind_indexing(nb::class_<Tensor>& tensor);
void bind_array_api(nb::class_<Tensor>& tensor);
void bind_values(nb::class_<Tensor>& tensor);
void bind_kernel_methods(nb::class_<Tensor>& tensor);
void bind_uop_methods(nb::class_<Tensor>& tensor);
void bind_sharding_methods(nb::class_<Tensor>& tensor);
void bind_exchange(nb::module_& module, nb::class_<Tensor>& tensor);
void bind_layers(nb::module_& module);      // makes the submodule _nn
void bind_optimisers(nb::module_& module);  // makes the submodule _optim
void bind_data(nb::module_& module);        // makes the submodule _data
void bind_onnx(nb::module_& module);        // makes the submodule _onnx
void bind_state(nb::module_& module);
void bind_module_sharding(nb::module_& module);
void bind_copies();
void bind_progress(nb::module_& module);
void bind_callbacks(nb::module_& module);
void bind_jit(nb::module_& module);
void bind_function_classes(nb::module_& module);  // functions with a backward, scan, Variable
void bind_uops(nb::module_& module);
void bind_kernels(nb::module_& module);
void bind_scopes(nb::module_& module);

}  // namespace plugrad::python
