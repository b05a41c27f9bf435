// Floats and integers of 8 and 16 bits are computed in f32, i32 and u32.
//   before   add f16 %a, %b        after   cast f16 (add f32 (cast f32 %a), (cast f32 %b))
// Small integers keep their low bits whatever is above. f16 and bf16 have so few bits that add,
// multiply, divide and square root in f32 round correctly when the result is rounded a second time;
// a fused multiply-add does not, and has no row.
#include "codegen/kernel.h"
#include "codegen/lowering/lowering.h"

namespace plugrad::codegen {
namespace {
using namespace rules;

constexpr uint64_t kFloatOps =
    set_of({Op::Add, Op::Sub, Op::Mul, Op::Neg, Op::Max, Op::Recip, Op::FDiv, Op::Sqrt, Op::Trunc,
            Op::Where, Op::Exp2, Op::Log2, Op::Sin});
constexpr uint64_t kIntegerOps =
    set_of({Op::Add, Op::Sub, Op::Mul, Op::Neg, Op::Max, Op::IDiv, Op::Mod, Op::Fma, Op::And,
            Op::Or, Op::Xor, Op::Shl, Op::Shr, Op::Where});
constexpr uint64_t kCompares = set_of({Op::CmpLt, Op::CmpEq, Op::CmpNe});

DType wide_of(DType dtype) {
  if (is_float(dtype)) return DType::F32;
  return is_unsigned(dtype) ? DType::U32 : DType::I32;
}

Id widened(Graph& g, const Match& m, Id value, DType wide) {
  const Id exact = wide == DType::F32 ? m.context<Lowering>().exact(value) : kNoId;
  return exact != kNoId ? exact : g.cast(value, wide);
}

Id upper_half(Graph& g, Id wide) {
  const Id bits = g.add(Op::Bitcast, DType::U32, {wide});
  const Id upper = g.binary(Op::Shr, bits, g.constant(DType::U32, int64_t{16}));
  return g.add(Op::Bitcast, DType::BF16, {g.cast(upper, DType::U16)});
}

// A maximum of small floats is one of them: its f32 is used as it is, and of bf16 it is the upper
// half.
Id rounded(Graph& g, const Match& m, Id wide, Op op) {
  const DType dtype = g[m.root].dtype;
  if (!is_small_float(dtype) || (op != Op::Max && op != Op::Neg)) return g.cast(wide, dtype);
  Lowering& device = m.context<Lowering>();
  const bool by_bits = dtype == DType::BF16 && device.has(Op::Shr, DType::U32) &&
                       device.casts(DType::U16) && device.has(Op::Bitcast, DType::BF16);
  const Id small = by_bits ? upper_half(g, wide) : g.cast(wide, dtype);
  device.note_exact(small, wide);
  return small;
}

Id compute_wider(Graph& g, const Match& m) {
  const Op op = g[m.root].op;
  const DType wide = wide_of(operand_dtype(g, g[m.root]));
  std::vector<Id> sources;
  for (Id s : g.sources(m.root))
    sources.push_back(g[s].dtype == DType::Bool ? s : widened(g, m, s, wide));
  if (is_compare(op)) return g.add(op, DType::Bool, sources);
  return rounded(g, m, g.add(op, wide, sources, g[m.root].arg), op);
}

Id reduce_wider(Graph& g, const Match& m) {
  const ReduceParts parts = reduce_parts(g, m.root);
  const std::vector<Id> ranges(parts.ranges.begin(), parts.ranges.end());
  std::vector<Id> values;
  for (Id v : parts.values) values.push_back(widened(g, m, v, wide_of(g[v].dtype)));
  const Op op = parts.op;
  return rounded(g, m, make_reduce(g, op, values, ranges), op);
}

// The f32 that a small float was made of.
Id exact_f32(Graph& g, const Match& m) {
  return g[m.root].dtype == DType::F32 ? m.context<Lowering>().exact(m[x]) : kNoMatch;
}

// clang-format off
constexpr Rule kNarrow[] = {
    rule("cast-of-exact", of_class(cast(of_class(x, kSmallFloatClass)), kRealClass),
         code<exact_f32>),
    rule("small-float-in-f32", of_class(one_of(kFloatOps), kSmallFloatClass), code<compute_wider>,
         when(check<lacks_op>)),
    rule("small-int-in-words", of_class(one_of(kIntegerOps), kSmallIntClass), code<compute_wider>,
         when(check<lacks_op>)),
    rule("compare-in-f32", one_of(kCompares, of_class(x, kSmallFloatClass), y), code<compute_wider>,
         when(check<lacks_op>)),
    rule("compare-in-words", one_of(kCompares, of_class(x, kSmallIntClass), y), code<compute_wider>,
         when(check<lacks_op>)),
    rule("reduce-in-f32", of_class(any_of(x, Op::Reduce), kSmallFloatClass), code<reduce_wider>,
         when(check<lacks_reduce>)),
    rule("reduce-in-words", of_class(any_of(x, Op::Reduce), kSmallIntClass), code<reduce_wider>,
         when(check<lacks_reduce>)),
};
// clang-format on
}  // namespace

std::span<const Rule> narrow_rules() {
  return kNarrow;
}

}  // namespace plugrad::codegen
