// Replaces basic ops by other basic ops.
//   before   max i32 %a, %b        after   where (cmplt %a, %b), %b, %a
#include <cmath>

#include "codegen/lowering/float_math.h"
#include "codegen/lowering/lowering.h"
#include "ir/random/threefry.h"

namespace plugrad::codegen {
namespace {
using namespace rules;

bool has(const Graph& g, const Match& m, Op op) {
  return m.context<Lowering>().has(op, operand_dtype(g, g[m.root]));
}
bool lacks_but_has(const Graph& g, const Match& m, Op op) {
  return lacks_op_beside_add(g, m) && has(g, m, op);
}
bool but_adds(const Graph& g, const Match& m) {
  return lacks_but_has(g, m, Op::Add);
}
bool but_multiplies(const Graph& g, const Match& m) {
  return lacks_but_has(g, m, Op::Mul);
}
bool but_orders(const Graph& g, const Match& m) {
  return lacks_but_has(g, m, Op::CmpLt);
}
bool but_tells_equal(const Graph& g, const Match& m) {
  return lacks_but_has(g, m, Op::CmpEq);
}
bool but_tells_different(const Graph& g, const Match& m) {
  return lacks_but_has(g, m, Op::CmpNe);
}
bool but_masks(const Graph& g, const Match& m) {
  return lacks_but_has(g, m, Op::And) && m.context<Lowering>().has(Op::Cast, DType::Bool);
}

// Selects floats by their bits.
Id choose_bits(Graph& g, const Match& m) {
  const DType bits = g[m.root].dtype == DType::F64 ? DType::U64 : DType::U32;
  const auto as_bits = [&](Id value) { return g.add(Op::Bitcast, bits, {value}); };
  return g.add(Op::Bitcast, g[m.root].dtype,
               {g.add(Op::Where, bits, {m[x], as_bits(m[y]), as_bits(m[z])})});
}

// In f64 the product of two f32 is exact, and their sum, rounded to odd, rounds to f32 as the exact
// sum does.
Id fma_in_f64(Graph& g, const Match& m) {
  if (g[m.root].dtype != DType::F32 || !m.context<Lowering>().has(Op::Add, DType::F64))
    return kNoMatch;
  const auto wide = [&](Id value) { return g.cast(value, DType::F64); };
  const Id product = g.binary(Op::Mul, wide(m[x]), wide(m[y])), addend = wide(m[z]),
           sum = g.binary(Op::Add, product, addend);
  const Id added = g.binary(Op::Sub, sum, product);
  const Id error = g.binary(Op::Add, g.binary(Op::Sub, product, g.binary(Op::Sub, sum, added)),
                            g.binary(Op::Sub, addend, added));
  const Id zero = g.constant(DType::F64, 0.0), bits = g.add(Op::Bitcast, DType::I64, {sum});
  const auto i64 = [&](int64_t v) { return g.constant(DType::I64, v); };
  const Id grows =
      g.binary(Op::CmpEq, g.binary(Op::CmpLt, zero, error), g.binary(Op::CmpLt, zero, sum));
  const Id inexact =
      g.binary(Op::Or, g.binary(Op::CmpLt, error, zero), g.binary(Op::CmpLt, zero, error));
  const Id even = g.binary(Op::CmpEq, g.binary(Op::And, bits, i64(1)), i64(0));
  const Id moved = g.binary(Op::Add, bits, g.where(grows, i64(1), i64(-1)));
  const Id odd = g.where(g.binary(Op::And, inexact, even), moved, bits);
  return g.cast(g.add(Op::Bitcast, DType::F64, {odd}), DType::F32);
}

// The mask is all ones if the condition holds.
Id choose_by_mask(Graph& g, const Match& m) {
  const DType dtype = g[m.root].dtype;
  const Id mask = g.unary(Op::Neg, g.cast(m[x], dtype));
  const Id other = g.binary(Op::Xor, mask, g.constant(dtype, int64_t{-1}));
  return g.binary(Op::Or, g.binary(Op::And, m[y], mask), g.binary(Op::And, m[z], other));
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

// A word of u32 as a node. Its operators are friends, which do not hide those of patterns.
struct WordNode {
  Graph* g;
  Id id;

  WordNode by(Op op, WordNode other) const { return {g, g->binary(op, id, other.id)}; }
  WordNode by(Op op, uint32_t number) const {
    return by(op, WordNode{g, g->constant(DType::U32, int64_t{number})});
  }
  friend WordNode operator+(WordNode a, auto b) { return a.by(Op::Add, b); }
  friend WordNode operator^(WordNode a, auto b) { return a.by(Op::Xor, b); }
  friend WordNode operator|(WordNode a, WordNode b) { return a.by(Op::Or, b); }
  friend WordNode operator<<(WordNode a, uint32_t by) { return a.by(Op::Shl, by); }
  friend WordNode operator>>(WordNode a, uint32_t by) { return a.by(Op::Shr, by); }
};

Id make_threefry(Graph& g, const Match& m) {
  const auto s = g.sources(m.root);
  const auto word = [&](size_t i) { return WordNode{&g, s[i]}; };
  const auto words = threefry<WordNode>({word(0), word(1)}, {word(2), word(3)});
  return words[g[m.root].op == Op::Threefry1].id;
}

constexpr Pattern real(const Pattern& a) {
  return of_class(a, kRealClass);
}
constexpr Pattern integer(const Pattern& a) {
  return of_class(a, kIntClass);
}

// NaN wins on either side of a maximum: y < NaN is false, and a value that differs from itself is
// taken.
// clang-format off
constexpr Rule kBasic[] = {
    rule("sub-is-add-neg", x - y,              x + -y,             when(check<but_adds>)),
    rule("neg-is-times",   -x,                 x * -1,             when(check<but_multiplies>)),
    rule("recip-is-fdiv", recip(x), fdiv(1, x), when(check<lacks_op_beside_add>)),
    rule("max-is-choice",  integer(max(y, x)), where(x < y, y, x), when(check<but_orders>)),
    rule("fmax-is-choice", real(max(y, x)), where(y != y, y, where(x < y, y, x)),
         when(check<but_orders>)),
    rule("equal-is-not-differ", x == y, (x != y) ^ true, when(check<but_tells_different>)),
    rule("differ-is-not-equal", x != y, (x == y) ^ true, when(check<but_tells_equal>)),
    rule("fma-is-mul-add", integer(fma(x, y, z)), x * y + z, when(check<lacks_op_beside_add>)),
    rule("fma-in-f64", real(fma(x, y, z)), code<fma_in_f64>, when(check<lacks_op_beside_add>)),
    rule("choice-of-bits", real(where(x, y, z)), code<choose_bits>,
         when(check<lacks_op_beside_add>)),
    rule("threefry-first", any_of(x, Op::Threefry0), code<make_threefry>),
    rule("threefry-second", any_of(x, Op::Threefry1), code<make_threefry>),
    rule("trunc-by-cast", real(trunc(x)), code_of_x<make_trunc>, when(check<lacks_op_beside_add>)),
    rule("choice-by-mask", integer(where(x, y, z)), code<choose_by_mask>, when(check<but_masks>)),
};
// clang-format on
}  // namespace

std::span<const Rule> basic_rules() {
  return kBasic;
}

}  // namespace plugrad::codegen
