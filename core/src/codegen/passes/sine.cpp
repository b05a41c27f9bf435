// sin x = +-sin r or +-cos r with x = q * pi/2 + r and |r| <= pi/4.
// Up to kFar the reduction is Cody and Waite's: pi/2 in parts whose products with q are exact. Beyond that, for
// f32, it is Payne and Hanek's: the bits of 2/pi that matter for x's exponent, times x's mantissa, as integers.
// Source: Muller, Elementary Functions (2016), chapter 11.
#include <array>
#include <cmath>
#include <limits>

#include "codegen/passes/float_math.h"
#include "codegen/passes/transcendental.h"

namespace plugrad::codegen {
namespace {

struct Reduced {
  Id quadrant;  // integer of the dtype's size; its two low bits count
  Id rest;
};

// 32 zeros before the point of 2/pi, then its first 224 bits behind it, in words of 32.
constexpr std::array<uint32_t, 8> kTwoOverPi = {0, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                                0xdb629599, 0x3c439041, 0xfe5163ab};

// Parts of pi/2 with few enough bits that q times each but the last is exact.
constexpr std::array<double, 4> kHalfPi32 = {0x1.9210000000000p+0, 0x1.f6a0000000000p-13, 0x1.1100000000000p-26, 0x1.68c2340000000p-39};
constexpr std::array<double, 4> kHalfPi64 = {0x1.921fb54400000p+0, 0x1.0b4611a600000p-34,
                                             0x1.3198a2e000000p-69, 0x1.b839a252049c1p-104};

Reduced reduce_near(Math& m, Id x) {
  Graph& g = m.g;
  const Id scaled = m.mul(x, m.c(2 / M_PI));
  const Id half = g.where(m.less(x, m.c(0.0)), m.c(-0.5), m.c(0.5));
  const Id q = g.unary(Op::Trunc, m.add(scaled, half));
  Id rest = x;
  for (double part : m.real == DType::F64 ? kHalfPi64 : kHalfPi32) rest = m.sub(rest, m.mul(q, m.c(part)));
  return {g.cast(q, m.integer), rest};
}

// Word number `index` (a node) of 2/pi, counted from 0.
Id word(Graph& g, Id index, int64_t offset) {
  Id value = g.constant(DType::U64, int64_t{0});
  for (int64_t i = offset; i < static_cast<int64_t>(kTwoOverPi.size()); ++i) {
    const Id here = g.binary(Op::CmpEq, index, g.constant(DType::I32, i - offset));
    value = g.where(here, g.constant(DType::U64, static_cast<int64_t>(kTwoOverPi[static_cast<size_t>(i)])), value);
  }
  return value;
}

// |x| = mantissa * 2^shift. x * 2/pi modulo 4 needs 2/pi from bit shift - 2 on: 96 bits hold the quadrant and
// enough of the fraction.
Reduced reduce_far(Math& m, Id x) {
  Graph& g = m.g;
  const auto u64 = [&](int64_t v) { return g.constant(DType::U64, v); };
  const Id bits = g.add(Op::Bitcast, DType::I32, {x});
  const Id exponent = g.binary(Op::And, g.binary(Op::Shr, bits, m.i(23)), m.i(255));
  // Bits of weight 4 and more are multiples of 4 quadrants: the window starts at the bit of weight 2, which is
  // 2 behind bit number shift = exponent - 150, counted with the 32 zeros.
  const Id start = m.sub(exponent, m.i(150 + 2 - 32));
  const Id safe = g.where(m.less(start, m.i(0)), m.i(0), start);
  const Id index = g.binary(Op::Shr, safe, m.i(5));
  const Id shift = g.cast(g.binary(Op::And, safe, m.i(31)), DType::U64);
  const Id mantissa = g.cast(g.binary(Op::Or, g.binary(Op::And, bits, m.i(0x7fffff)), m.i(0x800000)), DType::U64);
  std::array<Id, 3> window{};
  for (int64_t i = 0; i < 3; ++i) {
    const Id pair = g.binary(Op::Or, g.binary(Op::Shl, word(g, index, i), u64(32)), word(g, index, i + 1));
    window[static_cast<size_t>(i)] = g.binary(Op::And, g.binary(Op::Shr, g.binary(Op::Shl, pair, shift), u64(32)), u64(0xffffffff));
  }
  // The product modulo 2^64, in units of 2^-62; what lies above are multiples of 4 quadrants.
  const Id high = g.binary(Op::Shl, g.binary(Op::Mul, mantissa, window[0]), u64(32));
  const Id middle = g.binary(Op::Mul, mantissa, window[1]);
  const Id low = g.binary(Op::Shr, g.binary(Op::Mul, mantissa, window[2]), u64(32));
  const Id product = g.binary(Op::Add, g.binary(Op::Add, high, middle), low);
  // To the nearest quadrant, so that the rest is signed.
  const Id rounded = g.binary(Op::Add, product, u64(int64_t{1} << 61));
  const Id quadrant = g.cast(g.binary(Op::Shr, rounded, u64(62)), DType::I32);
  const Id fraction =
      g.add(Op::Bitcast, DType::I64,
            {g.binary(Op::Sub, product,
                      g.binary(Op::Shl, g.binary(Op::Shr, rounded, u64(62)), u64(62)))});
  const Id rest = m.mul(g.cast(fraction, m.real), m.c(std::ldexp(M_PI / 2, -62)));
  const Id negative = m.less(x, m.c(0.0));
  return {g.where(negative, m.sub(m.i(0), quadrant), quadrant), g.where(negative, m.sub(m.c(0.0), rest), rest)};
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

}  // namespace

Id make_sin(Graph& g, Id x) {
  Math m(g, g[x].dtype);
  const bool wide = m.real == DType::F64;
  Reduced reduced = reduce_near(m, x);
  if (!wide) {
    const Id magnitude = g.where(m.less(x, m.c(0.0)), m.sub(m.c(0.0), x), x);
    const Id far = m.less(m.c(1024.0), magnitude);  // q needs at most 10 bits before it
    const Reduced exact = reduce_far(m, x);
    reduced = {g.where(far, exact.quadrant, reduced.quadrant), g.where(far, exact.rest, reduced.rest)};
  }
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

}  // namespace plugrad::codegen
