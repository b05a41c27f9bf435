// u32 on i32: u32 arithmetic for devices that have only i32. Both are the same 32 bits.
#include "codegen/kernel.h"
#include "codegen/lowering/float_math.h"
#include "codegen/lowering/lowering.h"

namespace plugrad::codegen {
namespace {
using namespace rules;

constexpr int64_t kLowest = INT32_MIN;

Id signed_of(Graph& g, Id value) {
  return g.add(Op::Bitcast, DType::I32, {value});
}
Id unsigned_of(Graph& g, Id value) {
  return g.add(Op::Bitcast, DType::U32, {value});
}
Id word(Graph& g, int64_t value) {
  return g.constant(DType::I32, value);
}

// Saturates below 0 and above the largest value, as casts of most devices do.
Id cast_to_u32(Graph& g, Id value) {
  const DType from = g[value].dtype;
  if (is_small_float(from)) return g.cast(g.cast(value, DType::F32), DType::U32);
  if (!is_float(from)) return unsigned_of(g, g.cast(value, DType::I32));
  const auto real = [&](double number) { return g.constant(from, number); };
  const Id upper = g.binary(Op::Add, value, real(-0x1p31));
  const Id large = g.binary(Op::Xor, g.cast(upper, DType::I32), word(g, kLowest));
  const Id inside =
      g.where(g.binary(Op::CmpLt, value, real(0x1p31)), g.cast(value, DType::I32), large);
  const Id above = g.where(g.binary(Op::CmpLt, value, real(0x1p32)), inside, word(g, -1));
  return unsigned_of(g, g.where(g.binary(Op::CmpLt, real(0), value), above, word(g, 0)));
}

Id cast_from_u32(Graph& g, const Match& m) {
  const Id bits = signed_of(g, m[x]);
  const DType to = g[m.root].dtype;
  if (is_64_bit_integer(to))
    return g.binary(Op::And, g.cast(bits, to), g.constant(to, int64_t{UINT32_MAX}));
  if (!is_float(to)) return g.cast(bits, to);
  if (is_small_float(to)) return g.cast(to_odd_f32(g, m[x]), to);
  // Both halves and their scaling are exact; only the sum is rounded.
  const Id upper = g.binary(Op::And, g.binary(Op::Shr, bits, word(g, 16)), word(g, 0xffff));
  const Id lower = g.binary(Op::And, bits, word(g, 0xffff));
  const Id placed = g.binary(Op::Mul, g.cast(upper, to), g.constant(to, 65536.0));
  return g.binary(Op::Add, placed, g.cast(lower, to));
}

// Accumulators are i32. Flipping the sign bits maps the order of u32 to that of i32.
Id reduce_signed(Graph& g, const Match& m) {
  const ReduceParts parts = reduce_parts(g, m.root);
  const std::vector<Id> ranges = to_vector(parts.ranges);
  const Op op = parts.op;
  const Id sign = word(g, kLowest);
  std::vector<Id> values;
  for (Id v : parts.values)
    values.push_back(op == Op::Max ? g.binary(Op::Xor, signed_of(g, v), sign)
                                   : g.cast(v, DType::I32));
  const Id reduced = make_reduce(g, op, values, ranges);
  return op == Op::Max ? unsigned_of(g, g.binary(Op::Xor, reduced, sign))
                       : g.cast(reduced, DType::U32);
}

constexpr Pattern i32(const Pattern& a) {
  return bitcast_to(a, DType::I32);
}
// Compares u32 as i32 with flipped sign bits.
constexpr Pattern ordered(const Pattern& a) {
  return i32(a) ^ static_cast<int>(kLowest);
}
constexpr Pattern u32(const Pattern& a) {
  return of_class(a, kU32Class);
}
// Shifts by one with the sign bit cleared, then by the rest; counts of 32 and more give 0 in both
// cases.
constexpr Pattern kShifted =
    where(i32(y) == 0, i32(x), shr(shr(i32(x), 1) & INT32_MAX, i32(y) + -1));

// clang-format off
constexpr Rule kUnsigned[] = {
    rule("u32-add",    u32(x + y),     bitcast(i32(x) + i32(y)),     when(check<lacks_op>)),
    rule("u32-sub",    u32(x - y),     bitcast(i32(x) - i32(y)),     when(check<lacks_op>)),
    rule("u32-mul",    u32(x * y),     bitcast(i32(x) * i32(y)),     when(check<lacks_op>)),
    rule("u32-and",    u32(x & y),     bitcast(i32(x) & i32(y)),     when(check<lacks_op>)),
    rule("u32-or",     u32(x | y),     bitcast(i32(x) | i32(y)),     when(check<lacks_op>)),
    rule("u32-xor",    u32(x ^ y),     bitcast(i32(x) ^ i32(y)),     when(check<lacks_op>)),
    rule("u32-shl",    u32(shl(x, y)), bitcast(shl(i32(x), i32(y))), when(check<lacks_op>)),
    rule("u32-shr",    u32(shr(x, y)), bitcast(kShifted),            when(check<lacks_op>)),
    rule("u32-neg",    u32(-x),        bitcast(-i32(x)),             when(check<lacks_op>)),
    rule("u32-max",    u32(max(y, x)), where(x < y, y, x),           when(check<lacks_op>)),
    rule("u32-where", u32(where(x, y, z)), bitcast(where(x, i32(y), i32(z))),
         when(check<lacks_op>)),
    rule("u32-equal",  u32(x) == y,    i32(x) == i32(y),             when(check<lacks_op>)),
    rule("u32-differ", u32(x) != y,    i32(x) != i32(y),             when(check<lacks_op>)),
    rule("u32-less",   u32(x) < y,     ordered(x) < ordered(y),      when(check<lacks_op>)),
    rule("reduce-u32", u32(any_of(x, Op::Reduce)), code<reduce_signed>, when(check<lacks_reduce>)),
    rule("from-u32", cast(u32(x)), code<cast_from_u32>, when(check<lacks_source_cast>)),
    rule("to-u32", u32(cast(x)), code_of_x<cast_to_u32>, when(check<lacks_result_cast>)),
};
// clang-format on
}  // namespace

std::span<const Rule> u32_rules() {
  return kUnsigned;
}

}  // namespace plugrad::codegen
