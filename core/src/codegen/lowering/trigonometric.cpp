// sin, cos and tan of ops that devices claim: argument reduction, then series. docs/accuracy.md has
// the measured errors. Source: Muller, Elementary Functions (2016), chapters 5 and 11.
//   x = q * pi/2 + r with r from -pi/4 to pi/4;  sin x = +-sin r or +-cos r by the bits of q
// r comes in two parts, as its own rounding would show near the zeros of sin and cos. Small x are
// reduced by Cody and Waite's method: pi/2 in parts whose products with q are exact. Beyond 2^10
// (f32) and 2^20 (f64) by Payne and Hanek's: the relevant bits of 2/pi times the mantissa of x, in
// integers.
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
  Id rest, low;
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

// The first differences are exact, and so is the error of the one that rounds.
Reduced reduce_near(Math& m, Id x) {
  const Nearest q = m.nearest(m.mul(x, m.c(2 / M_PI)));
  const auto& parts = m.wide() ? kHalfPi64 : kHalfPi32;
  const size_t rounds = m.wide() ? 1 : 2;
  Id exact = x;
  for (size_t i = 0; i < rounds; ++i) exact = m.sub(exact, m.mul(q.whole, m.c(parts[i])));
  const Id next = m.mul(q.whole, m.c(parts[rounds])), sum = m.sub(exact, next);
  Id low = m.sub(m.sub(exact, sum), next);
  for (size_t i = rounds + 1; i < parts.size(); ++i)
    low = m.sub(low, m.mul(q.whole, m.c(parts[i])));
  const Id rest = m.add(sum, low);
  return {m.bits(q.sum), rest, m.add(m.sub(sum, rest), low)};
}

// The words of 2/pi from `index` on, selected by the bits of the index one after another; `highest`
// is the highest bit that it may have.
std::vector<Id> words_from(Graph& g, Id index, size_t highest, size_t count) {
  const DType dtype = g[index].dtype;
  std::vector<Id> words;
  for (uint32_t w : kTwoOverPi) words.push_back(g.constant(dtype, static_cast<int64_t>(w)));
  for (size_t step = highest; step >= 1; step /= 2) {
    const Id bit = g.constant(dtype, static_cast<int64_t>(step));
    const Id skips =
        g.binary(Op::CmpNe, g.binary(Op::And, index, bit), g.constant(dtype, int64_t{0}));
    for (size_t i = 0; i < count + step - 1; ++i)
      words[i] = g.where(skips, words[i + step], words[i]);
  }
  words.resize(count);
  return words;
}

Reduced with_sign(Math& m, Id negative, const Reduced& of) {
  Graph& g = m.g;
  const auto choose = [&](Id value) { return g.where(negative, m.sub(m.c(0.0), value), value); };
  return {g.where(negative, m.sub(m.i(0), of.quadrant), of.quadrant), choose(of.rest),
          choose(of.low)};
}

