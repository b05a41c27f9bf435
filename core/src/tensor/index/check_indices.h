// Checks ranges of indices: on the host if it knows them, else by kernels if
// PLUGRAD_CHECK_INDICES=1.
#pragma once

#include <optional>
#include <string_view>

#include "plugrad/tensor.h"

namespace plugrad::tensor {

/// `indices`, checked to be in [low, high) or equal to `but`; `what` names them in messages
/// ("label"). Every function that takes indices calls this. Errors: User, with the first element
/// out of range. If the host knows the elements: immediately, and in each call for arguments of a
/// jitted function. With PLUGRAD_CHECK_INDICES=1 also for indices that a device computes: then a
/// read of any value computed from the result fails.
Tensor in_range(std::string_view function, std::string_view what, const Tensor& indices,
                int64_t low, int64_t high, std::optional<int64_t> but = {});

}  // namespace plugrad::tensor
