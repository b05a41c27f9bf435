// Kernels that reduce each row and then run along it again: their loops over a row are chosen one
// by one, as if each were a kernel of its own.
#pragma once

#include <set>
#include <vector>

#include "codegen/kernel.h"

namespace plugrad::codegen {

struct RowKernels {
  /// Each reduction that is made outside of loops of the store, then the store; for one row. What
  /// an earlier part makes is loaded. Empty where the store has no such reduction.
  std::vector<Kernel> parts;
  /// Numbers of the axes that all of those reductions stand inside of: what may run in parallel.
  std::vector<uint32_t> row_axes;
  std::vector<uint32_t> axes;  // numbers of all the axes of the store
  bool has_arrays = false;
  double iterations = 0;  // of all parts, for all rows

  bool is_row_axis(uint32_t axis_number) const;
  /// Whether the axis may run in parallel. A store that does not run along it is given to one group
  /// where it fills arrays (make_global).
  bool allows(uint32_t axis_number) const;
};

/// `kernel` has one store, and gets nodes that it does not need. Axes with the numbers `across` are
/// loops of the parts, as where lanes run across rows, and no row axes.
RowKernels row_kernels(Kernel& kernel, const std::set<uint32_t>& across = {});

/// Of an array, or of a parameter that stands for one.
int64_t elements_of(const Graph& g, Id array);

/// The ranges as one number.
Id index_of(Graph& g, std::span<const Id> ranges);

/// Elements that no buffer of the kernel has, for what `value` gives; one after the other by
/// `number`.
Id place_for(Kernel& kernel, Id value, uint32_t number, int64_t count);

}  // namespace plugrad::codegen
