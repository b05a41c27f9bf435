// Initial values of layers.
#pragma once

#include "plugrad/tensor.h"

namespace plugrad::nn {

/// A trained tensor, uniform in ±bound.
Tensor trained_uniform(const Shape& shape, double bound);

/// A separate buffer with one value: equal constants would share a node until the first step
/// assigns to them, and that step would have another graph than later ones. Errors: User for a
/// negative size.
Tensor filled(const Shape& shape, float value);
Tensor trained_constant(const Shape& shape, float value);

}  // namespace plugrad::nn
