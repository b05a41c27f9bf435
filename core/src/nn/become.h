// Gives tensors of a module another dtype, device or spec in place.
#pragma once

#include <string_view>

#include "plugrad/tensor.h"

namespace plugrad::nn {

/// Assigns `changed`, which may have another dtype or device, to the tensor itself, as a new leaf.
void become(std::string_view function, const Tensor& tensor, const Tensor& changed);

/// Errors: User while a jitted function is recorded.
void require_outside_jit(std::string_view function);

}  // namespace plugrad::nn
