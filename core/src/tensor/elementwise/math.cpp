// Functions of real analysis, composed of exp2, log2, sin and sqrt. Where a formula does not hold
// for x, it gets another argument, so that its gradient is not NaN.
#include <cmath>
#include <numbers>

#include "ir/user.h"
#include "plugrad/functional.h"
#include "tensor/compute_dtype.h"
#include "tensor/elementwise/compositions.h"
#include "tensor/record.h"

namespace plugrad {

using tensor::in_compute_dtype;
using tensor::magnitude;
using tensor::polynomial;
using tensor::with_slope;

namespace {

DType bits_dtype(DType real) {
  switch (size_of(real)) {
    case 1:
      return DType::I8;
    case 2:
      return DType::I16;
    case 4:
      return DType::I32;
    default:
      return DType::I64;
  }
}

}  // namespace

namespace tensor {

Tensor sign_bit(const Tensor& x) {
  return x.bitcast(bits_dtype(x.dtype())) < 0;
}

Tensor magnitude(const Tensor& x) {
  return where(x < 0.0, -x, x);
}

Tensor polynomial(const Tensor& x, std::initializer_list<double> coefficients) {
  Tensor sum = *coefficients.begin();
  for (const double* c = coefficients.begin() + 1; c != coefficients.end(); ++c) sum = sum * x + *c;
  return sum;
}

Tensor with_slope(const Tensor& value, const Tensor& x, const Tensor& slope) {
  Recorder r("with_slope");
  const Id from = r.use(x), to = r.use(value);
  if (r.graph()[from].op == Op::Const) return value;  // a literal has no final dtype yet
  return r.done(r.graph().add(Op::Function, r.dtype(to), {to, from, r.use(slope)},
                              function_arg(kSlopeCall, 0)));
}

Tensor constant_in(const Tensor& x, const Tensor& value) {
  return where(Tensor(false), x, value.detach());
}

}  // namespace tensor

Tensor Tensor::exp() const {
  return in_compute_dtype(*this, [](const Tensor& x) { return (x * std::numbers::log2e).exp2(); });
}
Tensor Tensor::log() const {
  return in_compute_dtype(*this, [](const Tensor& x) { return x.log2() * std::numbers::ln2; });
}
Tensor Tensor::log10() const {
  constexpr double scale = std::numbers::ln2 / std::numbers::ln10;
  return in_compute_dtype(*this, [](const Tensor& x) { return x.log2() * scale; });
}

// log(1 + x) plus a correction for the rounding of 1 + x, which is 0 at -1 and infinity. x itself
// where 1 + x is 1: the sum would turn -0 into 0.
Tensor Tensor::log1p() const {
  return in_compute_dtype(*this, [](const Tensor& x) {
    const Tensor u = 1.0 + x, usual = (u != 0.0) & (u < INFINITY);
    const Tensor lost = plugrad::where(usual, x - (u - 1.0), 0.0);
    const Tensor y = u.log() + lost / plugrad::where(usual, u, 1.0);
    return with_slope(plugrad::where(u == 1.0, x, y), x, u.reciprocal());
  });
}

// Series for |x| < 1/2, with as many terms as the dtype's precision needs.
Tensor Tensor::expm1() const {
  return in_compute_dtype(*this, [](const Tensor& x) {
    const Tensor small = (x < 0.5) & (x > -0.5), s = plugrad::where(small, x, 0.0);
    Tensor sum = 1.0;
    for (int n = x.dtype() == DType::F64 ? 15 : 8; n > 1; --n) sum = sum * s / n + 1.0;
    const Tensor e = x.exp();
    return with_slope(plugrad::where(small, s * sum, e - 1.0), x, e);
  });
}

// Uses half the angle, which is exact: pi/2 - x would lose the fraction digits of a large x.
Tensor Tensor::cos() const {
  return in_compute_dtype(*this,
                          [](const Tensor& x) { return 1.0 - (x * 0.5).sin().square() * 2.0; });
}
Tensor Tensor::tan() const {
  return in_compute_dtype(*this, [](const Tensor& x) { return x.sin() / x.cos(); });
}

namespace {

/// atan on [-1, 1]: twice the atan of the half angle's tangent, which is in ±0.4143.
Tensor atan_of_unit(const Tensor& x) {
  const Tensor t = x / ((x * x + 1.0).sqrt() + 1.0), u = t * t;
  if (x.dtype() != DType::F64)
    return t *
           polynomial(u, {-0.060263052276584591, 0.10569828806414448, -0.14239532669648975,
                          0.19998183041083206, -0.33333306893048513, 1.0}) *
           2.0;
  return t *
         polynomial(u, {0.015113765096600925, -0.033387824501211952, 0.04499500728984032,
                        -0.05217312574061591, 0.058768340046141607, -0.066662052599765262,
                        0.076922810999377433, -0.09090908059031191, 0.11111111085322109,
                        -0.14285714285329708, 0.19999999999997014, -0.33333333333333324, 1.0}) *
         2.0;
}

}  // namespace

Tensor Tensor::atan() const {
  return in_compute_dtype(*this, [](const Tensor& x) {
    const Tensor large = (x > 1.0) | (x < -1.0);
    const Tensor inverse = plugrad::where(large, x, 1.0).reciprocal();
    const Tensor a = atan_of_unit(plugrad::where(large, inverse, x));
    const Tensor right = x.full_like(std::numbers::pi / 2);
    const Tensor quarter = plugrad::where(x < 0.0, -right, right);
    const Tensor angle = plugrad::where(large, quarter - a, a);
    return with_slope(angle, x, (x * x + 1.0).reciprocal());
  });
}

Tensor Tensor::asin() const {
  return in_compute_dtype(*this, [](const Tensor& x) {
    return atan_of_unit(x / ((1.0 - x).sqrt() * (x + 1.0).sqrt() + 1.0)) * 2.0;
  });
}

Tensor Tensor::acos() const {
  return in_compute_dtype(*this, [](const Tensor& x) {
    const Tensor a = magnitude(x);
    const Tensor angle = atan_of_unit((1.0 - a).sqrt() / (a + 1.0).sqrt()) * 2.0;
    return plugrad::where(x < 0.0, std::numbers::pi - angle, angle);
  });
}

namespace {

// Small x: no cancellation. Large x: exp(x / 2), which does not overflow before the result does.
// The derivative of this form would overflow, so each function is the explicit slope of the other.
Tensor sinh_of(const Tensor& x) {
  const Tensor a = magnitude(x), small = a < 20.0;
  const Tensor e = where(small, a, 0.0).expm1(), h = (a * 0.5).exp();
  const Tensor y = where(small, (e + e / (e + 1.0)) * 0.5, h * 0.5 * h);
  return where(x < 0.0, -y, y);
}

Tensor cosh_of(const Tensor& x) {
  const Tensor h = (magnitude(x) * 0.5).exp(), inverse = h.reciprocal();
  return h * 0.5 * h + inverse * 0.5 * inverse;
}

}  // namespace

Tensor Tensor::sinh() const {
  return in_compute_dtype(*this, [](const Tensor& x) {
    return with_slope(sinh_of(x), x, with_slope(cosh_of(x), x, sinh_of(x)));
  });
}

Tensor Tensor::cosh() const {
  return in_compute_dtype(*this, [](const Tensor& x) {
    return with_slope(cosh_of(x), x, with_slope(sinh_of(x), x, cosh_of(x)));
  });
}

Tensor Tensor::tanh() const {
  return in_compute_dtype(*this, [](const Tensor& x) {
    const Tensor y = magnitude(x) * -2.0, e = y.expm1(), t = e / (e + 2.0);
    const Tensor q = y.exp(), r = (q + 1.0).reciprocal();  // 1 - t² would lose digits near 1
    return with_slope(plugrad::where(x < 0.0, t, -t), x, q * 4.0 * r * r);
  });
}

// Above 1e8, f64 rounds x² + 1 to x² (1e16 > 2^53), and asinh(x) is log(2x).
Tensor Tensor::asinh() const {
  return in_compute_dtype(*this, [](const Tensor& x) {
    const Tensor a = magnitude(x), large = a > 1e8, s = plugrad::where(large, 1.0, a);
    const Tensor small = (s * (s / ((s * s + 1.0).sqrt() + 1.0) + 1.0)).log1p();  // keeps -0
    const Tensor big = plugrad::where(large, a, 1.0).log() + std::numbers::ln2;
    const Tensor y = plugrad::where(large, big, small);
    return plugrad::where(x < 0.0, -y, y);
  });
}

Tensor Tensor::acosh() const {
  return in_compute_dtype(*this, [](const Tensor& x) {
    const Tensor large = x > 1e8, t = plugrad::where(large, 2.0, x) - 1.0;
    const Tensor small = (t + t.sqrt() * (t + 2.0).sqrt()).log1p();
    return plugrad::where(large, plugrad::where(large, x, 1.0).log() + std::numbers::ln2, small);
  });
}

Tensor Tensor::atanh() const {
  return in_compute_dtype(*this, [](const Tensor& x) { return (x.log1p() - (-x).log1p()) * 0.5; });
}

namespace {

// Cody 1969, "Rational Chebyshev approximations for the error function".
Tensor erf_f64(const Tensor& x) {
  const Tensor a = magnitude(x), small = a <= 0.46875;
  const Tensor s = where(small, x, 0.0), u = s * s;
  const Tensor near_zero =
      s *
      polynomial(u, {1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2,
                     3.77485237685302021e2, 3.20937758913846947e3}) /
      polynomial(u, {1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3,
                     2.84423683343917062e3});
  const Tensor y = where(a > 6.0, 6.0, a);  // erf rounds to 1 beyond 6
  const Tensor tail =
      (-y * y).exp() *
      polynomial(y, {2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0,
                     6.61191906371416295e1, 2.98635138197400131e2, 8.81952221241769090e2,
                     1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3}) /
      polynomial(y, {1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2,
                     1.62138957456669019e3, 3.29079923573345963e3, 4.36261909014324716e3,
                     3.43936767414372164e3, 1.23033935480374942e3});
  return where(small, near_zero, where(x < 0.0, tail - 1.0, 1.0 - tail));
}

// A rational minimax approximation of the relative error, within 5 units in the last place (every
// 211th float, with and without fused multiply-adds). One division costs less than an exponential
// and two polynomials. Beyond kLimit the nearest float to erf is 1; rounding may exceed 1, hence
// the clamp.
Tensor erf_f32(const Tensor& x) {
  constexpr double kLimit = 3.925;
  const auto within = [](const Tensor& v, double limit) {
    const Tensor capped = where(v > limit, limit, v);
    return where(capped < -limit, -limit, capped);
  };
  const Tensor s = within(x, kLimit), u = s * s;
  const Tensor above =
      s * polynomial(u, {1.938195282491506e-06, 0.000270265358267352, 0.003586324630305171,
                         0.050164662301540375, 0.1812567263841629, 1.0726711750030518});
  const Tensor below =
      polynomial(u, {3.607041071518324e-05, 0.0011053892085328698, 0.014244752936065197,
                     0.10856720060110092, 0.4775107204914093, 0.9506301283836365});
  return within(above / below, 1.0);
}

}  // namespace

Tensor Tensor::erf() const {
  return in_compute_dtype(*this, [](const Tensor& x) {
    const Tensor slope = (-x * x).exp() * (2.0 * std::numbers::inv_sqrtpi);
    return with_slope(x.dtype() == DType::F64 ? erf_f64(x) : erf_f32(x), x, slope);
  });
}

}  // namespace plugrad
