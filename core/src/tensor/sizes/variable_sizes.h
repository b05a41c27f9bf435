// Support for variable sizes in functions that do more than refuse them.
#pragma once

#include <optional>
#include <string_view>

#include "base/internal.h"
#include "plugrad/tensor.h"

namespace plugrad::tensor {

PLUGRAD_INTERNAL bool has_variable_size(const Tensor& x);
PLUGRAD_INTERNAL bool has_variable_size(const Tensor& x, int64_t axis);
/// Whether an axis takes the size of other operands, as those of constants and positions do.
bool takes_any_sizes(const Tensor& x);
/// Errors: User, with the reason, if the axis (without one, any axis) has a variable size.
void require_fixed(std::string_view function, const Tensor& x, std::optional<int64_t> axis,
                   std::string_view reason);

// A function that needs all elements of an axis computes at the largest size: whole() fills the
// elements beyond the variable size with a neutral value, and limited() restores the size.

/// The number of elements of an axis.
struct AxisSize {
  Tensor count;  // a constant; a tensor, i32 of shape (), if the size varies
  int64_t least = 0;
  bool varies = false;
};
PLUGRAD_INTERNAL AxisSize axis_size(const Tensor& x, int64_t axis);
AxisSize plus(const AxisSize& size, int64_t count);
AxisSize plus(const AxisSize& a, const AxisSize& b);
/// x at its largest size, with `fill` beyond the variable size of the axis (without one, of all
/// axes).
PLUGRAD_INTERNAL Tensor whole(const Tensor& x, const Tensor& fill,
                              std::optional<int64_t> axis = {});
/// Gives the axis of x, which has fixed sizes, this size if it varies.
PLUGRAD_INTERNAL Tensor limited(const Tensor& x, int64_t axis, const AxisSize& size);
/// Gives x, which has fixed sizes, the variable sizes of `model`. Both have one shape.
PLUGRAD_INTERNAL Tensor limited_as(const Tensor& x, const Tensor& model);
/// The elements of x at the actual sizes, as a part of its memory.
PLUGRAD_INTERNAL Tensor actual_part(const Tensor& x);
/// x in memory of a larger shape, copied on its device, whose other elements are any; nothing if it
/// cannot be. What actual_part() gave is not copied if its memory has this shape.
PLUGRAD_INTERNAL std::optional<Tensor> in_room(const Tensor& x, const Shape& room);
/// Errors: User if `part` may have elements along the axis that x lacks; its shape is no larger.
void require_inside(std::string_view function, const Tensor& part, const Tensor& x, int64_t axis);

}  // namespace plugrad::tensor
