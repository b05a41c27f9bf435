// Activation functions, composed so that neither values nor gradients become NaN at the extremes:
// every exponential here has an argument that is not positive.
#include <cmath>
#include <numbers>

#include "plugrad/functional.h"
#include "tensor/record.h"

namespace plugrad {

using tensor::Recorder;
using tensor::Takes;

namespace {

/// |x| with gradient 1 at 0, so that functions built on it keep their slope there.
Tensor magnitude(const Tensor& x) {
  return where(x < 0.0, -x, x);
}

/// The polynomial with these coefficients, highest power first (Horner).
Tensor polynomial(const Tensor& x, std::initializer_list<double> coefficients) {
  Tensor sum = *coefficients.begin();
  for (const double* c = coefficients.begin() + 1; c != coefficients.end(); ++c) sum = sum * x + *c;
  return sum;
}

}  // namespace

// Zero or less gives 0 (with gradient 0); NaN compares false and stays.
Tensor Tensor::relu() const {
  return plugrad::where(*this <= 0, 0, *this);
}

Tensor Tensor::clamp(std::optional<double> low, std::optional<double> high) const {
  require(low || high, "[clamp] give a lower bound, an upper bound, or both");
  const auto bound = [&](double value) {
    return is_float(dtype()) ? Tensor(value) : Tensor(static_cast<int64_t>(value));
  };
  Tensor x = *this;
  if (low) x = plugrad::where(x < bound(*low), bound(*low), x);
  if (high) x = plugrad::where(x > bound(*high), bound(*high), x);
  return x;
}

// As clamp, with gradient 0 at the bounds themselves.
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

Tensor Tensor::sigmoid() const {
  const Tensor e = (-magnitude(*this)).exp();
  return plugrad::where(*this < 0.0, e, 1.0) / (e + 1.0);
}

Tensor Tensor::tanh() const {
  const Tensor a = magnitude(*this), e = (a * -2.0).exp(), t = (1.0 - e) / (e + 1.0);
  return plugrad::where(*this < 0.0, -t, t);
}

Tensor Tensor::sinh() const {
  return (exp() - (-*this).exp()) * 0.5;
}
Tensor Tensor::cosh() const {
  return (exp() + (-*this).exp()) * 0.5;
}

// Abramowitz and Stegun 7.1.26: absolute error below 1.5e-7.
Tensor Tensor::erf() const {
  const Tensor a = magnitude(*this), t = (a * 0.3275911 + 1.0).reciprocal();
  const Tensor tail =
      polynomial(t, {1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592, 0.0}) *
      (-a * a).exp();
  return plugrad::where(*this < 0.0, tail - 1.0, 1.0 - tail);
}

Tensor Tensor::elu(double alpha) const {
  const Tensor negative =
      plugrad::where(*this > 0.0, 0.0, *this);  // exp must not overflow where it is unused
  return plugrad::where(*this > 0.0, *this, (negative.exp() - 1.0) * alpha);
}
Tensor Tensor::celu(double alpha) const {
  const Tensor negative = plugrad::where(*this > 0.0, 0.0, *this);
  return plugrad::where(*this > 0.0, *this, ((negative / alpha).exp() - 1.0) * alpha);
}
// Klambauer et al. 2017.
Tensor Tensor::selu() const {
  return elu(1.6732632423543772) * 1.0507009873554805;
}

Tensor Tensor::softplus(double beta) const {
  const Tensor x = *this * beta;
  return (x.maximum(0.0) + (-x.abs()).exp().log1p()) / beta;
}
Tensor Tensor::logsigmoid() const {
  return -(-*this).softplus();
}
Tensor Tensor::silu() const {
  return *this * sigmoid();
}
Tensor Tensor::mish() const {
  return *this * softplus().tanh();
}
Tensor Tensor::quick_gelu() const {
  return *this * (*this * 1.702).sigmoid();
}
Tensor Tensor::softsign() const {
  return *this / (magnitude(*this) + 1.0);
}
Tensor Tensor::hardsigmoid() const {
  return (*this / 6.0 + 0.5).clamp(0.0, 1.0);
}
Tensor Tensor::hardswish() const {
  return *this * (*this + 3.0).relu6() / 6.0;
}

// Hendrycks and Gimpel 2016.
Tensor Tensor::gelu(bool tanh_form) const {
  const Tensor x = *this;
  if (!tanh_form) return x * 0.5 * ((x * std::numbers::sqrt2 / 2.0).erf() + 1.0);
  const double scale = std::sqrt(2.0 / std::numbers::pi);
  return x * 0.5 * (((x + x * x * x * 0.044715) * scale).tanh() + 1.0);
}

namespace {

/// x to a whole number by repeated squaring: exact for integers.
Tensor whole_power(const Tensor& x, uint64_t exponent) {
  Tensor result, square = x;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = result.defined() ? result * square : square;
    if (exponent > 1) square = square * square;
  }
  return result;
}

/// Integers to integers, by the exponent's bits. A negative exponent gives 0 but for the bases 1
/// and -1.
Tensor integer_power(const Tensor& x, const Tensor& exponent) {
  Tensor result = Tensor(1).cast(x.dtype()), square = x;
  const int bits = static_cast<int>(size_of(exponent.dtype())) * 8;
  for (int bit = 0; bit < bits; ++bit) {
    result = where(((exponent >> bit) & 1) != 0, result * square, result);
    square = square * square;
  }
  if (is_unsigned(exponent.dtype())) return result;
  const Tensor inverse = where(x == 1, 1, where(x == -1, where((exponent & 1) == 0, 1, -1), 0));
  return where(exponent < 0, inverse, result);
}

/// |x|^y = 2^(y log2|x|), then the cases that this does not cover. Where it does cover x or y of 0
/// or 1 they are left to it, for the sake of the gradients.
Tensor real_power(const Tensor& x, const Tensor& y) {
  const Tensor is_zero = x == 0.0;
  const Tensor safe = where(is_zero, 1.0, magnitude(x));
  const Tensor size = (y * safe.log2()).exp2();
  const Tensor whole = y.trunc() == y, odd = whole & ((y * 0.5).trunc() * 2.0 != y);
  const Tensor negative = where(whole, where(odd, -size, size), NAN);
  const Tensor at_zero = where(y < 0.0, INFINITY, where(y == 0.0, 1.0, where(y == 1.0, x, 0.0)));
  const Tensor general = where(is_zero, at_zero, where(x < 0.0, negative, size));
  const Tensor always_one = ((y == 0.0) & !x.isfinite()) | ((x == 1.0) & !y.isfinite());
  return where(always_one, 1.0, general);
}

/// The exponent when it is a literal: those are worth better code.
std::optional<double> literal_of(const Tensor& t) {
  Recorder r("pow");
  const Id node = r.use(t);
  if (!is_const(r.graph(), node)) return std::nullopt;
  return const_float(r.graph(), node);
}

}  // namespace

Tensor Tensor::pow(const Tensor& exponent) const {
  const std::optional<double> literal = literal_of(exponent);
  const bool real = is_float(dtype()) || is_float(exponent.dtype());
  if (literal && *literal == 0.5 && real) return sqrt();
  if (literal && std::trunc(*literal) == *literal && std::abs(*literal) <= 64 &&
      (real || *literal >= 0)) {
    const Tensor x = is_float(dtype()) || !real ? *this : cast(DType::F32);
    if (*literal == 0) return x.ones_like();
    const Tensor power = whole_power(x, static_cast<uint64_t>(std::abs(*literal)));
    return *literal < 0 ? power.reciprocal() : power;
  }
  if (!real) return integer_power(*this, exponent);
  Recorder r("pow");
  std::vector<Id> nodes = {r.use(*this), r.use(exponent)};
  r.match_dtypes(nodes, Takes::Floats);
  return real_power(r.done(nodes[0]), r.done(nodes[1]));
}

}  // namespace plugrad
