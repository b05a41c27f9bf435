// The values of a tensor in host memory.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <optional>

#include "exchange/host_array.h"

namespace plugrad::python {

/// Elements of bound_shape(), row-major, in storage form.
struct HostValues {
  const std::byte* data = nullptr;
  size_t size_bytes = 0;
  std::shared_ptr<const void> owner;  ///< keeps them in place
  bool is_copy = false;               ///< nobody else reads them, so that they may be written to
};

/// Computes the tensor, without the interpreter's lock. Nothing if Never and only a copy can be
/// made.
std::optional<HostValues> values_of(const Tensor& tensor, Copying copying);

/// The slots of the class Tensor for memoryview(tensor): read-only, without a copy if possible.
const PyType_Slot* buffer_slots();

}  // namespace plugrad::python
