// Activation functions. Neither values nor gradients become NaN for extreme arguments: no
// exponential has a positive argument.
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "plugrad/functional.h"
#include "tensor/compute_dtype.h"
#include "tensor/elementwise/compositions.h"
#include "tensor/lazy_text.h"
#include "tensor/named_function.h"

namespace plugrad {

using tensor::in_compute_dtype;
using tensor::magnitude;
using tensor::with_slope;

// Zero or less gives 0 (with gradient 0); NaN compares false and stays.
Tensor Tensor::relu() const {
  return plugrad::where(*this <= 0, 0, *this);
}

// A NaN bound gives NaN, like a NaN x.
Tensor Tensor::clamp(const Tensor& low, const Tensor& high) const {
  const tensor::NamedFunction named("clamp");
  require(low.defined() || high.defined(), "[{}] give a lower bound, an upper bound, or both",
          tensor::called("clamp"));
  Tensor x = *this;
  if (low.defined()) x = plugrad::where((x < low) | low.isnan(), low, x);
  if (high.defined()) x = plugrad::where((x > high) | high.isnan(), high, x);
  return x;
}
Tensor Tensor::clip(const Tensor& low, const Tensor& high) const {
  const tensor::NamedFunction named("clip");
  return clamp(low, high);
}

// Like clamp, but with gradient 0 at the bounds themselves.
Tensor Tensor::hardtanh(double low, double high) const {
  const Tensor x = plugrad::where(*this <= low, low, *this);
  return plugrad::where(*this >= high, high, x);
}
Tensor Tensor::relu6() const {
  return hardtanh(0.0, 6.0);
}
Tensor Tensor::leaky_relu(double slope) const {
  return plugrad::where(*this > 0.0, *this, *this * slope);
}

Tensor Tensor::prelu(const Tensor& weight) const {
  const tensor::NamedFunction named("prelu");
  const int64_t channels = ndim() > 1 ? size(1) : 1;
  require(
      weight.defined() && weight.ndim() <= 1 && (weight.numel() == 1 || weight.numel() == channels),
      "[prelu] the weight has shape {}; one element or the {} of axis 1 of {} are wanted",
      weight.defined() ? to_string(weight.shape()) : "none", channels, tensor::lazy_text(*this));
  Shape along(static_cast<size_t>(ndim()), 1);
  if (weight.numel() != 1) along[1] = channels;
  return plugrad::where(*this > 0, *this, *this * weight.reshape(along));
}

namespace {

/// With `is_corrected`, what e + 1 lost in rounding corrects the quotient.
Tensor sigmoid_of(const Tensor& x, bool is_corrected) {
  const Tensor e = (-magnitude(x)).exp(), sum = e + 1.0, r = sum.reciprocal();
  Tensor y = plugrad::where(x < 0.0, e, 1.0) / sum;
  if (is_corrected) y = y - y * (e - (sum - 1.0));
  return with_slope(y, x, e * r * r);
}

}  // namespace

Tensor Tensor::sigmoid() const {
  return in_compute_dtype(*this, [](const Tensor& x) { return sigmoid_of(x, true); });
}

// The inner select keeps exp from overflowing in the branch that is not taken.
Tensor Tensor::elu(double alpha) const {
  return in_compute_dtype(*this, [&](const Tensor& x) {
    return plugrad::where(x > 0.0, x, plugrad::where(x > 0.0, 0.0, x).expm1() * alpha);
  });
}
Tensor Tensor::celu(double alpha) const {
  require(alpha != 0.0, "[celu] alpha is 0");
  return in_compute_dtype(*this, [&](const Tensor& x) {
    return plugrad::where(x > 0.0, x, (plugrad::where(x > 0.0, 0.0, x) / alpha).expm1() * alpha);
  });
}
// Klambauer et al. 2017.
Tensor Tensor::selu() const {
  return in_compute_dtype(
      *this, [](const Tensor& x) { return x.elu(1.6732632423543772) * 1.0507009873554805; });
}

Tensor Tensor::softplus(double beta) const {
  require(beta != 0.0, "[softplus] beta is 0");
  return in_compute_dtype(*this, [&](const Tensor& x) {
    const Tensor y = x * beta;
    return with_slope((y.maximum(0.0) + (-y.abs()).exp().log1p()) / beta, x, y.sigmoid());
  });
}
Tensor Tensor::logsigmoid() const {
  const tensor::NamedFunction named("logsigmoid");
  return -(-*this).softplus();
}
Tensor Tensor::silu() const {
  return in_compute_dtype(*this, [](const Tensor& x) { return x * sigmoid_of(x, false); });
}
Tensor Tensor::mish() const {
  return in_compute_dtype(*this, [](const Tensor& x) { return x * x.softplus().tanh(); });
}
Tensor Tensor::quick_gelu() const {
  return in_compute_dtype(*this, [](const Tensor& x) { return x * sigmoid_of(x * 1.702, false); });
}
Tensor Tensor::softsign() const {
  return in_compute_dtype(*this, [](const Tensor& x) { return x / (magnitude(x) + 1.0); });
}
Tensor Tensor::hardsigmoid(double slope, double offset) const {
  return in_compute_dtype(*this,
                          [&](const Tensor& x) { return (x * slope + offset).hardtanh(0.0, 1.0); });
}
Tensor Tensor::hardswish() const {
  return in_compute_dtype(*this, [](const Tensor& x) { return x * (x + 3.0).relu6() / 6.0; });
}

// Hendrycks and Gimpel 2016.
Tensor Tensor::gelu(bool tanh_form) const {
  return in_compute_dtype(*this, [&](const Tensor& x) {
    if (!tanh_form) return x * 0.5 * (tensor::quick_erf(x * (std::numbers::sqrt2 / 2.0)) + 1.0);
    const double scale = std::sqrt(2.0 / std::numbers::pi);
    return x * sigmoid_of((x + x * x * x * 0.044715) * (2.0 * scale), false);  // (1 + tanh u) / 2
  });
}

}  // namespace plugrad
