// Constant folding, also of integer nodes whose bounds leave one value.
#include "ir/fold.h"
#include "ir/range.h"
#include "symbolic/rules/tables.h"

namespace plugrad {
namespace {
using namespace rules;

Id fold_node(Graph& g, const Match& m) {
  const Node& n = g[m.root];
  const auto bits = fold(g, n.op, n.dtype, g.sources(n));
  return bits ? g.add(Op::Const, n.dtype, {}, *bits) : kNoMatch;
}

// Not for U64, whose bounds are clamped, nor for the ends of int64_t, which may be saturated.
Id only_value(Graph& g, const Match& m) {
  const Interval values = m.context<Algebra>().bounds[m.root];
  const DType dtype = g[m.root].dtype;
  const bool exact = values.lo != INT64_MIN && values.hi != INT64_MAX && dtype != DType::U64;
  if (g[m.root].op == Op::Range && is_bounded(g[m.root]))
    return kNoMatch;  // it may be an empty loop
  return values.is_const() && exact ? g.constant(dtype, values.lo) : kNoMatch;
}

constexpr Pattern value_of(Op op) {
  return of_class(any_of(x, op), kIntegerClass | kBoolClass);
}

// clang-format off
constexpr Rule kConstants[] = {
    rule("fold-neg",      node(Op::Neg, c0),           code<fold_node>),
    rule("fold-recip",    node(Op::Recip, c0),         code<fold_node>),
    rule("fold-sqrt",     node(Op::Sqrt, c0),          code<fold_node>),
    rule("fold-trunc",    node(Op::Trunc, c0),         code<fold_node>),
    rule("fold-cast",     node(Op::Cast, c0),          code<fold_node>),
    rule("fold-bitcast",  node(Op::Bitcast, c0),       code<fold_node>),
    rule("fold-exp2",     node(Op::Exp2, c0),          code<fold_node>),
    rule("fold-log2",     node(Op::Log2, c0),          code<fold_node>),
    rule("fold-sin",      node(Op::Sin, c0),           code<fold_node>),
    rule("fold-exp",      node(Op::Exp, c0),           code<fold_node>),
    rule("fold-log",      node(Op::Log, c0),           code<fold_node>),
    rule("fold-pow",      node(Op::Pow, c0, c1),       code<fold_node>),
    rule("fold-cos",      node(Op::Cos, c0),           code<fold_node>),
    rule("fold-tan",      node(Op::Tan, c0),           code<fold_node>),
    rule("fold-add",      node(Op::Add, c0, c1),       code<fold_node>),
    rule("fold-sub",      node(Op::Sub, c0, c1),       code<fold_node>),
    rule("fold-mul",      node(Op::Mul, c0, c1),       code<fold_node>),
    rule("fold-idiv",     node(Op::IDiv, c0, c1),      code<fold_node>),
    rule("fold-mod",      node(Op::Mod, c0, c1),       code<fold_node>),
    rule("fold-floordiv", node(Op::FloorDiv, c0, c1),  code<fold_node>),
    rule("fold-floormod", node(Op::FloorMod, c0, c1),  code<fold_node>),
    rule("fold-max",      node(Op::Max, c0, c1),       code<fold_node>),
    rule("fold-fdiv",     node(Op::FDiv, c0, c1),      code<fold_node>),
    rule("fold-and",      node(Op::And, c0, c1),       code<fold_node>),
    rule("fold-or",       node(Op::Or, c0, c1),        code<fold_node>),
    rule("fold-xor",      node(Op::Xor, c0, c1),       code<fold_node>),
    rule("fold-shl",      node(Op::Shl, c0, c1),       code<fold_node>),
    rule("fold-shr",      node(Op::Shr, c0, c1),       code<fold_node>),
    rule("fold-cmplt",    node(Op::CmpLt, c0, c1),     code<fold_node>),
    rule("fold-cmpeq",    node(Op::CmpEq, c0, c1),     code<fold_node>),
    rule("fold-cmpne",    node(Op::CmpNe, c0, c1),     code<fold_node>),
    rule("fold-fma",      node(Op::Fma, c0, c1, c2),   code<fold_node>),
    rule("fold-where",    node(Op::Where, c0, c1, c2), code<fold_node>),

    rule("one-value-range",    value_of(Op::Range),    code<only_value>),
    rule("one-value-add",      value_of(Op::Add),      code<only_value>),
    rule("one-value-mul",      value_of(Op::Mul),      code<only_value>),
    rule("one-value-idiv",     value_of(Op::IDiv),     code<only_value>),
    rule("one-value-mod",      value_of(Op::Mod),      code<only_value>),
    rule("one-value-floordiv", value_of(Op::FloorDiv), code<only_value>),
    rule("one-value-floormod", value_of(Op::FloorMod), code<only_value>),
    rule("one-value-max",      value_of(Op::Max),      code<only_value>),
    rule("one-value-and",      value_of(Op::And),      code<only_value>),
    rule("one-value-or",       value_of(Op::Or),       code<only_value>),
    rule("one-value-xor",      value_of(Op::Xor),      code<only_value>),
    rule("one-value-shl",      value_of(Op::Shl),      code<only_value>),
    rule("one-value-shr",      value_of(Op::Shr),      code<only_value>),
    rule("one-value-cmplt",    value_of(Op::CmpLt),    code<only_value>),
    rule("one-value-cmpeq",    value_of(Op::CmpEq),    code<only_value>),
    rule("one-value-cmpne",    value_of(Op::CmpNe),    code<only_value>),
    rule("one-value-where",    value_of(Op::Where),    code<only_value>),
    rule("one-value-cast",     value_of(Op::Cast),     code<only_value>),
};
// clang-format on
}  // namespace

std::span<const Rule> constant_rules() {
  return kConstants;
}

}  // namespace plugrad
