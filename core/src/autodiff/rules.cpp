#include "autodiff/rules.h"

#include <numbers>

#include "autodiff/parts.h"
#include "base/check.h"
#include "ir/user.h"

namespace plugrad::autodiff {

std::vector<int64_t> Step::shape(Id id) {
  const auto sizes = context_.shapes[id];
  return {sizes.begin(), sizes.end()};
}

std::vector<int64_t> Step::arg() const {
  const auto list = graph.arg_list(node_);
  return {list.begin(), list.end()};
}

Id Step::mul(Id a, Id b) {
  const Id one = number(1.0);
  if (a == one) return b;
  return b == one ? a : graph.binary(Op::Mul, a, b);
}

Id Step::move(Op op, Id a, const std::vector<int64_t>& list) {
  return graph.add(op, graph[a].dtype, {a}, graph.list(list));
}

Id Step::masked(Id a, const std::vector<int64_t>& axes, Op op) {
  if (context_.extents == nullptr) return a;
  return BoundedGraph{graph, context_.shapes, *context_.extents}.masked(a, axes, op);
}

bool Step::is_counted(Id a, int64_t axis) {
  return context_.extents != nullptr &&
         (*context_.extents)[a][static_cast<size_t>(axis)].is_counted();
}

Id Step::whole(Id a, int64_t axis) {
  if (context_.extents == nullptr) return a;
  const Id zero = graph.constant(graph[a].dtype, 0.0);
  return BoundedGraph{graph, context_.shapes, *context_.extents}.whole(a, axis, zero);
}

Id Step::reduce(Op op, Id a, const std::vector<int64_t>& axes) {
  if (axes.empty()) return a;
  std::vector<int64_t> list = {static_cast<int64_t>(op)};
  list.insert(list.end(), axes.begin(), axes.end());
  return move(Op::Reduce, masked(a, axes, op), list);
}

Id Step::spread(Id a, const std::vector<int64_t>& to) {
  const std::vector<int64_t> from = shape(a);
  if (from == to) return a;
  if (from.empty()) a = move(Op::Reshape, a, std::vector<int64_t>(to.size(), 1));
  return shape(a) == to ? a : move(Op::Expand, a, to);
}

// Nothing equals a maximum that is NaN: with 0 of them a share is infinite.
Id share_of_maxima(Step& s, const std::vector<int64_t>& axes) {
  const Id is_max = s.graph.binary(Op::CmpEq, s.x(0), s.spread(s.y(), s.shape(s.x(0))));
  const Id count = s.sum(s.graph.cast(is_max, s.dtype()), axes);
  return s.graph.binary(Op::FDiv, s.g(), count);
}

namespace {

// ---- Arithmetic ----
void add(Step& s) {
  s.flow(0, s.g());
  s.flow(1, s.g());
}

void sub(Step& s) {
  s.flow(0, s.g());
  s.flow(1, s.neg(s.g()));
}

void mul(Step& s) {
  s.flow(0, s.mul(s.g(), s.x(1)));
  s.flow(1, s.mul(s.g(), s.x(0)));
}

void negate(Step& s) {
  s.flow(0, s.neg(s.g()));
}

void divide(Step& s) {
  const Id by = s.graph.binary(Op::FDiv, s.g(), s.x(1));
  s.flow(0, by);
  s.flow(1, s.neg(s.mul(by, s.y())));
}

void reciprocal(Step& s) {
  s.flow(0, s.neg(s.mul(s.g(), s.mul(s.y(), s.y()))));
}

/// The larger source takes it; equal ones take half each. Beside a NaN, which is no less and no
/// more, both take it.
void maximum(Step& s) {
  Graph& g = s.graph;
  const Id half = s.mul(s.g(), s.number(0.5)), zero = s.number(0.0);
  const Id share = g.where(g.binary(Op::CmpEq, s.x(0), s.x(1)), half, s.g());
  s.flow(0, g.where(g.binary(Op::CmpLt, s.x(0), s.x(1)), zero, share));
  s.flow(1, g.where(g.binary(Op::CmpLt, s.x(1), s.x(0)), zero, share));
}

void square_root(Step& s) {
  s.flow(0, s.graph.binary(Op::FDiv, s.mul(s.g(), s.number(0.5)), s.y()));
}

void exp2(Step& s) {
  s.flow(0, s.mul(s.g(), s.mul(s.y(), s.number(std::numbers::ln2))));
}

void log2(Step& s) {
  s.flow(0, s.graph.binary(Op::FDiv, s.g(), s.mul(s.x(0), s.number(std::numbers::ln2))));
}

/// cos x as 1 - 2 sin²(x/2): pi/2 - x would lose what a large x has before its point.
void sine(Step& s) {
  Graph& g = s.graph;
  const Id half = g.unary(Op::Sin, s.mul(s.x(0), s.number(0.5)));
  const Id square = g.binary(Op::Mul, half, half);
  const Id cosine = g.binary(Op::Sub, s.number(1.0), s.mul(square, s.number(2.0)));
  s.flow(0, s.mul(s.g(), cosine));
}

void fused_multiply_add(Step& s) {
  s.flow(0, s.mul(s.g(), s.x(1)));
  s.flow(1, s.mul(s.g(), s.x(0)));
  s.flow(2, s.g());
}

void truncate(Step& s) {
  s.flow(0, s.number(0.0));
}

bool is_const_zero(const Graph& g, Id x) {
  while (is_movement(g[x].op) || g[x].op == Op::Cast) x = g[x].src[0];
  return g[x].op == Op::Const && g[x].arg == 0;
}

/// Whether `node` is relu of its last source: where(x < 0 | x == 0, 0, x).
bool is_relu(const Graph& g, Id node) {
  const auto src = g.sources(node);
  const auto compares = [&](Id c, Op op) {
    return g[c].op == op && g[c].src[0] == src[2] && is_const_zero(g, g[c].src[1]);
  };
  const Node& c = g[src[0]];
  if (c.op != Op::Or || !is_const_zero(g, src[1])) return false;
  return (compares(c.src[0], Op::CmpLt) && compares(c.src[1], Op::CmpEq)) ||
         (compares(c.src[1], Op::CmpLt) && compares(c.src[0], Op::CmpEq));
}

/// The value of a relu tells where it was cut off: then nobody needs what it was made of.
void choose(Step& s) {
  Graph& g = s.graph;
  if (const auto first = prefix_of(s)) {
    s.flow(1, flow_within(s, first->axis, 0, first->count));
    s.flow(2, flow_within(s, first->axis, first->count, s.shape(s.y())[first->axis]));
    return;
  }
  const Id zero = s.number(0.0);
  const Id chosen = is_relu(g, s.y()) ? g.binary(Op::CmpEq, s.y(), zero) : s.x(0);
  s.flow(1, g.where(chosen, s.g(), zero));
  s.flow(2, g.where(chosen, zero, s.g()));
}

void cast(Step& s) {
  s.flow(0, s.graph.cast(s.g(), s.graph[s.x(0)].dtype));
}
void pass(Step& s) {
  s.flow(0, s.g());
}
void copy(Step& s) {
  s.flow(0, s.graph.add(Op::Copy, s.dtype(), {s.g()}, s.device(s.x(0))));
}

// ---- Movement: the transposed movement ----
void reshape(Step& s) {
  s.flow(0, s.shape(s.g()).empty() && !s.shape(s.y()).empty()
                ? s.g()
                : s.move(Op::Reshape, s.g(), s.shape(s.x(0))));
}

void permute(Step& s) {
  const std::vector<int64_t> order = s.arg();
  std::vector<int64_t> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  s.flow(0, s.move(Op::Permute, s.full_g(), inverse));
}

void expand(Step& s) {
  const std::vector<int64_t> from = s.shape(s.x(0)), to = s.shape(s.y());
  std::vector<int64_t> repeated;
  for (size_t i = 0; i < to.size(); ++i)
    if (from[i] != to[i]) repeated.push_back(static_cast<int64_t>(i));
  s.flow(0, s.sum(s.full_g(), repeated));
}

void pad(Step& s) {
  const std::vector<int64_t> pads = s.arg(), inner = s.shape(s.x(0));
  std::vector<int64_t> box;
  for (size_t i = 0; i < inner.size(); ++i)
    box.insert(box.end(), {pads[2 * i], pads[2 * i] + inner[i]});
  s.flow(0, cut(s, s.full_g(), box));
}

void shrink(Step& s) {
  const std::vector<int64_t> box = s.arg(), outer = s.shape(s.x(0));
  std::vector<int64_t> pads, moved;
  for (size_t i = 0; i < outer.size(); ++i) {
    pads.insert(pads.end(), {box[2 * i], outer[i] - box[2 * i + 1]});
    if (pads[2 * i] != 0 || pads[2 * i + 1] != 0) moved.push_back(static_cast<int64_t>(i));
  }
  s.flow(0, s.move(Op::Pad, s.masked(s.full_g(), moved), pads));
}

/// What lies behind the extent is not read: its gradient is 0, and there where x has elements.
void bounded(Step& s) {
  const int64_t axis = s.arg()[0];
  const Id g = s.full_g();
  s.flow(0, s.is_counted(s.x(0), axis) ? s.masked(g, {axis}) : s.whole(g, axis));
}

/// Of call 0: what the value was computed of does not matter. Of checked indices of a loop: a
/// gradient of what they gave is checked as well.
void slope(Step& s) {
  const Node& node = s.graph[s.y()];
  if (is_range_check(node)) {
    const uint64_t arg = node.arg;
    s.flow(0, s.graph.add(Op::Function, s.graph[s.g()].dtype, {s.g(), s.x(1)}, arg));
    return;
  }
  s.flow(1, s.mul(s.g(), s.x(2)));
}

void flip(Step& s) {
  s.flow(0, s.move(Op::Flip, s.full_g(), s.arg()));
}

// ---- Reductions ----
/// All equal maxima share it. Of a row that has a NaN what the others take, 0 of a share, is NaN.
void reduce_max(Step& s, const std::vector<int64_t>& axes) {
  Graph& g = s.graph;
  const std::vector<int64_t> shape = s.shape(s.x(0));
  const Id is_max = g.binary(Op::CmpEq, s.x(0), s.spread(s.y(), shape));
  const Id share = share_of_maxima(s, axes);
  const Id others = s.mul(share, s.number(0.0));
  s.flow(0, g.where(is_max, s.spread(share, shape), s.spread(others, shape)));
}

/// The product of the others: the whole over the element, unless the element or one of the others
/// is 0.
void reduce_product(Step& s, const std::vector<int64_t>& axes) {
  Graph& g = s.graph;
  const std::vector<int64_t> shape = s.shape(s.x(0));
  const Id zero = s.number(0.0), one = s.number(1.0);
  const Id is_zero = g.binary(Op::CmpEq, s.x(0), zero);
  const Id nonzero = g.where(is_zero, one, s.x(0));
  const Id product = s.reduce(Op::Mul, nonzero, axes);
  const Id zeros = s.sum(g.cast(is_zero, s.dtype()), axes);
  const auto others = [&](double count) {  // of zeros, for this product to count
    return s.spread(
        s.mul(s.g(), g.where(g.binary(Op::CmpEq, zeros, s.number(count)), product, zero)), shape);
  };
  s.flow(0, g.where(is_zero, others(1.0), g.binary(Op::FDiv, others(0.0), nonzero)));
}

void reduce(Step& s) {
  const std::vector<int64_t> list = s.arg(), axes(list.begin() + 1, list.end());
  switch (static_cast<Op>(list[0])) {
    case Op::Add:
      return s.flow(0, s.spread(s.g(), s.shape(s.x(0))));
    case Op::Max:
      return reduce_max(s, axes);
    case Op::Mul:
      return reduce_product(s, axes);
    default:
      fail(ErrorKind::Internal, "a reduction by {} has no derivative",
           op_info(static_cast<Op>(list[0])).name);
  }
}

struct Row {
  Op op;
  Rule rule;
};
// clang-format off
constexpr Row kRules[] = {
    {Op::Add, add},             {Op::Sub, sub},         {Op::Mul, mul},       {Op::Neg, negate},
    {Op::FDiv, divide},         {Op::Recip, reciprocal}, {Op::Max, maximum}, {Op::Sqrt, square_root},
    {Op::Exp2, exp2},           {Op::Log2, log2},       {Op::Sin, sine},      {Op::Where, choose},
    {Op::Fma, fused_multiply_add}, {Op::Trunc, truncate},
    {Op::Cast, cast},           {Op::Contiguous, pass}, {Op::Copy, copy},
    {Op::Reshape, reshape},     {Op::Permute, permute}, {Op::Expand, expand}, {Op::Pad, pad},
    {Op::Shrink, shrink},       {Op::Flip, flip},       {Op::Reduce, reduce},
    {Op::Bounded, bounded},     {Op::Function, slope},
};
// clang-format on

}  // namespace

Rule rule_of(Op op) {
  for (const Row& row : kRules)
    if (row.op == op) return row.rule;
  return nullptr;
}

}  // namespace plugrad::autodiff
