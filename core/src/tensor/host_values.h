// Computes small tensors of numbers that the host has, without a device: the arithmetic of shapes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/internal.h"
#include "plugrad/tensor.h"

namespace plugrad::tensor {

/// The bits of a constant (ir/graph.h) that equals the element in memory.
PLUGRAD_INTERNAL uint64_t bits_in_memory(const std::byte* memory, DType dtype);

struct HostValues {
  Shape shape;
  DType dtype;
  std::vector<uint64_t> bits;  // row-major; each as a constant's bits (ir/graph.h)
};

/// The tensor's elements, equal to those that a kernel would compute in the dtype itself; nothing
/// if an input is in a device's memory, or a step has more than 65,536 elements or is none of the
/// movements, elementwise functions and reductions.
PLUGRAD_INTERNAL std::optional<HostValues> host_values(const Tensor& tensor);

}  // namespace plugrad::tensor
