// Activation functions. Neither values nor gradients become NaN for extreme arguments: no
// exponential has a positive argument.
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "plugrad/functional.h"
#include "tensor/elementwise/compositions.h"
#include "tensor/lazy_text.h"
#include "tensor/named_function.h"

namespace plugrad {

using tensor::Formula;
using tensor::formula_of;
using tensor::magnitude;
using tensor::real_formula_of;
using tensor::with_slope;

// Zero or less gives 0 (with gradient 0); NaN compares false and stays.
Tensor Tensor::relu() const {
  if (dtype() == DType::Bool) return plugrad::where(*this <= 0, 0, *this);
  return formula_of("relu", *this,
                    [](const Formula& x) { return tensor::where(x <= 0.0, 0.0, x); });
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

namespace {

/// Like clamp, but with gradient 0 at the bounds themselves.
Formula within(const Formula& x, double low, double high) {
  const Formula raised = where(x <= low, low, x);
  return where(x >= high, high, raised);
}

}  // namespace

Tensor Tensor::hardtanh(double low, double high) const {
  if (!is_float(dtype())) {
    const Tensor x = plugrad::where(*this <= low, low, *this);
    return plugrad::where(*this >= high, high, x);
  }
  return formula_of("hardtanh", *this, [&](const Formula& x) { return within(x, low, high); });
}
Tensor Tensor::relu6() const {
  return hardtanh(0.0, 6.0);
}
Tensor Tensor::leaky_relu(double slope) const {
  if (!is_float(dtype())) return plugrad::where(*this > 0.0, *this, *this * slope);
  return formula_of("leaky_relu", *this,
                    [&](const Formula& x) { return tensor::where(x > 0.0, x, x * slope); });
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
Formula sigmoid_of(const Formula& x, bool is_corrected) {
  const Formula e = (-magnitude(x)).exp(), sum = e + 1.0, r = sum.reciprocal();
  Formula y = where(x < 0.0, e, 1.0) / sum;
  if (is_corrected) y = y - y * (e - (sum - 1.0));
  return with_slope(y, x, e * r * r);
}

// The inner select keeps exp from overflowing in the branch that is not taken.
Formula elu_of(const Formula& x, double alpha, double scale) {
  const Formula below = where(x > 0.0, 0.0, x);
  return where(x > 0.0, x, tensor::expm1(scale == 1.0 ? below : below / scale) * alpha);
}

Formula softplus_of(const Formula& x, double beta) {
  const Formula y = x * beta, sum = maximum(y, 0.0) + tensor::log1p((-y.abs()).exp());
  return with_slope(sum / beta, x, sigmoid_of(y, true));
}

// Hendrycks and Gimpel 2016.
Formula gelu_of(const Formula& x, bool tanh_form) {
  if (!tanh_form) return x * 0.5 * (tensor::quick_erf(x * (std::numbers::sqrt2 / 2.0)) + 1.0);
  const double scale = std::sqrt(2.0 / std::numbers::pi);
  return x * sigmoid_of((x + x * x * x * 0.044715) * (2.0 * scale), false);  // (1 + tanh u) / 2
}

}  // namespace

Tensor Tensor::sigmoid() const {
  return real_formula_of("sigmoid", *this, [](const Formula& x) { return sigmoid_of(x, true); });
}
Tensor Tensor::elu(double alpha) const {
  return real_formula_of("elu", *this, [&](const Formula& x) { return elu_of(x, alpha, 1.0); });
}
Tensor Tensor::celu(double alpha) const {
  require(alpha != 0.0, "[celu] alpha is 0");
  return real_formula_of("celu", *this, [&](const Formula& x) { return elu_of(x, alpha, alpha); });
}
// Klambauer et al. 2017.
Tensor Tensor::selu() const {
  return real_formula_of("selu", *this, [](const Formula& x) {
    return elu_of(x, 1.6732632423543772, 1.0) * 1.0507009873554805;
  });
}
Tensor Tensor::softplus(double beta) const {
  require(beta != 0.0, "[softplus] beta is 0");
  return real_formula_of("softplus", *this, [&](const Formula& x) { return softplus_of(x, beta); });
}
Tensor Tensor::logsigmoid() const {
  return real_formula_of("logsigmoid", *this,
                         [](const Formula& x) { return -softplus_of(-x, 1.0); });
}
Tensor Tensor::silu() const {
  return real_formula_of("silu", *this, [](const Formula& x) { return x * sigmoid_of(x, false); });
}
Tensor Tensor::mish() const {
  return real_formula_of("mish", *this,
                         [](const Formula& x) { return x * tensor::tanh(softplus_of(x, 1.0)); });
}
Tensor Tensor::quick_gelu() const {
  return real_formula_of("quick_gelu", *this,
                         [](const Formula& x) { return x * sigmoid_of(x * 1.702, false); });
}
Tensor Tensor::softsign() const {
  return real_formula_of("softsign", *this,
                         [](const Formula& x) { return x / (magnitude(x) + 1.0); });
}
Tensor Tensor::hardsigmoid(double slope, double offset) const {
  return real_formula_of("hardsigmoid", *this,
                         [&](const Formula& x) { return within(x * slope + offset, 0.0, 1.0); });
}
Tensor Tensor::hardswish() const {
  return real_formula_of("hardswish", *this,
                         [](const Formula& x) { return x * within(x + 3.0, 0.0, 6.0) / 6.0; });
}
Tensor Tensor::gelu(bool tanh_form) const {
  return real_formula_of("gelu", *this, [&](const Formula& x) { return gelu_of(x, tanh_form); });
}

}  // namespace plugrad
