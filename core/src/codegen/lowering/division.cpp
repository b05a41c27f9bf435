// Correctly rounded division and square root, digit by digit, for devices that do not claim them.
// Source: Muller et al., Handbook of Floating-Point Arithmetic (2018), chapters 7 and 8.
#include <cmath>
#include <limits>
#include <type_traits>

#include "codegen/lowering/float_math.h"
#include "codegen/lowering/lowering.h"

namespace plugrad::codegen {
namespace {

// The magnitude of x in integers: mantissa * 2^(exponent - bias - mantissa_bits), with the leading
// one in the mantissa.
struct Words {
  Graph& g;
  DType real, word;
  int mantissa_bits, bias;

  explicit Words(Graph& graph, DType dtype)
      : g(graph),
        real(dtype),
        word(dtype == DType::F64 ? DType::U64 : DType::U32),
        mantissa_bits(dtype == DType::F64 ? 52 : 23),
        bias(dtype == DType::F64 ? 1023 : 127) {}

  Id c(int64_t v) { return g.constant(word, v); }
  // b is a node or a number.
  template <class B>
  Id op(Op o, Id a, B b) {
    if constexpr (std::is_same_v<B, Id>)
      return g.binary(o, a, b);
    else
      return g.binary(o, a, c(b));
  }
  Id bits(Id x) { return g.add(Op::Bitcast, word, {x}); }
  Id value(Id bits) { return g.add(Op::Bitcast, real, {bits}); }
  Id constant(double v) { return g.constant(real, v); }
  int64_t implicit_one() const { return int64_t{1} << mantissa_bits; }
  int sign_place() const { return mantissa_bits == 52 ? 63 : 31; }
  Id sign(Id bits_of_x) { return op(Op::Shl, op(Op::Shr, bits_of_x, sign_place()), sign_place()); }
  Id magnitude(Id x) {
    const Id all = bits(x);
    return op(Op::Xor, all, sign(all));
  }
  Id no(Id condition) { return g.binary(Op::Xor, condition, g.constant(DType::Bool, int64_t{1})); }

