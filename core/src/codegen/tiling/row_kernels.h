// Row-kernel tiling: a kernel that reduces each row and runs along it again is split into one
// kernel for each pass, so that each pass gets a tile of its own.
#pragma once

#include <set>
#include <vector>

#include "codegen/kernel.h"

namespace plugrad::codegen {

struct RowKernels {
  /// One kernel for each reduction outside the store's loops, then one for the store; each for one
  /// row, with the results of earlier ones loaded. Empty if the store has no such reduction.
  std::vector<Kernel> parts;
  /// Axis numbers of the loops around all of those reductions, which may run in parallel.
  std::vector<uint32_t> row_axes;
  std::vector<uint32_t> axes;  // numbers of all axes of the store
  bool has_arrays = false;
  double iterations = 0;  // of all passes, for all rows

  bool is_row_axis(uint32_t axis_number) const;
  /// Whether the axis may run in parallel. A store that does not run along it and fills arrays runs
  /// in one group (make_global).
  bool allows(uint32_t axis_number) const;
};

/// `kernel` has one store; nodes are added to it. Axes with the numbers `across` are loops of the
/// passes instead of row axes, for lanes that run across rows.
RowKernels row_kernels(Kernel& kernel, const std::set<uint32_t>& across = {});

/// Elements of an array or of the parameter that replaces one.
int64_t elements_of(const Graph& g, Id array);

/// The flattened index of the ranges.
Id index_of(Graph& g, std::span<const Id> ranges);

/// A new parameter of `count` elements to hold `value`; `number` tells several of them apart.
Id param_for(Kernel& kernel, Id value, uint32_t number, int64_t count);

}  // namespace plugrad::codegen
