// The table of derivatives. The walk (gradient.cpp) asks for the gradients of the sources of one
// node at a time, and adds them.
//   node     %c = mul %a, %b         row      derivative("mul", x * y, flows(g * y, g * x))
//   flows    to %a: mul %g, %b       to %b: mul %g, %a
#include "autodiff/rules.h"

#include <algorithm>
#include <bit>
#include <numbers>

#include "autodiff/parts.h"
#include "base/check.h"
#include "ir/text/printer.h"
#include "ir/user.h"
#include "rewrite/trace.h"

namespace plugrad::autodiff {

std::vector<int64_t> Vjp::shape(Id id) {
  const auto sizes = context_.shapes[id];
  return {sizes.begin(), sizes.end()};
}

std::vector<int64_t> Vjp::arg() const {
  const auto list = graph.arg_list(node_);
  return {list.begin(), list.end()};
}

Id Vjp::mul(Id a, Id b) {
  const Id one = number(1.0);
  if (a == one) return b;
  return b == one ? a : graph.binary(Op::Mul, a, b);
}

Id Vjp::move(Op op, Id a, const std::vector<int64_t>& list) {
  return graph.add(op, graph[a].dtype, {a}, graph.list(list));
}

Id Vjp::masked(Id a, const std::vector<int64_t>& axes, Op op) {
  if (context_.extents == nullptr) return a;
  return BoundedGraph{graph, context_.shapes, *context_.extents}.masked(a, axes, op);
}

bool Vjp::is_counted(Id a, int64_t axis) {
  return context_.extents != nullptr &&
         (*context_.extents)[a][static_cast<size_t>(axis)].is_counted();
}

Id Vjp::whole(Id a, int64_t axis, double fill) {
  if (context_.extents == nullptr) return a;
  const Id number = graph.constant(graph[a].dtype, fill);
  return BoundedGraph{graph, context_.shapes, *context_.extents}.whole(a, axis, number);
}

Id Vjp::reduce(Op op, Id a, const std::vector<int64_t>& axes) {
  if (axes.empty()) return a;
  std::vector<int64_t> list = {static_cast<int64_t>(op)};
  list.insert(list.end(), axes.begin(), axes.end());
  return move(Op::Reduce, masked(a, axes, op), list);
}

Id Vjp::spread(Id a, const std::vector<int64_t>& to) {
  const std::vector<int64_t> from = shape(a);
  if (from == to) return a;
  if (from.empty()) a = move(Op::Reshape, a, std::vector<int64_t>(to.size(), 1));
  return shape(a) == to ? a : move(Op::Expand, a, to);
}

void Vjp::flow(size_t source, Id gradient) {
  if (gradient == kNoId) return;
  const Id to = x(source);
  flows_[flow_count_++] = {to, gradient, is_alu(graph[node_].op) ? node_ : to};
}

namespace {
using namespace rules;

// The gradient of each of the equal maxima of a Reduce, which share it equally. No element equals a
// NaN maximum: a share of 0 elements is infinite.
Id share_of_maxima(Vjp& s, const std::vector<int64_t>& axes) {
  const Id is_max = s.graph.binary(Op::CmpEq, s.x(0), s.spread(s.y(), s.shape(s.x(0))));
  const Id count = s.sum(s.graph.cast(is_max, s.dtype()), axes);
  return s.graph.binary(Op::FDiv, s.g(), count);
}

// ---- Arithmetic ----
/// The larger source takes the gradient; equal ones take half each. NaN compares as neither: both
/// take it.
void maximum(Vjp& s) {
  Graph& g = s.graph;
  const Id half = s.mul(s.g(), s.number(0.5)), zero = s.number(0.0);
  const Id share = g.where(g.binary(Op::CmpEq, s.x(0), s.x(1)), half, s.g());
  s.flow(0, g.where(g.binary(Op::CmpLt, s.x(0), s.x(1)), zero, share));
  s.flow(1, g.where(g.binary(Op::CmpLt, s.x(1), s.x(0)), zero, share));
}

/// x - q y, whose quotient q is constant where it has a derivative. (x - out) / y is q but for its
/// rounding.
void remainder(Vjp& s) {
  Graph& g = s.graph;
  const Id ratio = g.binary(Op::FDiv, g.binary(Op::Sub, s.x(0), s.y()), s.x(1));
  const Id is_below = g.binary(Op::CmpLt, ratio, s.number(0.0));
  const Id half = g.where(is_below, s.number(-0.5), s.number(0.5));
  const Id q = g.unary(Op::Trunc, g.binary(Op::Add, ratio, half));
  s.flow(0, s.g());
  s.flow(1, g.unary(Op::Neg, s.mul(s.g(), g.unary(Op::Detach, q))));
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

/// The mask comes from the value of the relu: its source need not be kept.
bool guards_relu(const Graph& g, const Match& m) {
  return is_relu(g, m.root);
}

bool joins_parts(const Graph&, const Match& m) {
  return prefix_of(m.context<Vjp>()).has_value();
}

void split(Vjp& s) {
  const Prefix first = *prefix_of(s);
  s.flow(1, flow_within(s, first.axis, 0, first.count));
  s.flow(2, flow_within(s, first.axis, first.count, s.shape(s.y())[first.axis]));
}

/// A value and its parts on a mesh have one gradient. It goes back to a source on one device.
void shard(Vjp& s) {
  const uint32_t from = s.device(s.x(0));
  s.flow(0, from == 0 || from == s.device(s.y()) ? s.g()
                                                 : s.graph.add(Op::Copy, s.dtype(), {s.g()}, from));
}

void copy(Vjp& s) {
  s.flow(0, s.graph.add(Op::Copy, s.dtype(), {s.g()}, s.device(s.x(0))));
}

// ---- Movement: the transposed movement ----
void reshape(Vjp& s) {
  s.flow(0, s.shape(s.g()).empty() && !s.shape(s.y()).empty()
                ? s.g()
                : s.move(Op::Reshape, s.g(), s.shape(s.x(0))));
}

void permute(Vjp& s) {
  const std::vector<int64_t> order = s.arg();
  std::vector<int64_t> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  s.flow(0, s.move(Op::Permute, s.full_g(), inverse));
}

void expand(Vjp& s) {
  const std::vector<int64_t> from = s.shape(s.x(0)), to = s.shape(s.y());
  std::vector<int64_t> repeated;
  for (size_t i = 0; i < to.size(); ++i)
    if (from[i] != to[i]) repeated.push_back(static_cast<int64_t>(i));
  s.flow(0, s.sum(s.full_g(), repeated));
}

void pad(Vjp& s) {
  const std::vector<int64_t> pads = s.arg(), inner = s.shape(s.x(0));
  std::vector<int64_t> box;
  for (size_t i = 0; i < inner.size(); ++i)
    box.insert(box.end(), {pads[2 * i], pads[2 * i] + inner[i]});
  s.flow(0, cut(s, s.full_g(), box));
}

void shrink(Vjp& s) {
  const std::vector<int64_t> box = s.arg(), outer = s.shape(s.x(0));
  std::vector<int64_t> pads, moved;
  for (size_t i = 0; i < outer.size(); ++i) {
    pads.insert(pads.end(), {box[2 * i], outer[i] - box[2 * i + 1]});
    if (pads[2 * i] != 0 || pads[2 * i + 1] != 0) moved.push_back(static_cast<int64_t>(i));
  }
  s.flow(0, s.move(Op::Pad, s.masked(s.full_g(), moved), pads));
}

/// Elements beyond the extent are not read: their gradient is 0, also where x has elements.
void bounded(Vjp& s) {
  const int64_t axis = s.arg()[0];
  const Id g = s.full_g();
  s.flow(0, s.is_counted(s.x(0), axis) ? s.masked(g, {axis}) : s.whole(g, axis));
}

/// For call 0, the sources of the value do not matter. For checked indices of a loop, a gradient of
/// the result is checked, too.
void slope(Vjp& s) {
  const Node& node = s.graph[s.y()];
  if (is_range_check(node)) {
    const uint64_t arg = node.arg;
    s.flow(0, s.graph.add(Op::Function, s.graph[s.g()].dtype, {s.g(), s.x(1)}, arg));
    return;
  }
  s.flow(1, s.mul(s.g(), s.x(2)));
}

void flip(Vjp& s) {
  s.flow(0, s.move(Op::Flip, s.full_g(), s.arg()));
}

// ---- Reductions ----
std::vector<int64_t> reduced_axes(const Vjp& s) {
  const std::vector<int64_t> list = s.arg();
  return {list.begin() + 1, list.end()};
}

/// All equal maxima share the gradient. In a row with a NaN, the others take 0 of an infinite
/// share: NaN.
void reduce_max(Vjp& s) {
  const std::vector<int64_t> axes = reduced_axes(s);
  Graph& g = s.graph;
  const std::vector<int64_t> shape = s.shape(s.x(0));
  const Id is_max = g.binary(Op::CmpEq, s.x(0), s.spread(s.y(), shape));
  const Id share = share_of_maxima(s, axes);
  const Id others = s.mul(share, s.number(0.0));
  s.flow(0, g.where(is_max, s.spread(share, shape), s.spread(others, shape)));
}

/// Rows of x (m, n), with ones after their end up to n = `wanted`.
Id with_ones(Vjp& s, Id x, int64_t m, int64_t n, int64_t wanted) {
  if (n == wanted) return x;
  Graph& g = s.graph;
  const Id at = g.add(Op::Iota, DType::I32, {}, static_cast<uint64_t>(wanted));
  const Id inside = g.binary(Op::CmpLt, at, g.constant(DType::I32, n));
  const Id rows = s.spread(s.move(Op::Reshape, inside, {1, wanted}), {m, wanted});
  return g.where(rows, s.move(Op::Pad, x, {0, 0, 0, wanted - n}), s.number(1.0));
}

/// For each element of a row of x (m, n), the product of the row's others. An element takes, at each
/// level of a binary tree, the product of the block beside its own: no quotient, which would be
/// wrong for products that overflow and, differentiated, beside a 0.
Id product_of_others(Vjp& s, Id x, int64_t m, int64_t n) {
  const auto wanted = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
  x = with_ones(s, x, m, n, wanted);
  Id others = s.number(1.0);
  for (int64_t block = 1; block < wanted; block *= 2) {
    const int64_t count = wanted / block;
    const Id blocks = s.reduce(Op::Mul, s.move(Op::Reshape, x, {m, count, block}), {2});
    const Id pairs = s.move(Op::Reshape, blocks, {m, count / 2, 2});
    const Id beside = s.move(Op::Reshape, s.move(Op::Flip, pairs, {0, 0, 1}), {m, count, 1});
    const Id spread = s.move(Op::Reshape, s.spread(beside, {m, count, block}), {m, wanted});
    others = s.mul(others, spread);
  }
  if (wanted == 1) return s.spread(others, {m, n});
  return n == wanted ? others : s.move(Op::Shrink, others, {0, m, 0, n});
}

void reduce_product(Vjp& s) {
  const std::vector<int64_t> shape = s.shape(s.x(0)), reduced = reduced_axes(s);
  std::vector<int64_t> order, inverse(shape.size()), permuted;
  for (const bool is_last : {false, true})
    for (int64_t axis = 0; axis < std::ssize(shape); ++axis)
      if (std::ranges::count(reduced, axis) == is_last) order.push_back(axis);
  Id x = s.x(0);
  int64_t n = 1;
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t axis = order[i], size = shape[static_cast<size_t>(axis)];
    inverse[static_cast<size_t>(axis)] = static_cast<int64_t>(i);
    permuted.push_back(size);
    x = s.whole(x, axis, 1);
    if (i >= order.size() - reduced.size()) n *= size;
  }
  const int64_t m = n == 0 ? 0 : element_count(shape) / n;
  if (m == 0) return s.flow(0, s.spread(s.g(), shape));
  const Id rows = s.move(Op::Reshape, s.move(Op::Permute, x, order), {m, n});
  const Id others = s.move(Op::Reshape, product_of_others(s, rows, m, n), permuted);
  s.flow(0, s.mul(s.spread(s.g(), shape), s.move(Op::Permute, others, inverse)));
}

template <Op op>
bool reduces(const Graph& g, const Match& m) {
  return g.arg_list(m.root)[0] == static_cast<int64_t>(op);
}

void reduce_sum(Vjp& s) {
  s.flow(0, s.spread(s.g(), s.shape(s.x(0))));
}

// ---- What several nodes mean together ----
bool is_convolution(const Graph&, const Match& m) {
  auto& s = m.context<Vjp>();
  if (!s.is_counted()) s.convolution = match_convolution(s.context(), m.root);
  return s.convolution.has_value();
}

void convolution(Vjp& s) {
  const Convolution& c = *s.convolution;
  const ConvolutionGradient flows = convolution_gradient(
      s.context(), c, s.y(), s.g(), s.walk().is_active(c.image), s.walk().is_active(c.weight));
  s.flow_to(c.image, flows.image);
  s.flow_to(c.weight, flows.weight);
}

/// Its image takes the whole gradient: nodes between it and the Reduce must not be targets.
bool is_max_pooling(const Graph&, const Match& m) {
  auto& s = m.context<Vjp>();
  if (!s.is_counted())
    s.pooling =
        match_max_pooling(s.context(), m.root, [&](Id id) { return !s.walk().is_target(id); });
  return s.pooling.has_value();
}

void max_pooling(Vjp& s) {
  const Id share = s.spread(share_of_maxima(s, reduced_axes(s)), s.shape(s.y()));
  s.flow_to(s.pooling->image, max_pooling_gradient(s.context(), *s.pooling, s.y(), share));
}

// ---- The table ----
constexpr Pattern g = u, out = v;

/// The gradients of source 0, 1, …
template <class... Sources>
constexpr Pattern flows(const Sources&... sources) {
  return node(Op::Sink, sources...);
}
constexpr Pattern make_nothing() {
  Pattern p(0);
  p.root().typed = true;
  return p;
}
constexpr Pattern kNothing = make_nothing();

/// A right side as code.
template <void (*derive)(Vjp&)>
inline constexpr Named<RuleFunction> by{[](Graph&, const Match& m) {
                                          derive(m.context<Vjp>());
                                          return m.root;
                                        },
                                        name_of_function<derive>()};

consteval Rule derivative(const char* name, const Pattern& left, const Pattern& right,
                          const RuleGuard& guard = {}, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
  return checked({name, left, right, nullptr, guard, file, line}, g.root().name);
}
consteval Rule derivative(const char* name, const Pattern& left, const Named<RuleFunction>& right,
                          const RuleGuard& guard = {}, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
  return checked({name, left, {}, right.function, guard, file, line, right.name});
}

constexpr Pattern choice = as(out, where(x, y, z));
constexpr Pattern kLn2 = std::numbers::ln2;

// clang-format off
constexpr Rule kDerivatives[] = {
    derivative("d-add",        x + y,                   flows(g, g)),
    derivative("d-sub",        x - y,                   flows(g, -g)),
    derivative("d-mul",        x * y,                   flows(g * y, g * x)),
    derivative("d-neg",        -x,                      flows(-g)),
    derivative("d-fdiv",       as(out, fdiv(x, y)),     flows(fdiv(g, y), -(fdiv(g, y) * out))),
    derivative("d-recip",      as(out, recip(x)),       flows(-(g * (out * out)))),
    derivative("d-max",        max(x, y),               by<maximum>),
    derivative("d-mod",        imod(x, y),              by<remainder>),
    derivative("d-sqrt",       as(out, sqrt(x)),        flows(fdiv(g * 0.5, out))),
    derivative("d-exp2",       as(out, exp2(x)),        flows(g * (out * kLn2))),
    derivative("d-log2",       log2(x),                 flows(fdiv(g, x * kLn2))),
    derivative("d-exp",        as(out, exp(x)),         flows(g * out)),
    derivative("d-log",        log(x),                  flows(fdiv(g, x))),
    derivative("d-pow",        as(out, pow(x, y)),      flows(g * (fdiv(out, x) * y), g * (out * log(x)))),
    derivative("d-sin",        sin(x),                  flows(g * cos(x))),
    derivative("d-cos",        cos(x),                  flows(-(g * sin(x)))),
    derivative("d-tan",        as(out, tan(x)),         flows(g * (out * out + 1.0))),
    derivative("d-fma",        fma(x, y, z),            flows(g * y, g * x, g)),
    derivative("d-trunc",      trunc(x),                flows(0.0)),
    derivative("d-join",       choice,                  by<split>, when(check<joins_parts>)),
    derivative("d-relu", choice,
               flows(kNothing, where(out == 0.0, g, 0.0), where(out == 0.0, 0.0, g)),
               when(check<guards_relu>)),
    derivative("d-where", choice, flows(kNothing, where(x, g, 0.0), where(x, 0.0, g))),
    derivative("d-cast",       cast(x),                 flows(cast(g))),
    derivative("d-contiguous", node(Op::Contiguous, x), flows(g)),
    derivative("d-shard",      node(Op::Shard, x),      by<shard>),
    derivative("d-copy",       node(Op::Copy, x),       by<copy>),
    derivative("d-reshape",    node(Op::Reshape, x),    by<reshape>),
    derivative("d-permute",    node(Op::Permute, x),    by<permute>),
    derivative("d-expand",     node(Op::Expand, x),     by<expand>),
    derivative("d-pad",        node(Op::Pad, x),        by<pad>),
    derivative("d-shrink",     node(Op::Shrink, x),     by<shrink>),
    derivative("d-flip",       node(Op::Flip, x),       by<flip>),
    derivative("d-bounded",    node(Op::Bounded, x, y), by<bounded>),
    derivative("d-function",   any_of(x, Op::Function), by<slope>),
    derivative("d-convolution", any_of(x, Op::Reduce), by<convolution>,
               when(check<is_convolution>)),
    derivative("d-max-pooling", any_of(x, Op::Reduce), by<max_pooling>,
               when(check<is_max_pooling>)),
    derivative("d-reduce-add", any_of(x, Op::Reduce), by<reduce_sum>,
               when(check<reduces<Op::Add>>)),
    derivative("d-reduce-max", any_of(x, Op::Reduce), by<reduce_max>,
               when(check<reduces<Op::Max>>)),
    derivative("d-reduce-mul", any_of(x, Op::Reduce), by<reduce_product>,
               when(check<reduces<Op::Mul>>)),
};
// clang-format on

bool is_one(const Graph& graph, Id id) {
  return is_const(graph, id) && const_float(graph, id) == 1.0;
}

// x * 1 is x. No folding: constants stand for values of the node's shape.
Id make_flow(Graph& graph, Op op, DType dtype, std::span<const Id> sources) {
  if (op == Op::Mul && is_one(graph, sources[0])) return sources[1];
  if (op == Op::Mul && is_one(graph, sources[1])) return sources[0];
  if (op == Op::Cast && graph[sources[0]].dtype == dtype) return sources[0];
  return graph.add(op, dtype, sources);
}

}  // namespace

const RuleTable& derivative_table() {
  static const RuleTable table(kDerivatives, plugrad::Operands::AsWritten);
  return table;
}

std::vector<std::string> derivative_names() {
  std::vector<std::string> names;
  for (const Rule& row : kDerivatives) names.emplace_back(row.name);
  return names;
}

void differentiate(Vjp& vjp) {
  Match m;
  const Rule* rule = derivative_table().find(vjp.graph, vjp.y(), &vjp, m);
  if (rule == nullptr) {
    if (m.rule != nullptr)
      fail(
          ErrorKind::User,
          "[disable] PLUGRAD_DISABLE leaves out {}, without which {} of shape ({}) has no gradient",
          m.rule->name, printed_name(vjp.graph[vjp.y()].op), fmt::join(vjp.shape(vjp.y()), ", "));
    return;
  }
  if (RewriteTrace* trace = current_trace()) trace->add(vjp.graph, rule, vjp.y(), vjp.g());
  if (rule->function != nullptr) {
    rule->function(vjp.graph, m);
    return;
  }
  m.bound[g.root().name] = vjp.g();
  const Pattern& right = rule->right;
  for (int i = 0; i < right.root().child_count; ++i) {
    if (right.nodes[right.root().child[i]].typed) continue;  // kNothing
    const auto source = static_cast<size_t>(i);
    const DType wanted = vjp.graph[vjp.x(source)].dtype;
    vjp.flow(source, build_source(vjp.graph, right, i, m, wanted, make_flow));
  }
}

}  // namespace plugrad::autodiff
