// Kernels that only move elements, in the form in which the host can do the same without a compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ir/kernel_ast.h"

namespace plugrad::schedule {

/// Each element of the destination is one of the source, converted, or a zero in a gap: permuted,
/// reshaped, flipped, cut, padded. Offsets are sums of one number for each axis.
struct Movement {
  struct Axis {
    std::vector<int64_t> to, from;
    std::vector<uint8_t> is_gap;  // 1: a zero, whatever other axes say
  };
  std::vector<Axis> axes;  // the outermost one first; the last one has the nearest destinations
  int64_t to = 0, from = 0;
  DType source, result;

  void run(const std::byte* from_bytes, std::byte* to_bytes) const;
};

/// Null if the kernel does anything else, or an offset is no such sum.
std::shared_ptr<const Movement> movement_of(const KernelAst& ast);

}  // namespace plugrad::schedule
