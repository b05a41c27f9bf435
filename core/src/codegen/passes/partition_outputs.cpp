// A cut, no local rewrite: stores become several over parts of a loop. The innermost output loop is
// cut where a condition on it alone changes, so that padding needs no test an element: the pieces
// are stores of their own, in which the condition is constant.
//   before   store %out[%i*28 + %x], where (3 < %x & %x < 24) %in[%i*20 + %x - 4], 0
//            %x = range 28
//   after    store %out[%i*28 + %x], 0                          %x = range 4
//            store %out[%i*28 + %x + 4], %in[%i*20 + %x]        %x = range 20
//            store %out[%i*28 + %x + 24], 0                     %x = range 4
#include <algorithm>

#include "codegen/analysis/access.h"
#include "codegen/passes/passes.h"
#include "codegen/search/heuristic.h"
#include "ir/facts.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {

constexpr size_t kMostPieces = 4;

int64_t floor_div(int64_t a, int64_t b) {
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}

// Where the truth of `left < right` changes as `range` grows, if both are affine in it and in
// nothing else.
std::optional<int64_t> turning_point(Graph& g, Simplifier& simplify, Id comparison, Id range) {
  const Id left = g[comparison].src[0], right = g[comparison].src[1];
  const auto dl = stride_of(g, left, range), dr = stride_of(g, right, range);
  if (!dl || !dr || *dl == *dr) return std::nullopt;
  const auto at_zero = [&](Id id) { return simplify(substitute(g, id, {{range, g.index(0)}})); };
  const Id l0 = at_zero(left), r0 = at_zero(right);
  if (!is_const(g, l0) || !is_const(g, r0)) return std::nullopt;
  // left - right = offset + slope * range: negative before the point when the slope is positive,
  // after it otherwise.
  const int64_t offset = const_int(g, l0) - const_int(g, r0), slope = *dl - *dr;
  return slope > 0 ? -floor_div(offset, slope) : floor_div(offset, -slope) + 1;
}

// Ascending starts of the pieces after the first; empty where nothing is to be cut.
std::vector<int64_t> cuts(Kernel& kernel, Id range) {
  Graph& g = kernel.graph;
  Simplifier simplify(g, kernel.rules());
  OpenRanges open(g);
  std::vector<int64_t> points;
  for (Id id : nodes_of(g, kernel.sink, Op::CmpLt)) {
    if (open[id] != open.bit(range) || g[g[id].src[0]].dtype != DType::Index) continue;
    const auto point = turning_point(g, simplify, id, range);
    if (point && *point > 0 && *point < range_size(g, range)) points.push_back(*point);
  }
  std::ranges::sort(points);
  points.erase(std::unique(points.begin(), points.end()), points.end());
  if (points.size() >= kMostPieces) points.clear();
  return points;
}

// The loop along which a store writes consecutive elements; kNoId where there is none.
Id innermost_output(const Kernel& kernel, Id store) {
  const Graph& g = kernel.graph;
  for (Id axis : kernel.axes)
    if (range_kind(g[axis]) == AxisKind::Loop && !is_bounded(g[axis]) &&
        stride_of(g, g.sources(store)[1], axis) == 1)
      return axis;
  return kNoId;
}

}  // namespace

void partition_outputs(Kernel& kernel) {
  Graph& g = kernel.graph;
  if (kernel.options.no_opt || g.sources(kernel.sink).size() != 1) return;
  if (works_in_groups(*kernel.caps))
    return;  // items in step would run the pieces one after the other
  const Id store = g.sources(kernel.sink)[0], range = innermost_output(kernel, store);
  if (range == kNoId) return;
  std::vector<int64_t> points = cuts(kernel, range);
  if (points.empty()) return;
  points.push_back(range_size(g, range));
  uint32_t number = range_axis(g[kernel.axes.back()]);
  for (Id axis : kernel.axes) number = std::max(number, range_axis(g[axis]));
  std::vector<Id> stores;
  int64_t begin = 0;
  for (int64_t end : points) {
    const Id piece =
        end - begin == 1 ? g.index(0) : make_range(g, end - begin, ++number, AxisKind::Loop);
    stores.push_back(substitute(g, store, {{range, g.binary(Op::Add, piece, g.index(begin))}}));
    begin = end;
  }
  kernel.sink = g.add(Op::Sink, DType::Void, stores);
  replace(kernel, {});
}

}  // namespace plugrad::codegen
