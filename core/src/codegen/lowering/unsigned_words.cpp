#include "codegen/lowering/unsigned_words.h"

#include "codegen/claims.h"
#include "codegen/lowering/small_floats.h"

namespace plugrad::codegen {
namespace {

constexpr int64_t kLowest = INT32_MIN;

Id signed_of(Graph& g, Id x) {
  return g.add(Op::Bitcast, DType::I32, {x});
}
Id unsigned_of(Graph& g, Id x) {
  return g.add(Op::Bitcast, DType::U32, {x});
}
Id word(Graph& g, int64_t value) {
  return g.constant(DType::I32, value);
}
// Order of u32 as order of i32.
Id ordered(Graph& g, Id x) {
  return g.binary(Op::Xor, signed_of(g, x), word(g, kLowest));
}

// By one with the sign bit cleared, then by the rest: counts from 32 on give 0 either way.
Id shift_right(Graph& g, Id x, Id count) {
  const Id value = signed_of(g, x), places = signed_of(g, count);
  const Id half = g.binary(Op::And, g.binary(Op::Shr, value, word(g, 1)), word(g, INT32_MAX));
  const Id rest = g.binary(Op::Shr, half, g.binary(Op::Add, places, word(g, -1)));
  return unsigned_of(g, g.where(g.binary(Op::CmpEq, places, word(g, 0)), value, rest));
}

}  // namespace

Id u32_in_i32(Graph& g, Id id) {
  const Node n = g[id];
  switch (n.op) {
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::And:
    case Op::Or:
    case Op::Xor:
    case Op::Shl:
      return unsigned_of(g, g.binary(n.op, signed_of(g, n.src[0]), signed_of(g, n.src[1])));
    case Op::Neg:
      return unsigned_of(g, g.unary(Op::Neg, signed_of(g, n.src[0])));
    case Op::CmpEq:
    case Op::CmpNe:
      return g.binary(n.op, signed_of(g, n.src[0]), signed_of(g, n.src[1]));
    case Op::CmpLt:
      return g.binary(Op::CmpLt, ordered(g, n.src[0]), ordered(g, n.src[1]));
    case Op::Max:
      return g.where(g.binary(Op::CmpLt, n.src[0], n.src[1]), n.src[1], n.src[0]);
    case Op::Where:
      return unsigned_of(g, g.where(n.src[0], signed_of(g, n.src[1]), signed_of(g, n.src[2])));
    case Op::Shr:
      return shift_right(g, n.src[0], n.src[1]);
    default:
      return id;
  }
}

// Below 0 and beyond the largest it saturates, as casts of most devices do.
Id cast_to_u32(Graph& g, Id x) {
  const DType from = g[x].dtype;
  if (is_small_float(from)) return g.cast(g.cast(x, DType::F32), DType::U32);
  if (!is_float(from)) return unsigned_of(g, g.cast(x, DType::I32));
  const auto real = [&](double value) { return g.constant(from, value); };
  const Id upper = g.binary(Op::Add, x, real(-0x1p31));
  const Id large = g.binary(Op::Xor, g.cast(upper, DType::I32), word(g, kLowest));
  const Id inside = g.where(g.binary(Op::CmpLt, x, real(0x1p31)), g.cast(x, DType::I32), large);
  const Id above = g.where(g.binary(Op::CmpLt, x, real(0x1p32)), inside, word(g, -1));
  return unsigned_of(g, g.where(g.binary(Op::CmpLt, real(0), x), above, word(g, 0)));
}

Id cast_from_u32(Graph& g, Id x, DType to) {
  const Id bits = signed_of(g, x);
  if (is_wide_integer(to))
    return g.binary(Op::And, g.cast(bits, to), g.constant(to, int64_t{UINT32_MAX}));
  if (!is_float(to)) return g.cast(bits, to);
  if (is_small_float(to)) return g.cast(to_odd_f32(g, x), to);
  // Both halves are exact, so is their place, and only the sum is rounded.
  const Id upper = g.binary(Op::And, g.binary(Op::Shr, bits, word(g, 16)), word(g, 0xffff));
  const Id lower = g.binary(Op::And, bits, word(g, 0xffff));
  const Id placed = g.binary(Op::Mul, g.cast(upper, to), g.constant(to, 65536.0));
  return g.binary(Op::Add, placed, g.cast(lower, to));
}

}  // namespace plugrad::codegen
