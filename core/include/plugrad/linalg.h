/// Linear algebra beyond matmul. Every function works on the last two axes of a tensor, each matrix
/// of the leading axes by itself, and has a gradient.
#pragma once

#include <vector>

#include "plugrad/tensor.h"

namespace plugrad {

/// Nearly the closest matrix with orthonormal rows or columns: `steps` times
/// X <- c0 X + c1 (X X^T) X + c2 (X X^T)^2 X + …, from X over its Frobenius norm + eps.
/// Shape: (…, n, m), kept. Errors: User unless floats of two axes, or without coefficients.
/// Source: Jordan et al. 2024 (Muon), whose coefficients take singular values to 0.7 … 1.2.
PLUGRAD_API Tensor newton_schulz(const Tensor& x, int64_t steps = 5,
                                 const std::vector<double>& coefficients = {3.4445, -4.7750,
                                                                            2.0315},
                                 double eps = 1e-7);

}  // namespace plugrad
