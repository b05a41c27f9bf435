// exp2, log2, sin and trunc for devices that do not claim them: polynomials after argument
// reduction. docs/accuracy.md has the measured errors. Source: Muller, Elementary Functions (2016),
// chapters 5 and 11.
// sin x = +-sin r or +-cos r with x = q * pi/2 + r and r from -pi/4 to pi/4. Small x are reduced by
// Cody and Waite's method: pi/2 in parts whose products with q are exact. Beyond 2^10 (f32) and
// 2^20 (f64) by Payne and Hanek's: the relevant bits of 2/pi times the mantissa of x, in integers.
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "codegen/lowering/float_math.h"
#include "codegen/lowering/lowering.h"

namespace plugrad::codegen {
namespace {

struct Reduced {
  Id quadrant;  // integer of the dtype's size; only its two low bits count
  Id rest;
};

// 40 zero bits, then the first 1176 fractional bits of 2/pi, in words of 32.
constexpr std::array<uint32_t, 38> kTwoOverPi = {
    0x00000000, 0x00a2f983, 0x6e4e4415, 0x29fc2757, 0xd1f534dd, 0xc0db6295, 0x993c4390, 0x41fe5163,
    0xabdebbc5, 0x61b7246e, 0x3a424dd2, 0xe006492e, 0xea09d192, 0x1cfe1deb, 0x1cb129a7, 0x3ee88235,
    0xf52ebb44, 0x84e99c70, 0x26b45f7e, 0x413991d6, 0x39835339, 0xf49c845f, 0x8bbdf928, 0x3b1ff897,
    0xffde0598, 0x0fef2f11, 0x8b5a0a6d, 0x1f6d367e, 0xcf27cb09, 0xb74f463f, 0x669e5fea, 0x2d7527ba,
    0xc7ebe5f1, 0x7b3d0739, 0xf78a5292, 0xea6bfb5f, 0xb11f8d5d, 0x08560330};

// Parts of pi/2 short enough that their products with q are exact, except the last.
constexpr std::array<double, 4> kHalfPi32 = {0x1.9210000000000p+0, 0x1.f6a0000000000p-13,
                                             0x1.1100000000000p-26, 0x1.68c2340000000p-39};
constexpr std::array<double, 4> kHalfPi64 = {0x1.921fb54400000p+0, 0x1.0b4611a600000p-34,
                                             0x1.3198a2e000000p-69, 0x1.b839a252049c1p-104};

Reduced reduce_near(Math& m, Id x) {
  Graph& g = m.g;
  const Id scaled = m.mul(x, m.c(2 / M_PI));
  const Id half = g.where(m.less(x, m.c(0.0)), m.c(-0.5), m.c(0.5));
  const Id q = g.unary(Op::Trunc, m.add(scaled, half));
  Id rest = x;
  for (double part : m.real == DType::F64 ? kHalfPi64 : kHalfPi32)
    rest = m.sub(rest, m.mul(q, m.c(part)));
  return {g.cast(q, m.integer), rest};
}

constexpr int64_t kWords32 = 8;  // the words that an f32 exponent reaches

// Word `index` (a node) of 2/pi.
Id table_word(Graph& g, Id index, int64_t offset) {
  Id value = g.constant(DType::U64, int64_t{0});
  for (int64_t i = offset; i < kWords32; ++i) {
    const Id here = g.binary(Op::CmpEq, index, g.constant(DType::I32, i - offset));
    value = g.where(
        here, g.constant(DType::U64, static_cast<int64_t>(kTwoOverPi[static_cast<size_t>(i)])),
        value);
  }
  return value;
}

// The magnitude of x is mantissa * 2^shift. x * 2/pi modulo 4 needs 2/pi from bit shift - 2 on: 96
// bits hold the quadrant and a sufficient fraction.
Reduced reduce_far(Math& m, Id x) {
  Graph& g = m.g;
  const auto u64 = [&](int64_t v) { return g.constant(DType::U64, v); };
  const Id bits = g.add(Op::Bitcast, DType::I32, {x});
  const Id exponent = g.binary(Op::And, g.binary(Op::Shr, bits, m.i(23)), m.i(255));
  // Bits of weight 4 and more are multiples of 4 quadrants: the window starts at the bit of weight
  // 2, which is 2 behind bit number shift = exponent - 150, counted with the 40 zeros.
  const Id start = m.sub(exponent, m.i(150 + 2 - 40));
  const Id safe = g.where(m.less(start, m.i(0)), m.i(0), start);
  const Id index = g.binary(Op::Shr, safe, m.i(5));
  const Id shift = g.cast(g.binary(Op::And, safe, m.i(31)), DType::U64);
  const Id mantissa =
      g.cast(g.binary(Op::Or, g.binary(Op::And, bits, m.i(0x7fffff)), m.i(0x800000)), DType::U64);
  std::array<Id, 3> window{};
  for (int64_t i = 0; i < 3; ++i) {
    const Id pair = g.binary(Op::Or, g.binary(Op::Shl, table_word(g, index, i), u64(32)),
                             table_word(g, index, i + 1));
    window[static_cast<size_t>(i)] = g.binary(
        Op::And, g.binary(Op::Shr, g.binary(Op::Shl, pair, shift), u64(32)), u64(0xffffffff));
  }
  // The product modulo 2^64 in units of 2^-62; higher bits are multiples of 4 quadrants.
  const Id high = g.binary(Op::Shl, g.binary(Op::Mul, mantissa, window[0]), u64(32));
  const Id middle = g.binary(Op::Mul, mantissa, window[1]);
  const Id low = g.binary(Op::Shr, g.binary(Op::Mul, mantissa, window[2]), u64(32));
  const Id product = g.binary(Op::Add, g.binary(Op::Add, high, middle), low);
  // Rounds to the nearest quadrant, so the rest is signed.
  const Id rounded = g.binary(Op::Add, product, u64(int64_t{1} << 61));
  const Id quadrant = g.cast(g.binary(Op::Shr, rounded, u64(62)), DType::I32);
  const Id fraction =
      g.add(Op::Bitcast, DType::I64,
            {g.binary(Op::Sub, product,
                      g.binary(Op::Shl, g.binary(Op::Shr, rounded, u64(62)), u64(62)))});
  const Id rest = m.mul(g.cast(fraction, m.real), m.c(std::ldexp(M_PI / 2, -62)));
  const Id negative = m.less(x, m.c(0.0));
  return {g.where(negative, m.sub(m.i(0), quadrant), quadrant),
          g.where(negative, m.sub(m.c(0.0), rest), rest)};
}

// The words of 2/pi from `index` on, selected by the bits of the index one after another.
std::vector<Id> words_from(Graph& g, Id index, size_t count) {
  std::vector<Id> words;
  for (uint32_t w : kTwoOverPi) words.push_back(g.constant(DType::U64, static_cast<int64_t>(w)));
  for (size_t step = 16; step >= 1; step /= 2) {
    const Id bit = g.constant(DType::U64, static_cast<int64_t>(step));
    const Id skips =
        g.binary(Op::CmpNe, g.binary(Op::And, index, bit), g.constant(DType::U64, int64_t{0}));
    for (size_t i = 0; i < count + step - 1; ++i)
      words[i] = g.where(skips, words[i + step], words[i]);
  }
  words.resize(count);
  return words;
}

// mantissa * window modulo 2^192, in words of 32 bits, highest first.
std::array<Id, 6> multiply_window(Graph& g, Id mantissa, const std::array<Id, 6>& window) {
  const auto u64 = [&](int64_t v) { return g.constant(DType::U64, v); };
  const Id mask = u64(0xffffffff), half = u64(32);
  const auto low = [&](Id x) { return g.binary(Op::And, x, mask); };
  const auto high = [&](Id x) { return g.binary(Op::Shr, x, half); };
  const Id m0 = low(mantissa), m1 = high(mantissa);
  std::array<Id, 6> result{};
  Id carry = u64(0);
  for (size_t column = 6; column-- > 0;) {
    Id sum = g.binary(Op::Add, carry, low(g.binary(Op::Mul, m0, window[column])));
    if (column + 1 < 6) {
      sum = g.binary(Op::Add, sum, high(g.binary(Op::Mul, m0, window[column + 1])));
      sum = g.binary(Op::Add, sum, low(g.binary(Op::Mul, m1, window[column + 1])));
    }
    if (column + 2 < 6)
      sum = g.binary(Op::Add, sum, high(g.binary(Op::Mul, m1, window[column + 2])));
    result[column] = low(sum);
    carry = high(sum);
  }
  return result;
}

// The same for f64: 192 bits of 2/pi hold the quadrant, up to 61 equal bits where x is close to a
// multiple of pi/2, and a fraction of f64's precision.
Reduced reduce_far64(Math& m, Id x) {
  Graph& g = m.g;
  const auto u64 = [&](int64_t v) { return g.constant(DType::U64, v); };
  const Id bits = g.add(Op::Bitcast, DType::U64, {x});
  const Id exponent = g.binary(Op::And, g.binary(Op::Shr, bits, u64(52)), u64(2047));
  // For exponents beyond the near range.
  const Id start = g.binary(Op::Sub, exponent, u64(1075 + 2 - 40));
  const std::vector<Id> words = words_from(g, g.binary(Op::Shr, start, u64(5)), 7);
  const Id shift = g.binary(Op::And, start, u64(31));
  const Id mantissa =
      g.binary(Op::Or, g.binary(Op::And, bits, u64((int64_t{1} << 52) - 1)), u64(int64_t{1} << 52));
  std::array<Id, 6> window{};
  for (size_t i = 0; i < 6; ++i) {
    const Id pair = g.binary(Op::Or, g.binary(Op::Shl, words[i], u64(32)), words[i + 1]);
    window[i] = g.binary(Op::Shr, g.binary(Op::Shl, pair, shift), u64(32));
  }
  const std::array<Id, 6> product = multiply_window(g, mantissa, window);
  const Id top = g.binary(Op::Or, g.binary(Op::Shl, product[0], u64(32)), product[1]);
  const Id quadrant = g.binary(Op::Shr, g.binary(Op::Add, top, u64(int64_t{1} << 61)), u64(62));
  const Id rest_bits = g.binary(Op::Sub, top, g.binary(Op::Shl, quadrant, u64(62)));
  // The magnitude of the fraction: the bits of a negative one are inverted.
  const Id below = g.binary(Op::CmpNe, g.binary(Op::Shr, rest_bits, u64(63)), u64(0));
  const Id turn = g.where(below, u64(-1), u64(0)), mask = u64(0xffffffff);
  const auto real = [&](Id word, int exponent_of_unit) {
    const Id turned = g.binary(Op::And, g.binary(Op::Xor, word, turn), mask);
    return m.mul(g.cast(turned, m.real), m.c(std::ldexp(1.0, exponent_of_unit)));
  };
  const Id low = m.add(real(product[3], -126), real(product[2], -94));
  const Id fraction =
      m.add(real(g.binary(Op::Shr, rest_bits, u64(32)), -30), m.add(real(rest_bits, -62), low));
  const Id rest =
      m.add(m.mul(fraction, m.c(M_PI / 2)), m.mul(fraction, m.c(0x1.1a62633145c07p-54)));
  const Id negative = m.less(x, m.c(0.0)), zero = m.c(0.0);
  const Id flip = g.binary(Op::Xor, negative, below);
  const Id signed_quadrant = g.cast(quadrant, m.integer);
  return {g.where(negative, m.sub(m.i(0), signed_quadrant), signed_quadrant),
          g.where(flip, m.sub(zero, rest), rest)};
}

// Taylor series: of sin(r) / r and cos(r) in r^2.
Id series(Math& m, Id square, bool sine) {
  double coefficients[12];
  const int terms = m.real == DType::F64 ? 10 : 6;
  double c = 1;
  for (int k = 0; k < terms; ++k) {
    coefficients[terms - 1 - k] = c;
    const int n = 2 * k + (sine ? 2 : 1);
    c /= -static_cast<double>(n) * (n + 1);
  }
  return m.polynomial(square, std::span(coefficients, static_cast<size_t>(terms)));
}

using namespace rules;

// 2^f for f from -1/2 to 1/2, highest power first. f64: the Taylor series. f32: the degree-6
// polynomial with the least maximum relative error (2e-9, by Lawson's iteration) among those with
// 2^0 = 1.
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

// 2^x = 2^n * 2^f with n the nearest integer, taken from the lowest bits of x + 1.5 *
// 2^mantissa_bits. 2^n is applied in two steps so that subnormal results round once: 2^(n - n1) is
// added to the exponent of 2^f, which stays normal; 2^n1, n1 = floor(n / 2), is a factor. The
// result is 0 below `lowest` and infinity from `highest` on; NaN stays NaN, since its exponent must
// not be added to.
Id make_exp2(Graph& g, Id x) {
  Math m(g, g[x].dtype);
  const double highest = m.bias + 2, lowest = -(m.bias + m.mantissa_bits + 1);
  const Id safe = g.where(m.less(x, m.c(lowest)), m.c(lowest), x);
  const Id magic = m.c(std::ldexp(1.5, m.mantissa_bits)), rounded = m.add(safe, magic);
  const Id bits = g.add(Op::Bitcast, m.integer, {rounded});
  const Id power = two_to_fraction(m, m.sub(safe, m.sub(rounded, magic)));
  const int64_t exponents = -(int64_t{1} << m.mantissa_bits);  // of the sign and the exponent
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
// by the series of artanh. Subnormal numbers are scaled up first.
Id make_log2(Graph& g, Id x) {
  Math m(g, g[x].dtype);
  const bool wide = m.real == DType::F64;
  const double smallest_normal = std::ldexp(1.0, 1 - m.bias);
  const Id tiny = m.less(x, m.c(smallest_normal));
  const Id scaled = g.where(tiny, m.mul(x, m.c(std::ldexp(1.0, m.mantissa_bits))), x);
  const Id bits = g.add(Op::Bitcast, m.integer, {scaled});
  // This offset puts the step between exponents at sqrt(1/2) instead of 1.
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

// Magnitudes of 2^mantissa_bits and more have no fraction; smaller ones fit the integer of the same
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

// sin of an F32 or F64 node from Add, Sub, Mul, Trunc, Where, comparisons, casts, bitcasts, shifts
// and integer arithmetic.
Id make_sin(Graph& g, Id x) {
  Math m(g, g[x].dtype);
  const bool wide = m.real == DType::F64;
  Reduced reduced = reduce_near(m, x);
  const Id magnitude = g.where(m.less(x, m.c(0.0)), m.sub(m.c(0.0), x), x);
  const Id far =
      // q has at most 20 or 10 integer bits for the near range
      m.less(m.c(wide ? 0x1p20 : 0x1p10), magnitude);
  const Reduced exact = wide ? reduce_far64(m, x) : reduce_far(m, x);
  reduced = {g.where(far, exact.quadrant, reduced.quadrant),
             g.where(far, exact.rest, reduced.rest)};
  const Id r = reduced.rest, square = m.mul(r, r);
  const Id odd = g.binary(Op::CmpNe, g.binary(Op::And, reduced.quadrant, m.i(1)), m.i(0));
  const Id lower = g.binary(Op::CmpNe, g.binary(Op::And, reduced.quadrant, m.i(2)), m.i(0));
  const Id value = g.where(odd, series(m, square, false), m.mul(r, series(m, square, true)));
  const Id signed_value = g.where(lower, m.sub(m.c(0.0), value), value);
  // sin(-0) is -0, sin of infinity and NaN is NaN.
  const Id finite = m.less(m.sub(x, x), m.c(1.0));
  const Id result = g.where(finite, signed_value, m.c(std::numeric_limits<double>::quiet_NaN()));
  return g.where(g.binary(Op::CmpEq, x, m.c(0.0)), x, result);
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
