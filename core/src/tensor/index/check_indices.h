// Ranges of indices: those that the host knows are checked at once, others by kernels where
// PLUGRAD_CHECK_INDICES=1.
#pragma once

#include <optional>
#include <string_view>

#include "plugrad/tensor.h"

namespace plugrad::tensor {

/// `places`, for use as indices in [low, high) or equal to `but`; `what` says what they are
/// ("label"). Every function that takes indices passes them through here.
/// Errors: User, naming the first element outside, where the host knows the elements: at once, and
/// of arguments of a jitted function in each call. With PLUGRAD_CHECK_INDICES=1 those that a device
/// computes are checked as well, and each read of what is computed of the result is such an error.
Tensor in_range(std::string_view function, std::string_view what, const Tensor& places, int64_t low,
                int64_t high, std::optional<int64_t> but = {});

}  // namespace plugrad::tensor
