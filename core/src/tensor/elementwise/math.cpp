// Functions of real analysis, composed of exp, log, sin and sqrt. docs/accuracy.md has the errors.
// Polynomials are minimax ones (Remez) of relative errors below 2^-28 in f32 and 2^-60 in f64. Where a formula does not hold
// for x, it gets another argument, so that its gradient is not NaN.
#include <cmath>
#include <numbers>

#include "ir/user.h"
#include "plugrad/functional.h"
#include "tensor/compute_dtype.h"
#include "tensor/elementwise/compositions.h"
#include "tensor/record.h"

namespace plugrad {

using tensor::Recorder;

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

namespace {

/// An op on floats, in the compute dtype.
Tensor real_function(std::string_view name, Op op, const Tensor& of) {
  return in_compute_dtype(of, [&](const Tensor& x) {
    Recorder r(name);
    std::vector<Id> nodes = {r.use(x)};
    r.match_dtypes(nodes, tensor::Takes::Floats);
    return r.done(r.graph().unary(op, nodes[0]));
  });
}

/// x + x³ times a polynomial in x²: only the last sum rounds visibly. Adding 0 keeps x = -0.
Tensor odd_near_zero(const Tensor& x, std::initializer_list<double> f32,
                     std::initializer_list<double> f64) {
  const Tensor u = x * x;
  return x + x * (u * polynomial(u, x.dtype() == DType::F64 ? f64 : f32) + 0.0);
}

}  // namespace

Tensor Tensor::exp() const {
  return real_function("exp", Op::Exp, *this);
}
Tensor Tensor::log() const {
  return real_function("log", Op::Log, *this);
}
Tensor Tensor::log10() const {
  return in_compute_dtype(*this, [](const Tensor& x) { return x.log() * std::numbers::log10e; });
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

// x + x² times a polynomial for |x| < 1.1: beyond, e^x - 1 is at least e^x / 2. Adding 0 keeps x = -0.
Tensor Tensor::expm1() const {
  return in_compute_dtype(*this, [](const Tensor& x) {
    const Tensor small = (x < 1.1) & (x > -1.1), s = plugrad::where(small, x, 0.0);
    const Tensor q =
        x.dtype() == DType::F64
            ? polynomial(s, {4.2617952991918311e-14, 7.7753349606984036e-13, 1.1496028964222216e-11,
                             1.605672036228855e-10, 2.0876289637221507e-09, 2.505212979088443e-08,
                             2.7557323561640399e-07, 2.7557319118536072e-06, 2.4801587280171198e-05,
                             0.00019841269841536083, 0.0013888888888942911, 0.0083333333333330383,
                             0.041666666666666068, 0.16666666666666669, 0.5})
            : polynomial(s, {2.91569381e-06, 2.5649495e-05, 0.000198170033, 0.00138802617,
                             0.00833345298, 0.041666992, 0.166666657, 0.49999997});
    const Tensor e = x.exp();
    return with_slope(plugrad::where(small, s + s * (s * q + 0.0), e - 1.0), x, e);
  });
}

Tensor Tensor::cos() const {
  return real_function("cos", Op::Cos, *this);
}
Tensor Tensor::tan() const {
  return real_function("tan", Op::Tan, *this);
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

/// exp(a) / 2 for a >= 0. Close to the overflow of exp it is exp(a - shift) times half of exp(shift),
/// which is within 2^-27 of an f32 and 2^-55 of an f64. The derivative of this form would overflow,
/// so sinh and cosh are the explicit slopes of each other.
Tensor half_exp(const Tensor& a) {
  constexpr double kShift = 741.0 / 1024, kHalf = 1.0309550771180156;
  const Tensor large = a > (a.dtype() == DType::F64 ? 709.0 : 88.0);
  return where(large, a - kShift, a).exp() * where(large, a.full_like(kHalf), 0.5);
}

Tensor sinh_of(const Tensor& x) {
  const Tensor a = magnitude(x), small = a < 1.0, h = half_exp(a), y = h - 0.25 / h;
  const Tensor near_zero = odd_near_zero(
      where(small, x, 0.0), {2.81695429e-06, 0.000198361595, 0.0083333496, 0.166666672},
      {2.8482318858944174e-15, 7.6464829380173666e-13, 1.6059050600621883e-10,
       2.5052108346513972e-08, 2.7557319224126268e-06, 0.000198412698412696, 0.0083333333333333332,
       0.16666666666666666});
  return where(small, near_zero, where(x < 0.0, -y, y));
}

Tensor cosh_of(const Tensor& x) {
  const Tensor h = half_exp(magnitude(x));
  return h + 0.25 / h;
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

// 1 - 2 q / (1 + q) with q = exp(-2 |x|) loses digits near 0.
Tensor Tensor::tanh() const {
  return in_compute_dtype(*this, [](const Tensor& x) {
    const Tensor a = magnitude(x), small = a < 0.625, q = (a * -2.0).exp(), sum = q + 1.0;
    const Tensor t = 1.0 - q * 2.0 / sum;
    const Tensor near_zero = odd_near_zero(
        plugrad::where(small, x, 0.0),
        {0.00214300794, -0.00817745272, 0.0217007268, -0.053946767, 0.133332059, -0.333333313},
        {6.04248212374371e-06, -3.0187256260291806e-05, 9.1558452749016209e-05,
         -0.00023701175747372621, 0.00058945181067015834, -0.0014557259514483762,
         0.0035921140005400623, -0.0088632343126663782, 0.021869488468722938, -0.053968253966059296,
         0.13333333333329744, -0.33333333333333315});
    const Tensor r = sum.reciprocal();  // 1 - tanh² would lose digits near 1
    return with_slope(plugrad::where(small, near_zero, plugrad::where(x < 0.0, -t, t)), x,
                      q * 4.0 * r * r);
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

/// 1 - erf(y) of y >= 1. Cody 1969, "Rational Chebyshev approximations for the error function".
Tensor erfc_f64(const Tensor& y) {
  return (-y * y).exp() *
         polynomial(y, {2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0,
                        6.61191906371416295e1, 2.98635138197400131e2, 8.81952221241769090e2,
                        1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3}) /
         polynomial(y, {1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2,
                        1.62138957456669019e3, 3.29079923573345963e3, 4.36261909014324716e3,
                        3.43936767414372164e3, 1.23033935480374942e3});
}

/// The fourth power of a minimax polynomial, which costs less than an exponential; below 2^-25 at
/// the end of its interval.
Tensor erfc_f32(const Tensor& y) {
  const Tensor root =
      polynomial(y - 1.0, {-2.22287435e-05, -4.99321118e-07, 0.00139881193, -0.0056053889,
                           -0.00363081973, 0.0507648364, 0.00433441252, -0.415486336, 0.629769504});
  const Tensor square = root * root;
  return square * square;
}

/// x + x times a polynomial of erf(x) / x - 1 up to 1, and 1 - erfc(x) beyond.
Tensor erf_of(const Tensor& x) {
  const bool is_f64 = x.dtype() == DType::F64;
  const double end = is_f64 ? 6.0 : 3.9375;  // erf rounds to 1 beyond
  const Tensor a = magnitude(x), small = a < 1.0, s = where(small, x, 0.0), u = s * s;
  const Tensor ratio =
      is_f64
          ? polynomial(u, {5.9452833999693058e-11, -1.1365678629865829e-09, 1.4657883033705958e-08,
                           -1.6350025675897077e-07, 1.6460972856959221e-06, -1.4925593509159986e-05,
                           0.00012055331036984069, -0.00085483269787442896, 0.0052239776247809027,
                           -0.0268661706450729, 0.11283791670954857, -0.37612638903183748,
                           0.12837916709551259})
          : polynomial(u, {7.85388693e-05, -0.000801020418, 0.00518832915, -0.0268538129,
                           0.112835854, -0.37612626, 0.128379166});
  const Tensor y = where(a > end, end, a);
  const Tensor t = 1.0 - (is_f64 ? erfc_f64(y) : erfc_f32(y));
  return where(small, s + s * ratio, where(x < 0.0, -t, t));
}

}  // namespace

Tensor Tensor::erf() const {
  return in_compute_dtype(*this, [](const Tensor& x) {
    const Tensor slope = (-x * x).exp() * (2.0 * std::numbers::inv_sqrtpi);
    return with_slope(erf_of(x), x, slope);
  });
}

// A rational minimax approximation of the relative error. One division costs less than two
// polynomials. Beyond kLimit the nearest float to erf is 1; rounding may exceed 1, hence the clamp.
Tensor tensor::quick_erf(const Tensor& x) {
  if (x.dtype() == DType::F64) return x.erf();
  constexpr double kLimit = 3.925;
  const auto within = [](const Tensor& v, double limit) {
    const Tensor capped = plugrad::where(v > limit, limit, v);
    return plugrad::where(capped < -limit, -limit, capped);
  };
  const Tensor s = within(x, kLimit), u = s * s;
  const Tensor above =
      s * polynomial(u, {1.938195282491506e-06, 0.000270265358267352, 0.003586324630305171,
                         0.050164662301540375, 0.1812567263841629, 1.0726711750030518});
  const Tensor below =
      polynomial(u, {3.607041071518324e-05, 0.0011053892085328698, 0.014244752936065197,
                     0.10856720060110092, 0.4775107204914093, 0.9506301283836365});
  const Tensor slope = (-x * x).exp() * (2.0 * std::numbers::inv_sqrtpi);
  return with_slope(within(above / below, 1.0), x, slope);
}

}  // namespace plugrad
