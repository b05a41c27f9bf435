// Integers that the host knows without running anything, so that those out of range are errors.
#pragma once

#include <optional>
#include <string_view>

#include "plugrad/tensor.h"

namespace plugrad::tensor {

/// Errors: User, naming the first element of `places` outside [low, high) other than `but`, where
/// the host knows the elements; `what` says what they are ("label"). Otherwise nothing is checked.
void require_known_range(std::string_view function, std::string_view what, const Tensor& places,
                         int64_t low, int64_t high, std::optional<int64_t> but = {});

}  // namespace plugrad::tensor
