/// Reads a tensor's elements in place, for bindings that hand memory to other libraries.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "plugrad/export.h"

namespace plugrad {

class Tensor;

/// The elements of a tensor, row-major and in storage form.
struct HostView {
  std::span<const std::byte> bytes;
  /// Keeps the bytes in place and unchanged, also when the tensor is assigned to; until shutdown().
  std::shared_ptr<const void> owner;
};

/// Computes the tensor and returns its elements without a copy; nothing where they are not in
/// memory that the host can read: on most accelerators, for constants, for tensors on a mesh,
/// without elements or of variable size. Tensor::to_bytes reads those. Errors: those of
/// Tensor::realize.
PLUGRAD_API std::optional<HostView> host_view(const Tensor& tensor);

}  // namespace plugrad
