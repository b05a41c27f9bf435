// Floats and integers of 8 and 16 bits are computed in f32, i32 and u32, bools in words that are 0
// or 1.
//   before   add f16 %a, %b        after   cast f16 (add f32 (cast f32 %a), (cast f32 %b))
// The low bits of small integers do not depend on the bits above. f16 and bf16 have so few bits
// that add, multiply, divide and square root round correctly when rounded in f32 first; fused
// multiply-add does not, and has no rule.
#include "codegen/kernel.h"
#include "codegen/lowering/lowering.h"

namespace plugrad::codegen {
namespace {

using namespace rules;

constexpr uint64_t kFloatOps =
    set_of({Op::Add, Op::Sub, Op::Mul, Op::Neg, Op::Max, Op::Recip, Op::FDiv, Op::Sqrt, Op::Trunc,
            Op::Mod, Op::Where, Op::Exp2, Op::Log2, Op::Sin});
constexpr uint64_t kIntegerOps =
    set_of({Op::Add, Op::Sub, Op::Mul, Op::Neg, Op::Max, Op::IDiv, Op::Mod, Op::Fma, Op::And,
            Op::Or, Op::Xor, Op::Shl, Op::Shr, Op::Where});
constexpr uint64_t kCompares = set_of({Op::CmpLt, Op::CmpEq, Op::CmpNe});

DType compute_dtype(DType dtype) {
  if (is_float(dtype)) return DType::F32;
  return is_unsigned(dtype) ? DType::U32 : DType::I32;
}

// The f32 that a small float was rounded from, if it is exact, or that a number is.
Id f32_of(Graph& g, const Match& m, Id value) {
  const Node& n = g[value];
  if (n.op == Op::Const && is_small_float(n.dtype))
    return g.constant(DType::F32, const_float(g, value));
  if (n.op == Op::Scalar && is_small_float(n.dtype))
    return make_scalar(g, scalar_number(g, value), DType::F32, is_negated(g, value));
  return m.context<Lowering>().exact(value);
}

Id in_compute_dtype(Graph& g, const Match& m, Id value, DType wide) {
  const Id exact = wide == DType::F32 ? f32_of(g, m, value) : kNoId;
  return exact != kNoId ? exact : g.cast(value, wide);
}

Id upper_half(Graph& g, Id wide) {
  const Id bits = g.add(Op::Bitcast, DType::U32, {wide});
  const Id upper = g.binary(Op::Shr, bits, g.constant(DType::U32, int64_t{16}));
  return g.add(Op::Bitcast, DType::BF16, {g.cast(upper, DType::U16)});
}

// A maximum of small floats is one of them: its f32 is noted as exact, and a bf16 is its upper
// half.
Id rounded(Graph& g, const Match& m, Id wide, Op op) {
  const DType dtype = g[m.root].dtype;
  if (!is_small_float(dtype) || (op != Op::Max && op != Op::Neg)) return g.cast(wide, dtype);
  Lowering& device = m.context<Lowering>();
  const bool by_bits = dtype == DType::BF16 && device.has(Op::Shr, DType::U32) &&
                       device.casts(DType::U16) && device.has(Op::Bitcast, DType::BF16);
  const Id small = by_bits ? upper_half(g, wide) : g.cast(wide, dtype);
  device.record_exact(small, wide);
  return small;
}

Id use_compute_dtype(Graph& g, const Match& m) {
  const Op op = g[m.root].op;
  const DType wide = compute_dtype(operand_dtype(g, g[m.root]));
  std::vector<Id> sources;
  for (Id s : g.sources(m.root))
    sources.push_back(g[s].dtype == DType::Bool ? s : in_compute_dtype(g, m, s, wide));
  if (is_compare(op)) return g.add(op, DType::Bool, sources);
  return rounded(g, m, g.add(op, wide, sources, g[m.root].arg), op);
}

Id reduce_in_compute_dtype(Graph& g, const Match& m) {
  const ReduceParts parts = reduce_parts(g, m.root);
  const std::vector<Id> ranges = to_vector(parts.ranges);
  std::vector<Id> values;
  for (Id v : parts.values) values.push_back(in_compute_dtype(g, m, v, compute_dtype(g[v].dtype)));
  const Op op = parts.op;
  return rounded(g, m, make_reduce(g, op, values, ranges), op);
}

Id exact_f32(Graph& g, const Match& m) {
  return g[m.root].dtype == DType::F32 ? f32_of(g, m, m[x]) : kNoMatch;
}

// clang-format off
constexpr Rule kNarrow[] = {
    rule("cast-of-exact", of_class(cast(of_class(x, kSmallFloatClass)), kRealClass),
         code<exact_f32>),
    rule("small-float-in-f32", of_class(one_of(kFloatOps), kSmallFloatClass),
         code<use_compute_dtype>, when(check<lacks_op>)),
    rule("small-exp-in-f32", of_class(any_of(x, Op::Exp), kSmallFloatClass), code<use_compute_dtype>),
    rule("small-log-in-f32", of_class(any_of(x, Op::Log), kSmallFloatClass), code<use_compute_dtype>),
    rule("small-pow-in-f32", of_class(any_of(x, Op::Pow), kSmallFloatClass), code<use_compute_dtype>),
    rule("small-cos-in-f32", of_class(any_of(x, Op::Cos), kSmallFloatClass), code<use_compute_dtype>),
    rule("small-tan-in-f32", of_class(any_of(x, Op::Tan), kSmallFloatClass), code<use_compute_dtype>),
    rule("small-int-in-words", of_class(one_of(kIntegerOps), kSmallIntClass),
         code<use_compute_dtype>, when(check<lacks_op>)),
    rule("compare-in-f32", one_of(kCompares, of_class(x, kSmallFloatClass), y),
         code<use_compute_dtype>, when(check<lacks_op>)),
    rule("compare-in-words", one_of(kCompares, of_class(x, kSmallIntClass), y),
         code<use_compute_dtype>, when(check<lacks_op>)),
    rule("reduce-in-f32", of_class(any_of(x, Op::Reduce), kSmallFloatClass),
         code<reduce_in_compute_dtype>, when(check<lacks_reduce>)),
    rule("reduce-in-words", of_class(any_of(x, Op::Reduce), kSmallIntClass),
         code<reduce_in_compute_dtype>, when(check<lacks_reduce>)),
};
// clang-format on

constexpr uint64_t kBoolOps = set_of({Op::Add, Op::Sub, Op::Mul, Op::Neg, Op::Max, Op::IDiv,
                                      Op::Mod, Op::And, Op::Or, Op::Xor, Op::Shl, Op::Shr});

Id word_of(Graph& g, Id condition, DType word = DType::U32) {
  return g.where(condition, g.constant(word, int64_t{1}), g.constant(word, int64_t{0}));
}
Id truth_of(Graph& g, Id word) {
  return g.binary(Op::CmpNe, word, g.constant(g[word].dtype, int64_t{0}));
}

Id in_words(Graph& g, const Match& m) {
  const Op op = g[m.root].op;
  std::vector<Id> sources;
  for (Id s : g.sources(m.root)) sources.push_back(word_of(g, s));
  if (is_compare(op)) return g.add(op, DType::Bool, sources);
  return truth_of(g, g.add(op, DType::U32, sources));
}

Id choose_words(Graph& g, const Match& m) {
  return truth_of(g, g.where(m[x], word_of(g, m[y]), word_of(g, m[z])));
}

Id reduce_words(Graph& g, const Match& m) {
  const ReduceParts parts = reduce_parts(g, m.root);
  const std::vector<Id> ranges = to_vector(parts.ranges);
  std::vector<Id> values;
  const Op op = parts.op;
  for (Id v : parts.values) values.push_back(word_of(g, v));
  return truth_of(g, make_reduce(g, op, values, ranges));
}

// clang-format off
constexpr Rule kBools[] = {
    rule("bool-in-words", of_class(one_of(kBoolOps), kBoolClass), code<in_words>,
         when(check<lacks_op>)),
    rule("where-in-words", of_class(where(x, y, z), kBoolClass), code<choose_words>,
         when(check<lacks_op>)),
    rule("compare-bools", one_of(kCompares, of_class(x, kBoolClass), y), code<in_words>,
         when(check<lacks_op>)),
    rule("reduce-bools", of_class(any_of(x, Op::Reduce), kBoolClass), code<reduce_words>,
         when(check<lacks_reduce>)),
    rule("test-for-bool",   of_class(cast(x), kBoolClass), x != 0,         when(check<lacks_cast>)),
    rule("choice-for-bool", cast(of_class(x, kBoolClass)), where(x, 1, 0), when(check<lacks_cast>)),
};
// clang-format on

}  // namespace

std::span<const Rule> narrow_rules() {
  return kNarrow;
}

std::span<const Rule> bool_rules() {
  return kBools;
}

}  // namespace plugrad::codegen
