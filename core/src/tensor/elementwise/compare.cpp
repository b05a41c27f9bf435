// Composed functions of two operands: copysign, logaddexp, isclose.
#include <cmath>

#include "plugrad/functional.h"
#include "tensor/compute_dtype.h"
#include "tensor/elementwise/compositions.h"
#include "tensor/record.h"

namespace plugrad {

using tensor::Recorder;
using tensor::Takes;

namespace {

struct RealPair {
  Tensor a, b;
};

/// Both operands in one float dtype.
RealPair as_reals(std::string_view function, const Tensor& a, const Tensor& b) {
  Recorder r(function);
  std::vector<Id> nodes = {r.use(a), r.use(b)};
  r.match(nodes, Takes::Floats);
  return {r.done(nodes[0]), r.done(nodes[1])};
}

}  // namespace

Tensor Tensor::copysign(const Tensor& sign) const {
  const auto [a, b] = as_reals("copysign", *this, sign);
  const Tensor size = a.abs();
  const Tensor signed_size = plugrad::where(tensor::sign_bit(b), -size, size);
  // makes the gradient to `sign` 0 and not missing
  return plugrad::where(Tensor(false), b, signed_size);
}

// Equal operands have distance 0: the difference of equal infinities would be NaN.
Tensor Tensor::logaddexp(const Tensor& other) const {
  const auto [x, y] = as_reals("logaddexp", *this, other);
  const Tensor b = y;
  return tensor::in_compute_dtype(x, [&](const Tensor& promoted) {
    const Tensor to = b.cast(promoted.dtype()), equal = promoted == to;
    const Tensor distance = plugrad::where(equal, 0.0, promoted - to).abs();
    return promoted.maximum(to) + (-distance).exp().log1p();
  });
}

Tensor Tensor::isclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  const tensor::NamedFunction named("isclose");
  require(rtol >= 0.0 && atol >= 0.0, "[{}] rtol {} or atol {} is negative",
          tensor::called("isclose"), rtol, atol);
  Tensor close = *this == other;
  if (is_float(dtype()) || is_float(other.dtype())) {
    const auto [a, b] = as_reals("isclose", *this, other);
    const Tensor distance = (a - b).abs();
    close = close | (distance.isfinite() & (distance <= b.abs() * rtol + atol));
    return equal_nan ? close | (a.isnan() & b.isnan()) : close;
  }
  if (dtype() == DType::Bool && other.dtype() == DType::Bool) return close;
  const Tensor apart = plugrad::where(*this < other, other - *this, *this - other);
  const Tensor is_near = apart.cast(DType::F32) <= other.abs().cast(DType::F32) * rtol + atol;
  return close | ((apart >= 0) & is_near);  // the distance may overflow
}

bool Tensor::allclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  const tensor::NamedFunction named("allclose");
  return isclose(other, rtol, atol, equal_nan).all().item<bool>();
}

}  // namespace plugrad
