// Compares an output of a model with what another runtime or device gives.
#pragma once

#include <vector>

#include "plugrad/tensor.h"

namespace plugrad::tools {

/// Read on the host, so that no kernel of a device takes part; 64-bit integers beyond 2^53 are
/// rounded.
std::vector<double> elements_of(const Tensor& tensor);

/// The largest difference that passes: `relative` times the largest element, plus `absolute`.
struct Tolerance {
  double relative = 0, absolute = 0;
};

/// Floats: 1e-4 and 1e-6; half floats, and outputs of a network with half floats: 4e-3 and 1e-3;
/// integers: 0.
Tolerance tolerance_of(DType output, bool has_halves);

struct OutputDifference {
  double relative = 0;  ///< the largest difference, of the largest element
  Tolerance allowed;
  bool is_rounding = false;  ///< the largest difference is within `allowed`
};

/// Of two tensors of equal shape, outputs of a network with half floats or without. Infinite where
/// one element is NaN or infinite and the other not.
OutputDifference difference_of(const Tensor& got, const Tensor& wanted, bool has_halves);

}  // namespace plugrad::tools
