// Compares an output of a model with what another runtime or device gives.
#pragma once

#include <vector>

#include "plugrad/tensor.h"

namespace plugrad::tools {

/// Read on the host, so that no kernel of a device takes part; 64-bit integers beyond 2^53 are
/// rounded.
std::vector<double> elements_of(const Tensor& tensor);

struct OutputDifference {
  double relative = 0;  ///< the largest difference, of the largest element
  bool is_rounding =
      false;  ///< floats: 1e-4 of the largest element and 1e-6; half floats 4e-3, 1e-3
};

/// Of two tensors of equal shape. Infinite where one element is NaN or infinite and the other not.
OutputDifference difference_of(const Tensor& got, const Tensor& wanted);

}  // namespace plugrad::tools
