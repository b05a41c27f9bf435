// Merges nested loops that walk memory as one loop and splits loops that a division takes apart. A
// choice by cost, no local rewrite: a merge must add no division to the indices, a split must save
// some.
//   before   load %x[%i*4 + %j]              %i = range 3, %j = range 4
//   after    load %x[%k]                     %k = range 12
//   before   load %x[%i % 4], %y[%i // 4]    %i = range 12
//   after    load %x[%b], %y[%a]             %a = range 3, %b = range 4
#include <algorithm>

#include "codegen/analysis/access.h"
#include "codegen/passes/passes.h"
#include "ir/facts.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {

// Elements: as many f16 as an AVX-512 register holds. Chosen, not measured.
constexpr int64_t kLongEnough = 32;

size_t division_count(const Graph& g, Id root) {
  return nodes_of(g, root, Op::FloorDiv).size() + nodes_of(g, root, Op::FloorMod).size();
}

// Accepts the changed sink if it has at most `limit` divisions.
bool accept(Kernel& kernel, std::span<const RangeReplacement> change, size_t limit) {
  Graph& g = kernel.graph;
  const Id changed = Simplifier(g, kernel.rules())(replace_ranges(g, kernel.sink, change));
  if (division_count(g, changed) > limit) return false;
  kernel.sink = changed;
  compact(kernel);
  return true;
}

// Whether the two axes occur in the same stores and are closed by the same reductions.
bool run_together(const Kernel& kernel, Id a, Id b) {
  const Graph& g = kernel.graph;
  if (range_kind(g[a]) != range_kind(g[b]) || is_bounded(g[a]) || is_bounded(g[b])) return false;
  if (is_output_axis(range_kind(g[a]))) {
    OpenRanges open(g);
    return std::ranges::all_of(g.sources(kernel.sink), [&](Id store) {
      return open.depends(store, a) == open.depends(store, b);
    });
  }
  return std::ranges::all_of(nodes_of(g, kernel.sink, Op::Reduce), [&](Id reduce) {
    const auto ranges = reduce_parts(g, reduce).ranges;
    return (std::ranges::find(ranges, a) != ranges.end()) ==
           (std::ranges::find(ranges, b) != ranges.end());
  });
}

bool merge_pair(Kernel& kernel, Id outer, Id inner) {
  if (!run_together(kernel, outer, inner)) return false;
  Graph& g = kernel.graph;
  const int64_t size = range_size(g, inner);
  const Id merged =
      make_range(g, range_size(g, outer) * size, range_axis(g[outer]), range_kind(g[outer]));
  const RangeReplacement change[] = {
      {outer, g.binary(Op::FloorDiv, merged, g.index(size)), {merged}},
      {inner, g.binary(Op::FloorMod, merged, g.index(size)), {merged}}};
  return accept(kernel, change, division_count(g, kernel.sink));
}

bool merge_any(Kernel& kernel) {
  for (size_t i = 0; i + 1 < kernel.axes.size(); ++i)
    if (merge_pair(kernel, kernel.axes[i], kernel.axes[i + 1])) return true;
  return false;
}

// The nodes whose addresses should be consecutive along the range if it becomes lanes: the whole
// store, or only its value if the store is a sum that is transposed in registers (transpose_stores
// in vectorise.cpp).
std::vector<Id> roots_of_addresses(const Kernel& kernel, Id range) {
  const Graph& g = kernel.graph;
  std::vector<Id> roots;
  OpenRanges open(g);
  for (Id store : g.sources(kernel.sink)) {
    const Id value = g.sources(store)[2];
    const bool sums = std::ranges::any_of(nodes_of(g, value, Op::Reduce),
                                          [&](Id reduce) { return open.depends(reduce, range); });
    roots.push_back(sums && !works_in_groups(*kernel.caps) ? value : store);
  }
  return roots;
}

// Whether an address or a value uses the range undivided; then it is not split. A multiple of the
// range does not count, nor does a use whose inner part is long enough.
bool used_whole(const Kernel& kernel, Id range) {
  const Graph& g = kernel.graph;
  Reachable reachable;
  return std::ranges::any_of(reachable.from(g, roots_of_addresses(kernel, range)), [&](Id id) {
    const Op op = g[id].op;
    if (op == Op::FloorDiv || op == Op::FloorMod || op == Op::Reduce) return false;
    if (op == Op::Mul && is_const(g, g[id].src[1])) return false;
    const auto sources = g.sources(id);
    return std::ranges::find(sources, range) != sources.end();
  });
}

// The divisor of a division of the range; 0 for other nodes.
int64_t divisor_of(const Graph& g, Id division) {
  const Node& n = g[division];
  if (g[n.src[0]].op != Op::Range || !is_const(g, n.src[1])) return 0;
  const int64_t divisor = const_int(g, n.src[1]), size = range_size(g, n.src[0]);
  return divisor > 1 && divisor < size && size % divisor == 0 ? divisor : 0;
}

bool split_at(Kernel& kernel, Id division) {
  Graph& g = kernel.graph;
  const int64_t divisor = divisor_of(g, division);
  if (divisor == 0) return false;
  const Id range = g[division].src[0];
  if (divisor < kLongEnough && used_whole(kernel, range)) return false;
  const AxisKind kind = range_kind(g[range]);
  // Axis numbers are doubled, so that the number after an outer part is free for its inner part.
  std::vector<RangeReplacement> change;
  for (Id r : kernel.axes) {
    const uint32_t axis = range_axis(g[r]) * 2;
    const Id same = make_range(g, range_size(g, r), axis, range_kind(g[r]));
    if (r != range) {
      change.push_back({r, same, {same}});
      continue;
    }
    const Id outer = make_range(g, range_size(g, r) / divisor, axis, kind),
             inner = make_range(g, divisor, axis + 1, kind);
    change.push_back(
        {r, g.binary(Op::Add, g.binary(Op::Mul, outer, g.index(divisor)), inner), {outer, inner}});
  }
  return accept(kernel, change, division_count(g, kernel.sink) - 1);
}

bool split_any(Kernel& kernel) {
  if (std::ranges::any_of(kernel.axes, [&](Id r) { return is_bounded(kernel.graph[r]); }))
    return false;
  for (Op op : {Op::FloorMod, Op::FloorDiv})
    for (Id division : nodes_of(kernel.graph, kernel.sink, op))
      if (split_at(kernel, division)) return true;
  return false;
}

}  // namespace

void simplify_ranges(Kernel& kernel) {
  while (split_any(kernel)) continue;
  while (merge_any(kernel)) continue;
}

}  // namespace plugrad::codegen
