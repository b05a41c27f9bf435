// Elementwise reductions of host memory, which ranks apply to each other's contributions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "distributed/backend.h"

namespace plugrad::distributed {

/// Writes the reduction of `count` elements of `a` and `b` to `out`, which may be either.
void reduce(Reduction reduction, DType dtype, std::byte* out, const std::byte* a,
            const std::byte* b, std::int64_t count);

/// One contribution of `count` elements to a reduction; `scratch` says whether it may be
/// overwritten.
struct Contribution {
  const std::byte* data;
  std::byte* scratch;  ///< null, or the same memory
};

/// Reduces contributions as a balanced binary tree in their order: neighbours first, the last of an
/// odd number waits. At most one of them has no scratch.
void reduce_tree(Reduction reduction, DType dtype, std::byte* out,
                 std::span<Contribution> contributions, std::int64_t count);

}  // namespace plugrad::distributed
