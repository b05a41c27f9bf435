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

}  // namespace plugrad::tensor
