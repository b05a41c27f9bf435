// Normalisation and dropout.
#include "base/check.h"
#include "plugrad/functional.h"

namespace plugrad {

Tensor Tensor::layernorm(const Axes& axes, double eps) const {
  const Tensor centred = *this - mean(axes, true);
  return centred * (centred.square().mean(axes, true) + eps).rsqrt();
}

Tensor layernorm(const Tensor& x, const Axes& axes, double eps) {
  return x.layernorm(axes, eps);
}

Tensor batchnorm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                 const Tensor& inverse_std, int64_t axis) {
  Shape shape(static_cast<size_t>(x.ndim()), 1);
  require(axis >= 0 && axis < x.ndim(), "[batchnorm] axis {} is out of range for shape {}", axis,
          to_string(x.shape()));
  shape[static_cast<size_t>(axis)] = x.size(axis);
  Tensor y = x - mean.reshape(shape);
  if (weight.defined()) y = y * weight.reshape(shape);
  y = y * inverse_std.reshape(shape);
  return bias.defined() ? y + bias.reshape(shape) : y;
}

Tensor Tensor::dropout(double p, bool training) const {
  require(p >= 0.0 && p <= 1.0, "[dropout] the probability is {}, not in [0, 1]", p);
  if (!training || p == 0.0) return *this;
  if (p == 1.0) return zeros_like();
  const Tensor stays = rand(shape(), DType::F32, device()) >= p;
  return plugrad::where(stays, *this, 0.0) / (1.0 - p);
}

}  // namespace plugrad
