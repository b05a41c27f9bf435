// Slices of which a bound, or the axis, has a variable size.
#pragma once

#include <optional>
#include <string_view>

#include "base/internal.h"
#include "plugrad/tensor.h"
#include "tensor/sizes/size_arithmetic.h"

namespace plugrad::tensor {

/// Thrown where one recording cannot say which elements a slice has.
struct UndecidedSlice {
  std::string_view reason;
};

/// An integer and what is known of it. A bound that is left out is undefined.
struct Place {
  Tensor place;
  SizeValue value;
};

/// Elements first, first + step, … of an axis: `count` of them.
struct VariableRange {
  Tensor first;
  SizeValue start, count;
  int64_t step = 1;
};

/// Clips the bounds as Python does. `sizes` knows the variable sizes. Errors: UndecidedSlice.
PLUGRAD_INTERNAL VariableRange clipped_range(SizeArithmetic& sizes, const Tensor& x, int64_t axis,
                                             const Place& start, const Place& stop, int64_t step);
/// A view where the elements are the first ones, or all from a fixed one on.
PLUGRAD_INTERNAL Tensor elements_of(SizeArithmetic& sizes, const Tensor& x, int64_t axis,
                                    const VariableRange& range);

}  // namespace plugrad::tensor
