// Casts of small dtypes for devices that store but do not convert them: f16, bf16 and f8 by integer
// arithmetic, integers of 8 and 16 bits through the dtype of the other signedness.
// A float format is described by its mantissa and exponent bits. Widening multiplies by a power of
// two, which is right for subnormals too; narrowing adds half a unit, minus one bit unless odd.
#include <cmath>

#include "codegen/lowering/float_math.h"
#include "codegen/lowering/lowering.h"

namespace plugrad::codegen {
namespace {

struct Format {
  int mantissa_bits, exponent_bits;
  bool has_infinity;
  DType bits;  // unsigned integer of the same size

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int sign_bit() const { return mantissa_bits + exponent_bits; }
  int64_t largest_exponent_bits() const {
    return ((int64_t{1} << exponent_bits) - 1) << mantissa_bits;
  }
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::F16:
      return {10, 5, true, DType::U16};
    case DType::BF16:
      return {7, 8, true, DType::U16};
    case DType::F8E5M2:
      return {2, 5, true, DType::U8};
    default:
      return {3, 4, false, DType::U8};
  }
}

struct Bits {
  Graph& g;
  Id c(int64_t v) { return g.constant(DType::U32, v); }
  Id op(Op op, Id a, int64_t b) { return g.binary(op, a, c(b)); }
  Id as_float(Id bits) { return g.add(Op::Bitcast, DType::F32, {bits}); }
  Id as_bits(Id value) { return g.add(Op::Bitcast, DType::U32, {value}); }
};

using namespace rules;

// Casts through the dtype of the other signedness and corrects the upper bits.
Id from_small_integer(Graph& g, const Match& m) {
  const DType dtype = g[m[x]].dtype, other = m.context<Lowering>().castable_sibling(dtype);
  if (other == DType::Void) return kNoMatch;
  const Id word =
      g.cast(g.add(Op::Bitcast, other, {m[x]}), is_unsigned(dtype) ? DType::U32 : DType::I32);
  const int64_t bits = size_of(dtype) * 8;
  if (is_unsigned(dtype)) {
    const Id mask = g.constant(DType::U32, (int64_t{1} << bits) - 1);
    return g.cast(g.binary(Op::And, word, mask), g[m.root].dtype);
  }
  const Id shift = g.constant(DType::I32, 32 - bits);
  return g.cast(g.binary(Op::Shr, g.binary(Op::Shl, word, shift), shift), g[m.root].dtype);
}

// Out-of-range values are unspecified; most devices saturate.
Id saturated(Graph& g, Id value, DType dtype) {
  const int64_t low = is_unsigned(dtype) ? 0 : -(int64_t{1} << (size_of(dtype) * 8 - 1));
  const Id word = g.cast(value, DType::I32), least = g.constant(DType::I32, low);
  const Id most = g.constant(DType::I32, low + (int64_t{1} << size_of(dtype) * 8) - 1);
  return g.where(g.binary(Op::CmpLt, word, least), least,
                 g.where(g.binary(Op::CmpLt, most, word), most, word));
}

Id to_small_integer(Graph& g, const Match& m) {
  const DType dtype = g[m.root].dtype, other = m.context<Lowering>().castable_sibling(dtype);
  if (other == DType::Void) return kNoMatch;
  const Id word = is_float(g[m[x]].dtype) ? saturated(g, m[x], dtype) : g.cast(m[x], DType::U32);
  return g.add(Op::Bitcast, dtype, {g.cast(word, other)});
}

// clang-format off
constexpr Rule kSmallIntegers[] = {
    rule("from-small-int", cast(of_class(x, kSmallIntClass)), code<from_small_integer>,
         when(check<lacks_source_cast>)),
    rule("to-small-int", of_class(cast(x), kSmallIntClass), code<to_small_integer>,
         when(check<lacks_result_cast>)),
};
// clang-format on

// The exact f32 of a small float.
Id small_to_f32(Graph& g, Id x) {
  const Format f = format_of(g[x].dtype);
  Bits b{g};
  const Id bits = g.cast(g.add(Op::Bitcast, f.bits, {x}), DType::U32);
  const Id sign = b.op(Op::Shl, b.op(Op::Shr, bits, f.sign_bit()), 31);
  const Id magnitude = b.op(Op::And, bits, (int64_t{1} << f.sign_bit()) - 1);
  const Id shifted = b.op(Op::Shl, magnitude, 23 - f.mantissa_bits);
  // Read as f32, the exponent is too small by the difference of the biases.
  const Id scaled = g.binary(Op::Mul, b.as_float(shifted),
                             g.constant(DType::F32, std::ldexp(1.0, 127 - f.bias())));
  const Id finite = f.exponent_bits == 8 ? shifted : b.as_bits(scaled);
  const int64_t special =
      f.has_infinity ? f.largest_exponent_bits() : (int64_t{1} << f.sign_bit()) - 1;
  const Id is_special = b.op(Op::Xor, g.cast(b.op(Op::CmpLt, magnitude, special), DType::U32), 1);
  const Id special_bits = f.has_infinity ? b.op(Op::Or, shifted, 0x7f800000) : b.c(0x7fc00000);
  const Id value = g.where(b.op(Op::CmpNe, is_special, 0), special_bits, finite);
  return b.as_float(g.binary(Op::Or, value, sign));
}

// Rounds an f32 to nearest even; overflow gives infinity (f8e4m3: NaN), NaN stays NaN.
Id f32_to_small(Graph& g, Id x, DType dtype) {
  const Format f = format_of(dtype);
  Bits b{g};
  const Id bits = b.as_bits(x);
  const Id sign = b.op(Op::Shl, b.op(Op::Shr, bits, 31), f.sign_bit());
  const Id magnitude = b.op(Op::And, bits, 0x7fffffff);
  const int drop = 23 - f.mantissa_bits;
  // Normal results: rebias, then round by adding; a carry into the exponent rounds up.
  const int64_t rebias = static_cast<int64_t>(127 - f.bias()) << 23;
  const Id odd = b.op(Op::And, b.op(Op::Shr, magnitude, drop), 1);
  const Id rounded =
      g.binary(Op::Add, b.op(Op::Add, magnitude, (int64_t{1} << (drop - 1)) - 1), odd);
  const Id normal = b.op(Op::Shr, b.op(Op::Sub, rounded, rebias), drop);
  // Subnormal results: adding a power of two makes the f32 addition round.
  const double magic = std::ldexp(1.0, 1 - f.bias() + drop);
  const Id sum = g.binary(Op::Add, b.as_float(magnitude), g.constant(DType::F32, magic));
  const Id subnormal =
      b.op(Op::Sub, b.as_bits(sum), static_cast<int64_t>(127 + 1 - f.bias() + drop) << 23);
  const int64_t smallest_normal = static_cast<int64_t>(127 + 1 - f.bias()) << 23;
  const Id finite = f.exponent_bits == 8
                        ? normal
                        : g.where(b.op(Op::CmpLt, magnitude, smallest_normal), subnormal, normal);
  // Overflow appears in the rounded result; infinity and NaN are large from the start.
  const int64_t overflow =
      f.has_infinity ? f.largest_exponent_bits() : (int64_t{1} << f.sign_bit()) - 1;
  const int64_t nan = f.has_infinity ? overflow | int64_t{1} << (f.mantissa_bits - 1) : overflow;
  const Id fits = b.op(Op::CmpLt, finite, overflow);
  const Id in_range = b.op(Op::CmpLt, magnitude, 0x7f800000);
  const Id bounded = g.where(g.binary(Op::And, fits, in_range), finite, b.c(overflow));
  const Id is_nan = g.binary(Op::CmpLt, b.c(0x7f800000), magnitude);
  const Id result = g.binary(Op::Or, g.where(is_nan, b.c(nan), bounded), sign);
  return g.add(Op::Bitcast, dtype, {g.cast(result, f.bits)});
}

// Whether f32 holds every value of the dtype.
bool fits_f32(DType dtype) {
  return dtype == DType::F32 || size_of(dtype) < 4;
}

Id from_small_float(Graph& g, const Match& m) {
  return g.cast(small_to_f32(g, m[x]), g[m.root].dtype);
}
Id to_small_float(Graph& g, const Match& m) {
  const bool fits = fits_f32(g[m[x]].dtype);
  return f32_to_small(g, fits ? g.cast(m[x], DType::F32) : to_odd_f32(g, m[x]), g[m.root].dtype);
}

// clang-format off
constexpr Rule kSmallFloats[] = {
    rule("from-small-float", cast(of_class(x, kSmallFloatClass)), code<from_small_float>,
         when(check<lacks_source_cast>)),
    rule("to-small-float", of_class(cast(x), kSmallFloatClass), code<to_small_float>,
         when(check<lacks_result_cast>)),
};
// clang-format on
}  // namespace