// The magnitude of x is mantissa * 2^shift. x * 2/pi modulo 4 needs 2/pi from bit shift - 2 on: 96
// bits hold the quadrant and a sufficient fraction.
Reduced reduce_far(Math& m, Id x) {
  Graph& g = m.g;
  const auto u32 = [&](int64_t v) { return g.constant(DType::U32, v); };
  const Id bits = g.add(Op::Bitcast, DType::U32, {x});
  const Id exponent = g.binary(Op::And, g.binary(Op::Shr, bits, u32(23)), u32(255));
  // Bits of weight 4 and more are multiples of 4 quadrants: the window starts at the bit of weight
  // 2, which is 2 behind bit number shift = exponent - 150, counted with the 40 zeros. Exponents
  // beyond the near range.
  const Id start = g.binary(Op::Sub, exponent, u32(150 + 2 - 40));
  const std::vector<Id> words = words_from(g, g.binary(Op::Shr, start, u32(5)), 4, 4);
  const Id shift = g.binary(Op::And, start, u32(31)), back = g.binary(Op::Xor, shift, u32(31));
  const Id mantissa = g.binary(Op::Or, g.binary(Op::And, bits, u32(0x7fffff)), u32(0x800000));
  std::array<Id, 3> window{};
  for (size_t i = 0; i < 3; ++i) {
    const Id next = g.binary(Op::Shr, g.binary(Op::Shr, words[i + 1], u32(1)), back);
    window[i] = g.binary(Op::Or, g.binary(Op::Shl, words[i], shift), next);
  }
  // The product modulo 2^64 in units of 2^-62, in two words; higher bits are multiples of 4
  // quadrants.
  const auto wide = [&](Id word) { return g.cast(word, DType::U64); };
  const auto above = [&](Id x64) {
    return g.binary(Op::Shr, x64, g.constant(DType::U64, int64_t{32}));
  };
  const Id sum = g.binary(Op::Add, g.binary(Op::Mul, wide(mantissa), wide(window[1])),
                          above(g.binary(Op::Mul, wide(mantissa), wide(window[2]))));
  const Id first = g.binary(Op::Mul, mantissa, window[0]), low = g.cast(sum, DType::U32);
  const Id high = g.binary(Op::Add, first, g.cast(above(sum), DType::U32));
  // Rounds to the nearest quadrant, and the fraction to its nearest high word: both words of it are
  // signed. A float holds the high word without its last digits.
  const Id quadrant = g.binary(Op::Shr, g.binary(Op::Add, high, u32(int64_t{1} << 29)), u32(30));
  const Id above_quadrant = g.binary(Op::Sub, high, g.binary(Op::Shl, quadrant, u32(30)));
  const Id signed_high = g.binary(Op::Add, above_quadrant, g.binary(Op::Shr, low, u32(31)));
  const auto real = [&](Id word) { return g.cast(g.add(Op::Bitcast, DType::I32, {word}), m.real); };
  // Times pi/2, both in two parts: the first product is exact.
  const auto unit = [&](double part) { return m.c(std::ldexp(part, -30)); };
  const Id coarse = g.binary(Op::And, g.binary(Op::Add, signed_high, u32(16)), u32(0xffffffe0));
  const Id digits = real(coarse), head = m.high(digits);
  const Id last =
      m.add(real(g.binary(Op::Sub, signed_high, coarse)), m.mul(real(low), m.c(0x1p-32)));
  const Id tail = m.add(m.sub(digits, head), last);
  const Id exact = m.mul(head, unit(0x1.92p+0));
  const Id more = m.add(m.mul(head, unit(0x1.fb54442d1846ap-12)), m.mul(tail, unit(M_PI / 2)));
  const Id rest = m.add(exact, more);
  return with_sign(
      m, m.less(x, m.c(0.0)),
      {g.add(Op::Bitcast, DType::I32, {quadrant}), rest, m.sub(more, m.sub(rest, exact))});
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
  const std::vector<Id> words = words_from(g, g.binary(Op::Shr, start, u64(5)), 16, 7);
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
  // Times pi/2, both in two parts: the first product is exact.
  const Id head = real(g.binary(Op::Shr, rest_bits, u64(32)), -30);
  const Id tail = m.add(real(rest_bits, -62), m.add(real(product[3], -126), real(product[2], -94)));
  const Id exact = m.mul(head, m.c(0x1.921fbp+0));
  const Id more = m.add(m.mul(head, m.c(0x1.5110b4611a626p-22)), m.mul(tail, m.c(M_PI / 2)));
  const Id rest = m.add(exact, more), lost = m.sub(more, m.sub(rest, exact));
  const Id negative = m.less(x, m.c(0.0)), zero = m.c(0.0);
  const Id flip = g.binary(Op::Xor, negative, below);
  const Id signed_quadrant = g.cast(quadrant, m.integer);
  return {g.where(negative, m.sub(m.i(0), signed_quadrant), signed_quadrant),
          g.where(flip, m.sub(zero, rest), rest), g.where(flip, m.sub(zero, lost), lost)};
}

Reduced reduce(Math& m, Id x) {
  Graph& g = m.g;
  const Id magnitude = g.where(m.less(x, m.c(0.0)), m.sub(m.c(0.0), x), x);
  // q has at most 20 or 10 integer bits for the near range.
  const Id far = m.less(m.c(m.wide() ? 0x1p20 : 0x1p10), magnitude);
  const Reduced near = reduce_near(m, x), exact = m.wide() ? reduce_far64(m, x) : reduce_far(m, x);
  return {g.where(far, exact.quadrant, near.quadrant), g.where(far, exact.rest, near.rest),
          g.where(far, exact.low, near.low)};
}

// Taylor series in r²: (sin(r) / r - 1) / r², or (cos(r) - 1 + r² / 2) / r⁴.
Id series(Math& m, Id square, bool sine) {
  double coefficients[12];
  const int terms = m.wide() ? 9 : 5;
  double c = sine ? -1.0 / 6 : 1.0 / 24;
  for (int k = 0; k < terms; ++k) {
    coefficients[terms - 1 - k] = c;
    const int n = 2 * k + (sine ? 4 : 5);
    c /= -static_cast<double>(n) * (n + 1);
  }
  return m.polynomial(square, std::span(coefficients, static_cast<size_t>(terms)));
}

// sin(r + low) = r + (low + r³ S)
Id sine_of(Math& m, const Reduced& of) {
  const Id square = m.mul(of.rest, of.rest);
  return m.add(of.rest, m.add(of.low, m.mul(m.mul(of.rest, square), series(m, square, true))));
}

