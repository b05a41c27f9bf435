// Restricts a reduce loop to the values for which its terms are not 0, if loops around it decide
// these values.
//   before   reduce add (where (2 < %h + %r) & (%h + %r < 20), f(%r), 0), %r
//            %r = range 5
//   after    reduce add f(%r), %r
//            %r = range 5 from max(3 - %h, 0) to min(20 - %h, 5)
// A remaining condition that differs between lanes moves to each factor of the product, so that the
// multiply-add stays one instruction. One that is uniform over lanes stays on the term and becomes
// a branch (term_blocks in predication.h), except on devices with lockstep work-items.
#include <algorithm>

#include "codegen/analysis/predication.h"
#include "codegen/analysis/work_items.h"
#include "codegen/passes/passes.h"
#include "ir/facts.h"

namespace plugrad::codegen {
namespace {

class BoundTightening {
 public:
  explicit BoundTightening(Kernel& kernel)
      : g_(kernel.graph), open_(g_), may_branch_(!works_in_groups(*kernel.caps)) {}

  Id changed(Id reduce) {
    std::vector<LoopBound> bounds = loop_bounds(g_, open_, reduce);
    std::erase_if(bounds, [&](const LoopBound& b) { return !is_decided_outside(b); });
    const ReduceParts parts = reduce_parts(g_, reduce);
    const Node value = g_[parts.values[0]];
    if (value.op != Op::Where) return reduce;
    std::vector<std::pair<Id, Id>> map;
    for (const LoopBound& b : bounds)
      map.emplace_back(b.clause, g_.constant(DType::Bool, int64_t{1}));
    std::vector<Id> ranges = to_vector(parts.ranges);
    std::ranges::sort(ranges, {}, [&](Id r) { return range_axis(g_[r]); });
    for (Id& range : ranges) {
      const Id now = between(range, bounds, map);
      if (now != range) map.emplace_back(range, now);
      range = now;
    }
    const Id condition = substitute(g_, value.src[0], map),
             term = substitute(g_, value.src[1], map);
    const Id whole = choice(condition, term, value.src[2]);
    return make_reduce(g_, parts.op, {&whole, 1}, ranges);
  }

 private:
  // Whether only loops around the range, not lanes or lockstep work-items, occur in the clause.
  bool is_decided_outside(const LoopBound& b) {
    if (range_kind(g_[b.range]) != AxisKind::Reduce || is_bounded(g_[b.range])) return false;
    return std::ranges::all_of(open_.members(open_[b.clause]), [&](Id r) {
      if (r == b.range) return true;
      const AxisKind kind = range_kind(g_[r]);
      if (kind == AxisKind::Reduce) return range_axis(g_[r]) < range_axis(g_[b.range]);
      return kind == AxisKind::Loop || kind == AxisKind::Global || kind == AxisKind::Block;
    });
  }

  Id least(Id a, Id b) { return g_.where(g_.binary(Op::CmpLt, a, b), a, b); }

  Id between(Id range, std::span<const LoopBound> bounds, std::span<const std::pair<Id, Id>> map) {
    Id begin = g_.index(0), end = g_.index(range_size(g_, range));
    bool any = false;
    for (const LoopBound& b : bounds) {
      if (b.range != range) continue;
      any = true;
      const Id rest = substitute(g_, build(g_, b.rest, DType::Index), map);
      const Id size = g_.index(std::abs(b.factor));
      if (b.factor < 0) {  // rest // size < range
        const Id below = g_.binary(Op::FloorDiv, rest, size);
        begin = g_.binary(Op::Max, begin, g_.binary(Op::Add, below, g_.index(1)));
      } else {  // range < -(rest // size)
        end = least(end, g_.unary(Op::Neg, g_.binary(Op::FloorDiv, rest, size)));
      }
    }
    return any ? bounded_range(g_, range, begin, end) : range;
  }

  bool is_uniform_over_lanes(Id condition) {
    return std::ranges::none_of(open_.members(open_[condition]),
                                [&](Id r) { return range_kind(g_[r]) == AxisKind::Vector; });
  }

  Id choice(Id condition, Id term, Id zero) {
    const Node n = g_[term];
    const bool is_zero =
        g_[zero].op == Op::Const && g_[zero].arg == 0;  // excludes the -inf of a maximum
    if (n.op != Op::Mul || !is_zero || (may_branch_ && is_uniform_over_lanes(condition)))
      return g_.where(condition, term, zero);
    return g_.binary(Op::Mul, g_.where(condition, n.src[0], zero),
                     g_.where(condition, n.src[1], zero));
  }

  Graph& g_;
  OpenRanges open_;
  bool may_branch_;
};

using namespace rules;

Id bounded(Graph&, const Match& m) {
  return m.context<BoundTightening>().changed(m.root);
}

constexpr Rule kLoopBounds[] = {
    rule("bound-loop", any_of(x, Op::Reduce), code<bounded>),
};

}  // namespace

std::span<const Rule> loop_bound_rules() {
  return kLoopBounds;
}

void tighten_bounds(Kernel& kernel) {
  static const RuleTable table(kLoopBounds);
  BoundTightening bounder(kernel);
  const Id sink = rewrite(kernel.graph, kernel.sink, table, {.context = &bounder});
  if (sink == kernel.sink) return;
  kernel.sink = sink;
  replace(kernel, {});
}

}  // namespace plugrad::codegen
