// Recognises operators of one value in the operations that functions of tensors are made of.
#include "onnx/export/recognised.h"

namespace plugrad::onnx {
namespace {

bool is_zero(const Graph& g, Id node) {
  node = below_expand(g, node);
  return is_const(g, node) && g[node].arg == 0;
}

// where(x <= 0, 0, x)
std::optional<UnaryNode> match_relu(const Graph& g, Id node) {
  if (g[node].op != Op::Where || !is_float(g[node].dtype)) return std::nullopt;
  const auto sources = g.sources(node);
  const Id x = sources[2], either = sources[0];
  const auto compares = [&](Id id, Op op) {
    return g[id].op == op && g.sources(id)[0] == x && is_zero(g, g.sources(id)[1]);
  };
  if (!is_zero(g, sources[1]) || g[either].op != Op::Or) return std::nullopt;
  const Id first = g.sources(either)[0], second = g.sources(either)[1];
  const bool is_found = (compares(first, Op::CmpLt) && compares(second, Op::CmpEq)) ||
                        (compares(first, Op::CmpEq) && compares(second, Op::CmpLt));
  return is_found ? std::optional(UnaryNode{x, "Relu"}) : std::nullopt;
}

/// x where `node` is where(bound < x, bound, x), or x < bound.
Id below_bound(const Graph& g, Id node, bool is_most) {
  if (g[node].op != Op::Where) return kNoId;
  const auto sources = g.sources(node);
  const Id x = sources[2], bound = below_expand(g, sources[1]);
  if (g[sources[0]].op != Op::CmpLt || !is_const(g, bound)) return kNoId;
  const auto compared = g.sources(sources[0]);
  const Id first = below_expand(g, compared[0]), second = below_expand(g, compared[1]);
  return (is_most ? first == bound && second == x : first == x && second == bound) ? x : kNoId;
}

// where(y < least, least, y) of y = where(most < x, most, x); where(x >= most, most, relu(x))
std::optional<UnaryNode> match_clip(const Graph& g, Id node) {
  if (g[node].op != Op::Where || !is_float(g[node].dtype)) return std::nullopt;
  const auto sources = g.sources(node);
  const Id bound = below_expand(g, sources[1]);
  if (!is_const(g, bound)) return std::nullopt;
  const double number = const_float(g, bound);
  const Id inner = below_bound(g, node, false);
  const Id x = inner == kNoId ? kNoId : below_bound(g, inner, true);
  if (x != kNoId) {
    const double most = const_float(g, below_expand(g, g.sources(inner)[1]));
    return number <= most ? std::optional(UnaryNode{x, "Clip", number, most}) : std::nullopt;
  }
  const auto relu = match_relu(g, sources[2]);
  if (!relu || g[sources[0]].op != Op::Or || !(number > 0)) return std::nullopt;
  const auto either = g.sources(sources[0]);
  const auto compares = [&](Id id, Op op, bool is_swapped) {
    if (g[id].op != op) return false;
    const auto of = g.sources(id);
    return of[is_swapped ? 1 : 0] == relu->x && below_expand(g, of[is_swapped ? 0 : 1]) == bound;
  };
  const bool is_found =
      compares(either[0], Op::CmpEq, false) && compares(either[1], Op::CmpLt, true);
  return is_found ? std::optional(UnaryNode{relu->x, "Clip", 0, number}) : std::nullopt;
}

}  // namespace

std::optional<UnaryNode> match_unary(autodiff::Context& c, Id node) {
  auto found = match_relu(c.graph, node);
  if (!found) found = match_clip(c.graph, node);
  return found && autodiff::shape_of(c, found->x) == autodiff::shape_of(c, node) ? found
                                                                                 : std::nullopt;
}

}  // namespace plugrad::onnx
