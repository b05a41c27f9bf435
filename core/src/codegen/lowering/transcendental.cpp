// Polynomials after argument reduction. Errors measured against correctly rounded values are in
// docs/accuracy.md. Source of the methods: Muller, Elementary Functions (2016), chapters 5 and 11.
#include "codegen/lowering/transcendental.h"

#include <cmath>
#include <limits>

#include "codegen/lowering/float_math.h"
#include "codegen/lowering/lowering.h"

namespace plugrad::codegen {
namespace {
using namespace rules;

// 2^f for |f| <= 1/2, highest power first. f64: the Taylor series. f32: the polynomial of degree 6
// whose largest relative error is least (2e-9, by Lawson's iteration) among those that give 2^0
// = 1.
Id two_to_fraction(Math& m, Id f) {
  if (m.real != DType::F64) {
    constexpr double least[] = {1.5353362e-4, 1.3398874e-3, 9.6184369e-3, 5.5503324e-2,
                                0.24022648,   0.69314718,   1.0};
    return m.polynomial(f, least);
  }
  double series[14];
  double coefficient = 1;
  for (int k = 0; k < 14; ++k, coefficient *= std::log(2.0) / k) series[13 - k] = coefficient;
  return m.polynomial(f, series);
}

// 2^x = 2^n * 2^f with n the nearest integer. The sum of x and 1.5 * 2^mantissa_bits has n in its
// lowest bits. 2^n is applied as two powers, so that results below the smallest normal number round
// once: 2^(n - n1) is added to the exponent of 2^f, which stays normal, and 2^n1, n1 = floor(n /
// 2), is a factor. Below the lowest x the result is 0. From the highest on it is infinity, and NaN
// stays NaN: there the exponent would be added to bits that are none of a power.
Id make_exp2(Graph& g, Id x) {
  Math m(g, g[x].dtype);
  const double highest = m.bias + 2, lowest = -(m.bias + m.mantissa_bits + 1);
  const Id safe = g.where(m.less(x, m.c(lowest)), m.c(lowest), x);
  const Id magic = m.c(std::ldexp(1.5, m.mantissa_bits)), rounded = m.add(safe, magic);
  const Id bits = g.add(Op::Bitcast, m.integer, {rounded});
  const Id power = two_to_fraction(m, m.sub(safe, m.sub(rounded, magic)));
  const int64_t exponents = -(int64_t{1} << m.mantissa_bits);  // and the sign
  const Id first =
      g.binary(Op::And, g.binary(Op::Shl, bits, m.i(m.mantissa_bits - 1)), m.i(exponents));
  const Id second = m.sub(g.binary(Op::Shl, bits, m.i(m.mantissa_bits)), first);
  const Id raised = m.add(g.add(Op::Bitcast, m.integer, {power}), second);
  const Id factor = m.add(first, m.i(int64_t{m.bias} << m.mantissa_bits));
  const Id result =
      m.mul(g.add(Op::Bitcast, m.real, {raised}), g.add(Op::Bitcast, m.real, {factor}));
  const Id infinity = m.c(std::numeric_limits<double>::infinity());
  return g.where(m.less(x, m.c(highest)), result, m.add(x, infinity));
}

// log2 x = e + log2 m with x = 2^e * m and m in [sqrt(1/2), sqrt(2)); log2 m from s = (m-1)/(m+1)
// by the series of artanh. Numbers below the smallest normal one are scaled up first.
Id make_log2(Graph& g, Id x) {
  Math m(g, g[x].dtype);
  const bool wide = m.real == DType::F64;
  const double smallest_normal = std::ldexp(1.0, 1 - m.bias);
  const Id tiny = m.less(x, m.c(smallest_normal));
  const Id scaled = g.where(tiny, m.mul(x, m.c(std::ldexp(1.0, m.mantissa_bits))), x);
  const Id bits = g.add(Op::Bitcast, m.integer, {scaled});
  // Adding this puts the step between exponents at sqrt(1/2) instead of 1.
  const int64_t one = int64_t{m.bias} << m.mantissa_bits;
  const int64_t root_half = wide ? 0x3fe6a09e667f3bcdll : 0x3f3504f3;
  const Id shifted = m.add(bits, m.i(one - root_half));
  const Id exponent = m.sub(g.binary(Op::Shr, shifted, m.i(m.mantissa_bits)), m.i(m.bias));
  const Id mantissa_bits = m.sub(bits, g.binary(Op::Shl, exponent, m.i(m.mantissa_bits)));
  const Id mantissa = g.add(Op::Bitcast, m.real, {mantissa_bits});
  const Id s = g.binary(Op::FDiv, m.sub(mantissa, m.c(1.0)), m.add(mantissa, m.c(1.0)));
  const Id s2 = m.mul(s, s);
  double series[16];
  const int terms = wide ? 11 : 5;  // of s^(2k+1) * 2 / ((2k+1) ln 2)
  for (int k = 0; k < terms; ++k) series[terms - 1 - k] = 2 / ((2 * k + 1) * std::log(2.0));
  const Id log_mantissa = m.mul(s, m.polynomial(s2, std::span(series, static_cast<size_t>(terms))));
  const Id offset = g.where(tiny, m.c(-m.mantissa_bits), m.c(0.0));
  const Id sum = m.add(m.add(g.cast(exponent, m.real), offset), log_mantissa);
  const Id infinity = m.c(std::numeric_limits<double>::infinity());
  const Id positive = g.where(g.binary(Op::CmpEq, x, infinity), x, sum);
  const Id at_zero = g.where(g.binary(Op::CmpEq, x, m.c(0.0)),
                             m.c(-std::numeric_limits<double>::infinity()), positive);
  const Id negative =
      g.where(m.less(x, m.c(0.0)), m.c(std::numeric_limits<double>::quiet_NaN()), at_zero);
  return g.where(g.binary(Op::CmpNe, x, x), x, negative);
}

// Numbers of 2^mantissa_bits and more have no fraction; smaller ones fit the integer of the same
// size.
Id make_trunc(Graph& g, Id x) {
  Math m(g, g[x].dtype);
  const Id magnitude = g.where(m.less(x, m.c(0.0)), m.sub(m.c(0.0), x), x);
  const Id small = m.less(magnitude, m.c(std::ldexp(1.0, m.mantissa_bits)));
  const Id whole = g.cast(g.cast(g.where(small, x, m.c(0.0)), m.integer), m.real);
  // The integer has no -0: the sign comes from x.
  const Id sign_bit = g.binary(Op::Shl, m.i(1), m.i(m.mantissa_bits == 52 ? 63 : 31));
  const Id sign = g.binary(Op::And, g.add(Op::Bitcast, m.integer, {x}), sign_bit);
  const Id bits = g.binary(Op::Or, g.add(Op::Bitcast, m.integer, {whole}), sign);
  return g.where(small, g.add(Op::Bitcast, m.real, {bits}), x);
}

// clang-format off
constexpr Rule kTranscendental[] = {
    rule("exp2-by-polynomial", of_class(exp2(x), kRealClass), code_of_x<make_exp2>,
         when(check<lacks_op_beside_add>)),
    rule("log2-by-series", of_class(log2(x), kRealClass), code_of_x<make_log2>,
         when(check<lacks_op_beside_add>)),
    rule("sin-by-series", of_class(sin(x), kRealClass), code_of_x<make_sin>,
         when(check<lacks_op_beside_add>)),
    rule("trunc-by-cast", of_class(trunc(x), kRealClass), code_of_x<make_trunc>,
         when(check<lacks_op_beside_add>)),
};
// clang-format on
}  // namespace

std::span<const Rule> transcendental_rules() {
  return kTranscendental;
}

}  // namespace plugrad::codegen
