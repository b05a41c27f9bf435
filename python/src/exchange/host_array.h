// Arrays of other libraries in host memory.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "plugrad/tensor.h"

namespace plugrad::python {

namespace nb = nanobind;

/// The elements of an array and how they lie in memory.
struct HostArray {
  const std::byte* data = nullptr;
  DType dtype = DType::Void;
  Shape shape;
  std::vector<int64_t> strides;  ///< bytes between neighbours along each axis
  bool is_swapped = false;       ///< the other byte order
  nb::object keeper;             ///< keeps the memory in place

  size_t size_bytes() const;
  /// Whether the elements lie in row-major order, in the machine's byte order.
  bool is_plain() const;
};

/// Whether a tensor copies an array or uses its memory.
enum class Copying {
  Always,
  IfNeeded,  ///< a tensor uses row-major memory in place
  Never,     ///< other memory is an error
};

/// A NumPy array or number, or another array with DLPack, the buffer protocol or __array__;
/// nothing for other objects. Errors: TypeError for elements that plugrad has no dtype for,
/// BufferError for memory that the host cannot read; `function` names the caller in messages.
std::optional<HostArray> array_of_object(nb::handle object, Copying copying = Copying::Always);
/// The tensor of an array. Errors: ValueError if Never and a copy is needed.
Tensor tensor_of(HostArray array, std::string_view device, Copying copying);

/// The dtype of an array's elements. Errors: TypeError.
DType dtype_of(nb::dlpack::dtype type);
/// Errors: TypeError for dtypes of graphs.
nb::dlpack::dtype dlpack_of(DType dtype);

}  // namespace plugrad::python
