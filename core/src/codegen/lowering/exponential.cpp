// Exponentials, logarithms and powers of ops that devices claim: polynomials after argument
// reduction, or the device's exp2 and log2. docs/accuracy.md has the measured errors.
//   before   exp f32 %x            after   2^n * p(r) with x = n log 2 + r
// Products whose rounding matters have factors of half the digits and are exact, so fusing
// multiply-adds changes nothing. Sources: Muller, Elementary Functions (2016), chapters 4, 5 and 11;
// Dekker, A floating-point technique for extending the available precision (1971).
#include <cmath>
#include <limits>
#include <numbers>

#include "codegen/lowering/float_math.h"
#include "codegen/lowering/lowering.h"

namespace plugrad::codegen {
namespace {
using namespace rules;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A constant in two parts. Products of `high` with an integer exponent (ln2) or a masked number
// (the scale of a power) are exact.
struct TwoParts {
  double high, low;
};
TwoParts ln2_of(const Math& m) {
  return m.wide() ? TwoParts{0x1.62e42fefa3800p-1, 0x1.ef35793c76730p-45}
                  : TwoParts{0x1.62e4p-1, 0x1.7f7d1cf79abcap-20};
}

// 2^f for f from -1/2 to 1/2, highest power first. f64: the Taylor series. f32: the degree-6
// polynomial with the least maximum relative error (2e-9, by Lawson's iteration) among those with
// 2^0 = 1.
Id two_to_fraction(Math& m, Id f) {
  if (!m.wide()) {
    constexpr double least[] = {1.5353362e-4, 1.3398874e-3, 9.6184369e-3, 5.5503324e-2,
                                0.24022648,   0.69314718,   1.0};
    return m.polynomial(f, least);
  }
  double series[14];
  double coefficient = 1;
  for (int k = 0; k < 14; ++k, coefficient *= std::log(2.0) / k) series[13 - k] = coefficient;
  return m.polynomial(f, series);
}

// e^r for |r| up to log(2) / 2: 1 + r + r² q with minimax polynomials q by Remez's algorithm, for
// relative errors of 3e-9 and 4e-18 of the whole.
Id e_to_rest(Math& m, Id r) {
  constexpr double least32[] = {0.00138144498, 0.00836871471, 0.041668389, 0.166665211,
                                0.49999994,    1.0,           1.0};
  constexpr double least64[] = {2.500003805446276e-08,
                                2.7630260309521209e-07,
                                2.7557586794586197e-06,
                                2.4801493073650569e-05,
                                0.00019841269505627894,
                                0.0013888888943640731,
                                0.0083333333334951812,
                                0.041666666666530218,
                                0.1666666666666641,
                                0.50000000000000111,
                                1.0,
                                1.0};
  return m.wide() ? m.polynomial(r, least64) : m.polynomial(r, least32);
}

// The integer n nearest to a float, and a sum whose lowest bits are n + 2 * bias.
Nearest exponent_near(Math& m, Id x) {
  return m.nearest(x, 2 * m.bias);
}

// power * 2^n by two factors, so that subnormal results round once. NaN stays NaN.
Id times_power_of_two(Math& m, Id power, const Nearest& n) {
  Graph& g = m.g;
  const Id bits = m.bits(n.sum), half = g.binary(Op::Shr, bits, m.i(1)), other = m.sub(bits, half);
  const auto factor = [&](Id exponent) {
    return m.value(g.binary(Op::Shl, exponent, m.i(m.mantissa_bits)));
  };
  return m.mul(m.mul(power, factor(other)), factor(half));
}

// Exponents of two beyond which a power overflows, and below which it is 0.
double highest_exponent(const Math& m) {
  return m.bias + 2;
}
double lowest_exponent(const Math& m) {
  return -(m.bias + m.mantissa_bits + 1);
}

// As one maximum and one minimum; NaN stays NaN.
Id at_least(Math& m, Id x, double least) {
  return m.g.where(m.less(x, m.c(least)), m.c(least), x);
}
Id within(Math& m, Id x, double least, double most) {
  const Id low = at_least(m, x, least);
  return m.g.where(m.less(m.c(most), low), m.c(most), low);
}
// `result` for x below `limit`, and infinity above; NaN stays NaN.
Id below_limit(Math& m, Id x, double limit, Id result) {
  return m.g.where(m.less(x, m.c(limit)), result, m.add(x, m.c(kInfinity)));
}

// 2^x = 2^n * 2^f with n the nearest integer.
Id make_exp2(Graph& g, Id x) {
  Math m(g, g[x].dtype);
  const Id safe = within(m, x, lowest_exponent(m), highest_exponent(m));
  const Nearest n = exponent_near(m, safe);
  return times_power_of_two(m, two_to_fraction(m, m.sub(safe, n.whole)), n);
}

// The sign of a branch of where(y < 0, x, z): y and -y have a known one in each.
int sign_of_branch(const Graph& g, Id branch, Id y, bool is_negative) {
  if (branch == y) return is_negative ? -1 : 1;
  return g[branch].op == Op::Neg && g[branch].src[0] == y ? (is_negative ? 1 : -1) : 0;
}

// 1 for what is never negative by its form, as |y|; -1 for what is never positive, as -y * y. Both
// may be NaN.
int sign_of(const Graph& g, Id id, int depth = 4) {
  const Node& n = g[id];
  if (is_const(g, id)) return const_float(g, id) >= 0 ? 1 : -1;
  if (depth == 0) return 0;
  const Id* src = n.src;
  if (n.op == Op::Neg) return -sign_of(g, src[0], depth - 1);
  if (n.op == Op::Mul) {
    if (src[0] == src[1]) return 1;
    for (int i : {0, 1})
      if (g[src[i]].op == Op::Neg && g[src[i]].src[0] == src[1 - i]) return -1;
    return sign_of(g, src[0], depth - 1) * sign_of(g, src[1], depth - 1);
  }
  if (n.op != Op::Where || g[src[0]].op != Op::CmpLt) return 0;
  const Id y = g[src[0]].src[0], zero = g[src[0]].src[1];
  if (!is_const(g, zero) || const_float(g, zero) != 0) return 0;
  const int low = sign_of_branch(g, src[1], y, true), high = sign_of_branch(g, src[2], y, false);
  return low == high ? low : 0;
}

// e^x = 2^n * e^r with n the integer nearest to x log2(e), and x = n log(2) + r.
Id exp_by_polynomial(Math& m, Id x) {
  const TwoParts ln2 = ln2_of(m);
  const bool is_below_1 = sign_of(m.g, x) < 0;
  const double least = lowest_exponent(m) * std::numbers::ln2;
  const Id safe = is_below_1 ? at_least(m, x, least)
                             : within(m, x, least, highest_exponent(m) * std::numbers::ln2);
  const int shift = m.mantissa_bits + 1;
  const Nearest n =
      m.nearest(m.mul(safe, m.c(std::numbers::log2e)), is_below_1 ? m.bias + shift : 2 * m.bias);
  const Id exact = m.sub(safe, m.mul(n.whole, m.c(ln2.high)));
  const Id power = e_to_rest(m, m.sub(exact, m.mul(n.whole, m.c(ln2.low))));
  if (!is_below_1) return times_power_of_two(m, power, n);
  // n is at most 0: 2^(n + shift) is a normal number, or 0 where the result is.
  const Id factor = m.value(m.g.binary(Op::Shl, m.bits(n.sum), m.i(m.mantissa_bits)));
  return m.mul(m.mul(power, factor), m.c(std::ldexp(1.0, -shift)));
}

// e^x = 2^t * e^d with the device's exp2, and t so few digits of x log2(e) that t times each part
// of log(2) is exact. Positive t are reduced by 1, as 2^t overflows before e^x.
Id exp_by_exp2(Math& m, Id x) {
  constexpr double ln2_32[] = {0x1.62p-1, 0x1.c8p-10, 0x1.7f7d1cf79abcap-20},
                   ln2_64[] = {0x1.62e428p-1, 0x1.fbe8ep-23, 0x1.ef35793c76730p-45};
  Graph& g = m.g;
  const double limit = highest_exponent(m) * std::numbers::ln2;
  const Id safe = within(m, x, lowest_exponent(m) * std::numbers::ln2, limit);
  const Id magic = m.c(std::ldexp(1.5, m.mantissa_bits - (m.wide() ? 20 : 8)));
  const Id t = m.sub(m.add(m.mul(safe, m.c(std::numbers::log2e)), magic), magic);
  Id d = safe;
  for (double part : m.wide() ? ln2_64 : ln2_32) d = m.sub(d, m.mul(t, m.c(part)));
  const Id positive = m.less(m.c(0.0), t), one = m.c(1.0);
  const Id power = g.unary(Op::Exp2, m.sub(t, g.where(positive, one, m.c(0.0))));
  const Id growth = m.add(d, m.mul(m.mul(d, d), m.c(0.5)));
  const Id result = m.mul(m.add(power, m.mul(power, growth)), g.where(positive, m.c(2.0), one));
  return below_limit(m, x, limit, result);
}

// x = 2^exponent * mantissa with a mantissa in [sqrt(1/2), sqrt(2)). Subnormal numbers are scaled
// up first.
struct Scientific {
  Id exponent, mantissa;
};
Scientific scientific(Math& m, Id x) {
  Graph& g = m.g;
  const Id tiny = m.less(x, m.c(std::ldexp(1.0, 1 - m.bias)));
  const Id bits = m.bits(g.where(tiny, m.mul(x, m.c(std::ldexp(1.0, m.mantissa_bits))), x));
  // This offset puts the step between exponents at sqrt(1/2) instead of 1.
  const int64_t one = int64_t{m.bias} << m.mantissa_bits;
  const int64_t root_half = m.wide() ? 0x3fe6a09e667f3bcdll : 0x3f3504f3;
  const Id shifted = m.add(bits, m.i(one - root_half));
  const Id fraction = g.binary(Op::And, shifted, m.i((int64_t{1} << m.mantissa_bits) - 1));
  const Id offset = g.where(tiny, m.i(-m.bias - m.mantissa_bits), m.i(-m.bias));
  const Id exponent = m.add(g.binary(Op::Shr, shifted, m.i(m.mantissa_bits)), offset);
  return {g.cast(exponent, m.real), m.value(m.add(fraction, m.i(root_half)))};
}

// scale / (2 k + 1) for k from `last` down to `first`: coefficients of artanh(s) / s in s².
Id artanh_series(Math& m, Id square, double scale, int first, int last) {
  double series[16];
  size_t count = 0;
  for (int k = last; k >= first; --k) series[count++] = scale / (2 * k + 1);
  return m.polynomial(square, std::span(series, count));
}

// log(1 + f) = 2 artanh(s) = f - s (f - R) with s = f / (f + 2), whose first term is exact; R is
// the series from s² on. Returns s (f - R).
Id log_correction(Math& m, Id mantissa, Id f) {
  const Id s = m.g.binary(Op::FDiv, f, m.add(mantissa, m.c(1.0))), s2 = m.mul(s, s);
  return m.mul(s, m.sub(f, m.mul(s2, artanh_series(m, s2, 2, 1, m.wide() ? 10 : 4))));
}

// Edges of the logarithms: infinity, NaN and 0 are their own cases.
Id with_log_edges(Math& m, Id x, Id value) {
  Graph& g = m.g;
  const Id is_zero = g.binary(Op::CmpEq, x, m.c(0.0));
  const Id not_positive =
      g.where(is_zero, m.c(-kInfinity), m.c(std::numeric_limits<double>::quiet_NaN()));
  const Id positive = g.where(m.less(x, m.c(kInfinity)), value, x);
  return g.where(m.less(m.c(0.0), x), positive, not_positive);
}

Id make_log2(Graph& g, Id x) {
  Math m(g, g[x].dtype);
  const Scientific parts = scientific(m, x);
  const Id f = m.sub(parts.mantissa, m.c(1.0));
  const Id log_mantissa = m.sub(f, log_correction(m, parts.mantissa, f));
  return with_log_edges(m, x, m.add(parts.exponent, m.mul(log_mantissa, m.c(std::numbers::log2e))));
}

Id log_by_series(Math& m, Id x) {
  const TwoParts ln2 = ln2_of(m);
  const Scientific parts = scientific(m, x);
  const Id f = m.sub(parts.mantissa, m.c(1.0));
  const Id correction =
      m.sub(log_correction(m, parts.mantissa, f), m.mul(parts.exponent, m.c(ln2.low)));
  return with_log_edges(m, x, m.add(m.mul(parts.exponent, m.c(ln2.high)), m.sub(f, correction)));
}

// A number as a sum. `high` has half of the digits.
struct Sum {
  Id high, low;
};

// log2 of a positive number with some 1.4 times the digits: 2/3 s (3 + s² + r), all products of
// which are sums of exact ones and small ones.
Sum log2_in_two_parts(Math& m, Id x) {
  const TwoParts scale = m.wide() ? TwoParts{0x1.ec709d8p-1, 0x1.0e80ff5d27f05p-27}
                                  : TwoParts{0x1.ec6p-1, 0x1.09dc3a03fd74ap-13};  // 2 / (3 log 2)
  const auto [exponent, mantissa] = scientific(m, x);
  const Id f = m.sub(mantissa, m.c(1.0)), divisor = m.add(mantissa, m.c(1.0));
  // s and its rest need not be correctly rounded: one division serves both.
  const Id inverse = m.g.binary(Op::FDiv, m.c(1.0), divisor), s = m.mul(f, inverse);
  const Id s_high = m.high(s), divisor_high = m.high(divisor);
  const Id divisor_low = m.sub(mantissa, m.sub(divisor_high, m.c(1.0)));
  const Id rest = m.sub(m.sub(f, m.mul(s_high, divisor_high)), m.mul(s_high, divisor_low));
  const Id s_low = m.mul(rest, inverse);

  const Id square = m.mul(s, s), square_high = m.mul(s_high, s_high);
  const Id series = m.mul(m.mul(square, square), artanh_series(m, square, 3, 2, m.wide() ? 12 : 5));
  const Id r = m.add(series, m.mul(s_low, m.add(s_high, s)));
  const Id t_high = m.high(m.add(m.add(m.c(3.0), square_high), r));
  const Id t_low = m.sub(r, m.sub(m.sub(t_high, m.c(3.0)), square_high));

  const Id u = m.mul(s_high, t_high), v = m.add(m.mul(s_low, t_high), m.mul(t_low, s));
  const Id p_high = m.high(m.add(u, v)), p_low = m.sub(v, m.sub(p_high, u));
  const Id z_high = m.mul(p_high, m.c(scale.high));
  const Id z_low = m.add(m.mul(p_high, m.c(scale.low)), m.mul(p_low, m.c(scale.high + scale.low)));
  const Id high = m.high(m.add(exponent, m.add(z_high, z_low)));
  return {high, m.sub(z_low, m.sub(m.sub(high, exponent), z_high))};
}

// x^y = 2^(y log2 x) with the product in two parts.
Id pow_by_series(Math& m, Id x, Id y) {
  Graph& g = m.g;
  const Sum log2 = log2_in_two_parts(m, x);
  const Id magnitude = m.mul(y, with_log_edges(m, x, log2.high));
  const double highest = highest_exponent(m);
  const Id is_small = m.less(magnitude, m.c(highest));
  const Id is_large = m.less(m.c(lowest_exponent(m) - 1), magnitude);
  const Id safe = g.where(is_small, g.where(is_large, y, m.c(0.0)), m.c(0.0));
  const Id y_high = m.high(safe), y_low = m.sub(safe, y_high);
  const Id high = m.mul(y_high, log2.high);
  const Id low = m.add(m.mul(y_low, log2.high), m.mul(safe, log2.low));
  const Nearest n = exponent_near(m, m.add(high, low));
  const Id power = two_to_fraction(m, m.add(m.sub(high, n.whole), low));
  const Id result = g.where(is_large, times_power_of_two(m, power, n), m.c(0.0));
  return below_limit(m, magnitude, highest, result);
}

Id make_exp(Graph& g, const Match& match) {
  Math m(g, g[match.root].dtype);
  const bool is_claimed = match.context<Lowering>().has(Op::Exp2, m.real);
  return is_claimed ? exp_by_exp2(m, match[x]) : exp_by_polynomial(m, match[x]);
}

Id make_log(Graph& g, const Match& match) {
  Math m(g, g[match.root].dtype);
  const Lowering& device = match.context<Lowering>();
  if (has_words(device, m.real) || !device.has(Op::Log2, m.real)) return log_by_series(m, match[x]);
  return m.mul(g.unary(Op::Log2, match[x]), m.c(std::numbers::ln2));
}

Id make_pow(Graph& g, const Match& match) {
  Math m(g, g[match.root].dtype);
  const Lowering& device = match.context<Lowering>();
  if (has_words(device, m.real) || !device.has(Op::Exp2, m.real) || !device.has(Op::Log2, m.real))
    return pow_by_series(m, match[x], match[y]);
  return g.unary(Op::Exp2, m.mul(match[y], g.unary(Op::Log2, match[x])));
}

// clang-format off
constexpr Rule kExponential[] = {
    rule("exp2-by-polynomial", of_class(exp2(x), kRealClass), code_of_x<make_exp2>,
         when(check<lacks_op_beside_add>)),
    rule("log2-by-series", of_class(log2(x), kRealClass), code_of_x<make_log2>,
         when(check<lacks_op_beside_add>)),
    rule("exp-in-two-parts", of_class(exp(x), kRealClass), code<make_exp>,
         when(check<lacks_op_beside_add>)),
    rule("log-in-two-parts", of_class(log(x), kRealClass), code<make_log>,
         when(check<lacks_op_beside_add>)),
    rule("pow-in-two-parts", of_class(pow(x, y), kRealClass), code<make_pow>,
         when(check<lacks_op_beside_add>)),
};
// clang-format on

}  // namespace

std::span<const Rule> exponential_rules() {
  return kExponential;
}

}  // namespace plugrad::codegen
