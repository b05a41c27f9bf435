// Orthogonal factors of matrices. Loops over steps are unrolled into the graph; what every step
// reads is stored, so that no step computes its predecessors again.
#include "plugrad/linalg.h"
#include "tensor/record.h"

namespace plugrad {

namespace {

void require_matrices(std::string_view function, const Tensor& x) {
  require(x.ndim() >= 2, "[{}] shape {} has fewer than two axes", function, to_string(x.shape()));
  require(is_float(x.dtype()), "[{}] takes floats, not {}; cast it", function, name_of(x.dtype()));
}

}  // namespace

Tensor newton_schulz(const Tensor& x, int64_t steps, const std::vector<double>& coefficients,
                     double eps) {
  require_matrices("newton_schulz", x);
  require(steps >= 0, "[newton_schulz] {} steps", steps);
  require(!coefficients.empty(), "[newton_schulz] no coefficients are given");
  const bool tall = x.size(-2) > x.size(-1);
  const Tensor norm = x.square().sum({-2, -1}, true).sqrt() + eps;
  Tensor y = ((tall ? x.transpose() : x) / norm).contiguous();
  for (int64_t step = 0; step < steps; ++step) {
    // y <- (c0 + p(a)) y with p(a) = a (c1 + a (c2 + …)), by Horner's scheme.
    Tensor next = y * coefficients[0];
    if (coefficients.size() > 1) {
      const Tensor a = y.matmul(y.transpose()).contiguous();
      Tensor p = a * coefficients.back();
      for (size_t i = coefficients.size() - 2; i > 0; --i)
        p = (a * coefficients[i] + a.matmul(p)).contiguous();
      next = next + p.matmul(y);
    }
    y = next.contiguous();
  }
  return tall ? y.transpose() : y;
}

}  // namespace plugrad
