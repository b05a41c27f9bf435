// Variable sizes where a function has more to say of them than that it does not take them.
#pragma once

#include <optional>
#include <string_view>

#include "plugrad/tensor.h"

namespace plugrad::tensor {

bool has_variable_size(const Tensor& x);
bool has_variable_size(const Tensor& x, int64_t axis);
/// Errors: User, with the reason, where the axis, or without one any, has a variable size.
void require_fixed(std::string_view function, const Tensor& x, std::optional<int64_t> axis,
                   std::string_view reason);

// How functions take variable sizes that ask for all places of an axis: they compute with those of
// the largest size, behind which something harmless was put, and their results have sizes again.

/// How many places of an axis have elements.
struct AxisSize {
  Tensor count;  // a number; i32 of shape () where it varies
  int64_t least = 0;
  bool varies = false;
};
AxisSize axis_size(const Tensor& x, int64_t axis);
AxisSize plus(const AxisSize& size, int64_t places);
AxisSize plus(const AxisSize& a, const AxisSize& b);
/// x of its largest size, with the number `fill` behind the variable one of the axis, or without
/// an axis of all.
Tensor whole(const Tensor& x, const Tensor& fill, std::optional<int64_t> axis = {});
/// x, of which no size varies, with that of the axis if it does.
Tensor limited(const Tensor& x, int64_t axis, const AxisSize& size);
/// x, of which no size varies, with those of `model`, which has its shape.
Tensor limited_as(const Tensor& x, const Tensor& model);
/// Errors: User where `part`, which is no larger, may have places along the axis that x has not.
void require_inside(std::string_view function, const Tensor& part, const Tensor& x, int64_t axis);

}  // namespace plugrad::tensor