// cos(r + low) = 1 - (r² / 2 - (r⁴ C - r low))
Id cosine_of(Math& m, const Reduced& of) {
  const Id square = m.mul(of.rest, of.rest);
  const Id small =
      m.sub(m.mul(m.mul(square, square), series(m, square, false)), m.mul(of.rest, of.low));
  return m.sub(m.c(1.0), m.sub(m.mul(square, m.c(0.5)), small));
}

// tan(r + low) = r + (low (1 + r²) + r³ T), T a minimax polynomial (Remez) of the relative error
// 1.3e-9. f64: sin / cos.
Id tangent_of(Math& m, const Reduced& of) {
  if (m.wide()) return m.g.binary(Op::FDiv, sine_of(m, of), cosine_of(m, of));
  constexpr double least[] = {0.00437748479, 8.71443553e-05, 0.0108376453, 0.021281505,
                              0.0540600419,  0.13332662,     0.333333492};
  const Id square = m.mul(of.rest, of.rest);
  const Id low = m.add(of.low, m.mul(of.low, square));
  return m.add(of.rest, m.add(low, m.mul(m.mul(of.rest, square), m.polynomial(square, least))));
}

Id bit_of(Math& m, Id quadrant, int64_t bit) {
  return m.g.binary(Op::CmpNe, m.g.binary(Op::And, quadrant, m.i(bit)), m.i(0));
}

// NaN for infinities and NaN.
Id if_finite(Math& m, Id x, Id value) {
  return m.g.where(m.less(m.sub(x, x), m.c(1.0)), value,
                   m.c(std::numeric_limits<double>::quiet_NaN()));
}

// The sine of `of`, or its cosine where the quadrant is odd; negative in the lower half.
Id by_quadrant(Math& m, const Reduced& of) {
  const Id value = m.g.where(bit_of(m, of.quadrant, 1), cosine_of(m, of), sine_of(m, of));
  return m.g.where(bit_of(m, of.quadrant, 2), m.sub(m.c(0.0), value), value);
}

using namespace rules;

// sin(-0) is -0.
Id make_sin(Graph& g, Id x) {
  Math m(g, g[x].dtype);
  return g.where(g.binary(Op::CmpEq, x, m.c(0.0)), x,
                 if_finite(m, x, by_quadrant(m, reduce(m, x))));
}

Id cos_by_series(Math& m, Id x) {
  Reduced reduced = reduce(m, x);
  reduced.quadrant = m.add(reduced.quadrant, m.i(1));
  return if_finite(m, x, by_quadrant(m, reduced));
}

Id tan_by_series(Math& m, Id x) {
  Graph& g = m.g;
  const Reduced reduced = reduce(m, x);
  const Id value = tangent_of(m, reduced), inverse = g.binary(Op::FDiv, m.c(-1.0), value);
  const Id result = if_finite(m, x, g.where(bit_of(m, reduced.quadrant, 1), inverse, value));
  return g.where(g.binary(Op::CmpEq, x, m.c(0.0)), x, result);
}

// Half the angle is exact: pi/2 - x would lose the fraction digits of a large x.
Id cos_by_sin(Math& m, Id x) {
  const Id half = m.g.unary(Op::Sin, m.mul(x, m.c(0.5)));
  return m.sub(m.c(1.0), m.mul(m.mul(half, half), m.c(2.0)));
}

// A device with its own sin may lack the integers of the series.
bool is_left_to_sin(const Match& match, DType dtype) {
  const Lowering& device = match.context<Lowering>();
  return device.has(Op::Sin, dtype) && !has_words(device, dtype);
}

Id make_cos(Graph& g, const Match& match) {
  Math m(g, g[match.root].dtype);
  return is_left_to_sin(match, m.real) ? cos_by_sin(m, match[x]) : cos_by_series(m, match[x]);
}

Id make_tan(Graph& g, const Match& match) {
  Math m(g, g[match.root].dtype);
  if (!is_left_to_sin(match, m.real)) return tan_by_series(m, match[x]);
  return g.binary(Op::FDiv, g.unary(Op::Sin, match[x]), cos_by_sin(m, match[x]));
}

// clang-format off
constexpr Rule kTrigonometric[] = {
    rule("sin-by-series", of_class(sin(x), kRealClass), code_of_x<make_sin>,
         when(check<lacks_op_beside_add>)),
    rule("cos-by-series", of_class(cos(x), kRealClass), code<make_cos>,
         when(check<lacks_op_beside_add>)),
    rule("tan-by-series", of_class(tan(x), kRealClass), code<make_tan>,
         when(check<lacks_op_beside_add>)),
};
// clang-format on

}  // namespace

std::span<const Rule> trigonometric_rules() {
  return kTrigonometric;
}

}  // namespace plugrad::codegen