  struct Parts {
    Id mantissa, exponent;
  };
  // Subnormal numbers are scaled up first.
  Parts parts(Id magnitude_bits) {
    const Id tiny = op(Op::CmpLt, magnitude_bits, implicit_one());
    const Id scaled =
        bits(op(Op::Mul, value(magnitude_bits), constant(std::ldexp(1.0, mantissa_bits + 1))));
    const Id now = g.where(tiny, scaled, magnitude_bits);
    const Id exponent = op(Op::Shr, now, mantissa_bits);
    const Id mantissa = op(Op::Or, op(Op::And, now, implicit_one() - 1), implicit_one());
    return {mantissa, g.where(tiny, op(Op::Sub, exponent, mantissa_bits + 1), exponent)};
  }
};

// floor(a / b * 2^(digits - 1)) for mantissas; the last bit is set if there is a remainder.
Id quotient_digits(Words& w, Id a, Id b, int digits) {
  Id rest = a, quotient = w.c(0);
  for (int i = 0; i < digits; ++i) {
    const Id fits = w.no(w.op(Op::CmpLt, rest, b));
    quotient = w.op(Op::Add, w.op(Op::Shl, quotient, 1), w.g.where(fits, w.c(1), w.c(0)));
    rest = w.op(Op::Shl, w.g.where(fits, w.op(Op::Sub, rest, b), rest), 1);
  }
  return w.op(Op::Or, quotient, w.g.where(w.op(Op::CmpNe, rest, 0), w.c(1), w.c(0)));
}

// Rounds `digits` * 2^(exponent - bias) to nearest even. `digits` has mantissa_bits + 4 bits with
// the leading one set; `exponent` is signed, in an unsigned word.
Id rounded_bits(Words& w, Id digits, Id exponent) {
  const DType sint = w.word == DType::U64 ? DType::I64 : DType::I32;
  const Id signed_exponent = w.g.cast(exponent, sint), one = w.g.constant(sint, int64_t{1});
  const Id low = w.g.binary(Op::CmpLt, signed_exponent, one);
  const Id drop = w.op(Op::Add, w.g.where(low, w.op(Op::Sub, w.c(1), exponent), w.c(0)), 3);
  const Id most = w.c(w.mantissa_bits + 6);
  const Id cut = w.g.where(w.op(Op::CmpLt, drop, most), drop, most);
  const Id odd = w.op(Op::And, w.op(Op::Shr, digits, cut), 1);
  const Id half = w.op(Op::Sub, w.op(Op::Shl, w.c(1), w.op(Op::Sub, cut, 1)), 1);
  const Id rounded = w.op(Op::Shr, w.op(Op::Add, w.op(Op::Add, digits, half), odd), cut);
  const Id field = w.g.where(low, w.c(0), w.op(Op::Sub, exponent, 1));
  const Id bits = w.op(Op::Add, w.op(Op::Shl, field, w.mantissa_bits), rounded);
  const Id overflows =
      w.g.binary(Op::CmpLt, w.g.constant(sint, int64_t{2 * w.bias}), signed_exponent);
  return w.g.where(overflows, w.c(static_cast<int64_t>(2 * w.bias + 1) << w.mantissa_bits), bits);
}

Id make_fdiv(Graph& g, Id a, Id b) {
  Words w(g, g[a].dtype);
  const Id ma = w.magnitude(a), mb = w.magnitude(b);
  const Id sign = w.op(Op::Xor, w.sign(w.bits(a)), w.sign(w.bits(b)));
  const Words::Parts x = w.parts(ma), y = w.parts(mb);
  const int digits = w.mantissa_bits + 4;
  const Id q = quotient_digits(w, x.mantissa, y.mantissa, digits);
  const Id short_by_one = w.op(Op::CmpLt, q, int64_t{1} << (digits - 1));
  const Id exponent = w.op(Op::Add, w.op(Op::Sub, x.exponent, y.exponent), w.bias);
  const Id finite = rounded_bits(w, g.where(short_by_one, w.op(Op::Shl, q, 1), q),
                                 g.where(short_by_one, w.op(Op::Sub, exponent, 1), exponent));
  const int64_t infinity = static_cast<int64_t>(2 * w.bias + 1) << w.mantissa_bits;
  const auto is = [&](Id bits, int64_t v) { return w.op(Op::CmpEq, bits, v); };
  const auto either = [&](Id p, Id q2) { return g.binary(Op::Or, p, q2); };
  const auto both = [&](Id p, Id q2) { return g.binary(Op::And, p, q2); };
  const Id large = either(is(ma, infinity), is(mb, 0)), zero = either(is(ma, 0), is(mb, infinity));
  const Id known = g.where(large, w.c(infinity), g.where(zero, w.c(0), finite));
  const Id unordered = either(g.binary(Op::CmpNe, a, a), g.binary(Op::CmpNe, b, b));
  const Id undefined = either(both(is(ma, 0), is(mb, 0)), both(is(ma, infinity), is(mb, infinity)));
  return g.where(either(unordered, undefined), w.constant(std::numeric_limits<double>::quiet_NaN()),
                 w.value(w.op(Op::Or, known, sign)));
}

// Digits come from pairs of bits of the mantissa, then from zeros. The mantissa is shifted to make
// the exponent even; no root is subnormal.
Id make_sqrt(Graph& g, Id x) {
  Words w(g, g[x].dtype);
  const Words::Parts p = w.parts(w.magnitude(x));
  const int pairs = w.mantissa_bits == 52 ? 28 : 13, digits = w.mantissa_bits + 3,
            shift = 2 * pairs - 2 - w.mantissa_bits;
  // The value is shifted mantissa * 2^(exponent - offset); `odd` is 1 if that exponent is odd.
  const int offset = w.bias + w.mantissa_bits + shift;
  const Id odd = w.op(Op::And, w.op(Op::Add, p.exponent, offset), 1);
  const Id radicand = w.op(Op::Shl, w.op(Op::Shl, p.mantissa, shift), odd);
  Id root = w.c(0), rest = w.c(0);
  for (int i = 0; i < digits; ++i) {
    const Id pair =
        i < pairs ? w.op(Op::And, w.op(Op::Shr, radicand, 2 * (pairs - 1 - i)), 3) : w.c(0);
    rest = w.op(Op::Or, w.op(Op::Shl, rest, 2), pair);
    const Id trial = w.op(Op::Or, w.op(Op::Shl, root, 2), 1);
    const Id fits = w.no(w.op(Op::CmpLt, rest, trial));
    rest = g.where(fits, w.op(Op::Sub, rest, trial), rest);
    root = w.op(Op::Add, w.op(Op::Shl, root, 1), g.where(fits, w.c(1), w.c(0)));
  }
  root = w.op(Op::Or, root, g.where(w.op(Op::CmpNe, rest, 0), w.c(1), w.c(0)));
  // (exponent - offset - odd) / 2 - (digits - pairs) + bias; the sum is made positive before the
  // shift.
  const int whole = 2 * (w.bias - (digits - pairs)) - offset;
  const Id field = w.op(Op::Shr, w.op(Op::Sub, w.op(Op::Add, p.exponent, whole), odd), 1);
  const Id scale = w.value(w.op(Op::Shl, field, w.mantissa_bits));
  const Id value = w.op(Op::Mul, g.cast(root, w.real), scale);
  const Id zero = w.constant(0.0), infinity = w.constant(std::numeric_limits<double>::infinity());
  const Id itself =
      g.binary(Op::Or, g.binary(Op::CmpEq, x, zero), g.binary(Op::CmpEq, x, infinity));
  const Id negative = g.binary(Op::Or, g.binary(Op::CmpLt, x, zero), g.binary(Op::CmpNe, x, x));
  const Id nan = w.constant(std::numeric_limits<double>::quiet_NaN());
  return g.where(itself, x, g.where(negative, nan, value));
}

// Truncated quotient of i32 or u32 by long division of the magnitudes.
Id make_idiv(Graph& g, Id a, Id b) {
  const DType dtype = g[a].dtype;
  const auto word = [&](int64_t v) { return g.constant(DType::U32, v); };
  const auto negative = [&](Id x) { return g.binary(Op::CmpLt, x, g.constant(dtype, int64_t{0})); };
  const auto size = [&](Id x) {
    const Id bits = g.cast(x, DType::U32);
    return is_unsigned(dtype) ? bits : g.where(negative(x), g.binary(Op::Sub, word(0), bits), bits);
  };
  const Id n = size(a), d = size(b);
  Id rest = word(0), quotient = word(0);
  for (int bit = 31; bit >= 0; --bit) {
    const Id next = g.binary(Op::And, g.binary(Op::Shr, n, word(bit)), word(1));
    const Id carry = g.binary(Op::Shr, rest, word(31));
    rest = g.binary(Op::Or, g.binary(Op::Shl, rest, word(1)), next);
    // It fits if not (rest < d), or if a bit was shifted out.
    const Id below = g.where(g.binary(Op::CmpLt, rest, d), word(1), word(0));
    const Id fits = g.binary(Op::CmpLt, below, g.binary(Op::Add, carry, word(1)));
    rest = g.where(fits, g.binary(Op::Sub, rest, d), rest);
    quotient = g.binary(Op::Or, quotient, g.where(fits, word(int64_t{1} << bit), word(0)));
  }
  quotient = g.where(g.binary(Op::CmpEq, d, word(0)), word(0), quotient);
  if (is_unsigned(dtype)) return quotient;
  const Id differ = g.binary(Op::CmpNe, g.where(negative(a), word(1), word(0)),
                             g.where(negative(b), word(1), word(0)));
  return g.cast(g.where(differ, g.binary(Op::Sub, word(0), quotient), quotient), dtype);
}

using namespace rules;
constexpr uint8_t kWordClasses = kI32Class | kU32Class;

// clang-format off
constexpr Rule kDivision[] = {
    rule("fdiv-by-digits", of_class(fdiv(x, y), kRealClass), code_of_xy<make_fdiv>,
         when(check<lacks_op_beside_add>)),
    rule("sqrt-by-digits", of_class(sqrt(x), kRealClass), code_of_x<make_sqrt>,
         when(check<lacks_op_beside_add>)),
    rule("idiv-by-digits", of_class(idiv(x, y), kWordClasses), code_of_xy<make_idiv>,
         when(check<lacks_op>)),
    rule("mod-is-idiv", of_class(imod(x, y), kWordClasses), x - y * idiv(x, y),
         when(check<lacks_op>)),
};
// clang-format on
}  // namespace

std::span<const Rule> division_rules() {
  return kDivision;
}

}  // namespace plugrad::codegen
