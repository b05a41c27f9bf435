// How the state of layers begins.
#pragma once

#include "plugrad/tensor.h"

namespace plugrad::nn {

/// Trained, uniform in ±bound.
Tensor trained_uniform(const Shape& shape, double bound);

/// A buffer of its own with one value everywhere: two tensors made of equal constants would be one
/// node until the first step writes them, and that step a graph of its own. Errors: User for a
/// negative size.
Tensor filled(const Shape& shape, float value);
Tensor trained_constant(const Shape& shape, float value);

}  // namespace plugrad::nn