// The nearest f32, moved by one unit towards x if it is inexact and even. Casting it back may
// exceed the range of an integer dtype, but only for f32 values that no smaller format
// distinguishes from their neighbours.
Id to_odd_f32(Graph& g, Id x) {
  Bits b{g};
  const DType dtype = g[x].dtype;
  const Id nearest = g.cast(x, DType::F32), back = g.cast(nearest, dtype),
           bits = b.as_bits(nearest);
  const Id below = g.binary(Op::CmpLt, back, x), above = g.binary(Op::CmpLt, x, back);
  const Id negative = b.op(Op::CmpNe, b.op(Op::Shr, bits, 31), 0);
  const Id grow = g.where(g.where(negative, above, below), b.c(1), b.c(0));
  const Id shrink = g.where(g.where(negative, below, above), b.c(1), b.c(0));
  const Id moved = g.binary(Op::Sub, g.binary(Op::Add, bits, grow), shrink);
  const Id is_odd = b.op(Op::CmpNe, b.op(Op::And, bits, 1), 0);
  return b.as_float(g.where(is_odd, bits, moved));
}

std::span<const Rule> small_float_rules() {
  return kSmallFloats;
}

std::span<const Rule> small_integer_rules() {
  return kSmallIntegers;
}

}  // namespace plugrad::codegen
