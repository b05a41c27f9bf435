// Tensors from arrays and nested lists of Python, and back.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string_view>

#include "plugrad/tensor.h"

namespace plugrad::python {

namespace nb = nanobind;

/// A copy of a NumPy array or number, or of another array with the buffer protocol or DLPack; nothing for
/// other objects. Errors: TypeError for dtypes that plugrad lacks.
std::optional<Tensor> tensor_of_array(nb::handle object, std::string_view device = {});
/// The value of a NumPy number as a constant of its dtype, which is on no device; nothing for other
/// objects. Errors: TypeError for dtypes that plugrad lacks.
std::optional<Tensor> constant_of_number(nb::handle object);
/// Errors: OverflowError if an integer dtype does not hold the number, ValueError for NaN. Nothing for
/// other objects and dtypes.
void check_holds(DType dtype, nb::handle number);
/// The tensor of nested lists of numbers: bool, i32 (i64 or u64 where a value needs it) or f32, unless
/// a dtype is given. Errors: ValueError for ragged lists, TypeError for elements that are no numbers.
Tensor tensor_of_list(nb::handle list, std::optional<DType> dtype, std::string_view device);
/// A NumPy array with the tensor's values: of its own and writable, or (without `copy`) a read-only
/// view of them where the host can read them. Errors: ValueError if it is false and there is none.
nb::object array_of_tensor(const Tensor& tensor, std::optional<bool> copy = true);
/// The values in nested lists; a number for shape ().
nb::object list_of_tensor(const Tensor& tensor);

}  // namespace plugrad::python
