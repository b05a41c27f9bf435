// Helpers that several schedule steps share.
#include "codegen/transforms/transforms.h"

#include <algorithm>

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "codegen/analysis/work_items.h"
#include "codegen/passes/passes.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {

namespace {

// Whether `range` stands outside `around`, whose bounds depend on it.
bool runs_before(const Graph& g, Id around, Id range) {
  if (!is_bounded(g[range]) || around == range || !depends_on(g, range, around)) return false;
  const bool inner = is_output_axis(range_kind(g[around])) && !is_output_axis(range_kind(g[range]));
  return !inner && range_axis(g[range]) < range_axis(g[around]);
}

}  // namespace

void renumber(Kernel& kernel, const std::vector<Id>& order) {
  Graph& g = kernel.graph;
  std::vector<std::pair<Id, uint32_t>> places;  // ascending: the bounds of a range come before it
  for (uint32_t i = 0; i < order.size(); ++i) places.emplace_back(order[i], i);
  std::ranges::sort(places);
  std::vector<std::pair<Id, Id>> map;
  for (const auto& [range, place] : places) {
    const Id moved = substitute(g, range, map);
    const Id now = renamed_range(g, moved, place, range_kind(g[moved]));
    if (now != range) map.emplace_back(range, now);
  }
  replace(kernel, map);
  for (Id range : kernel.axes)
    for (Id around : kernel.axes)
      require(!runs_before(kernel.graph, around, range),
              "[codegen] a loop cannot run outside of one that bounds it");
}

bool may_split(const Kernel& kernel, size_t axis) {
  const Graph& g = kernel.graph;
  const Id range = kernel.axes[axis];
  if (range_kind(g[range]) == AxisKind::Block || range_kind(g[range]) == AxisKind::Global)
    return false;
  return !is_bounded(g[range]) && std::ranges::none_of(kernel.axes, [&](Id other) {
    return other != range && is_bounded(g[other]) && depends_on(g, other, range);
  });
}

Id at(Graph& g, Id root, Id range, Id index) {
  const std::pair<Id, Id> map[] = {{range, index}};
  return substitute(g, root, map);
}

std::vector<Id> closing(const Graph& g, Id store, Id range) {
  std::vector<Id> out;
  for (Id reduce : nodes_of(g, store, Op::Reduce)) {
    const auto ranges = reduce_parts(g, reduce).ranges;
    if (std::ranges::find(ranges, range) != ranges.end()) out.push_back(reduce);
  }
  return out;
}

Id readable(Graph& g, Id param) {
  ParamInfo info = param_info(g, param);
  info.flags |= PGR_PARAM_READ;
  return make_param(g, g[param].dtype, info);
}

bool closes(const Graph& g, Id node, Id range) {
  if (g[node].op != Op::Reduce && g[node].op != Op::Filled) return false;
  const auto sources = g.sources(node);
  return std::ranges::find(sources, range) != sources.end();
}

namespace {
using namespace rules;

struct Closing {
  Id range;
  const std::function<Id(Id)>& change;
};

Id changed(Graph& g, const Match& m) {
  const auto& closing = m.context<Closing>();
  return closes(g, m.root, closing.range) ? closing.change(m.root) : kNoMatch;
}

bool is_over_items(const Graph& g, const Match& m) {
  return is_group_reduce(g, m.root) && !closes(g, m.root, m.context<Closing>().range);
}

// A Reduce over work-items of a Reduce over other work-items is one Reduce over both.
Id with_inner_work_items(Graph& g, const Match& m) {
  const ReduceParts outer = reduce_parts(g, m.root);
  if (!is_group_reduce(g, outer.values[0])) return kNoMatch;
  const ReduceParts inner = reduce_parts(g, outer.values[0]);
  if (inner.op != outer.op) return kNoMatch;
  const Op op = outer.op;
  std::vector<Id> ranges = to_vector(outer.ranges);
  ranges.insert(ranges.end(), inner.ranges.begin(), inner.ranges.end());
  const Id value = inner.values[0];
  return make_reduce(g, op, {&value, 1}, ranges);
}

// clang-format off
constexpr Rule kClosing[] = {
    rule("change-closing-reduce", any_of(x, Op::Reduce), code<changed>),
    rule("change-closing-array",  any_of(x, Op::Filled), code<changed>),
    rule("reduce-over-all-items", any_of(x, Op::Reduce), code<with_inner_work_items>,
         when(check<is_over_items>)),
};
// clang-format on
}  // namespace

std::span<const Rule> closing_rules() {
  return kClosing;
}

void change_closing(Kernel& kernel, Id range, const std::function<Id(Id)>& change) {
  static const RuleTable table(kClosing);
  Closing closing{range, change};
  kernel.sink = rewrite(kernel.graph, kernel.sink, table, {.context = &closing});
}

void check_private_place(const Kernel& kernel, const ScheduleStep& change) {
  const Graph& g = kernel.graph;
  const std::string text = to_string({change});
  require(change.amount >= 0 && change.amount <= static_cast<int64_t>(kernel.axes.size()),
          "[codegen] {}: the kernel has {} axes", text, kernel.axes.size());
  require(
      std::ranges::none_of(kernel.axes, [&](Id r) { return is_work_item_axis(range_kind(g[r])); }),
      "[codegen] {}: the kernel has work-items", text);
}

}  // namespace plugrad::codegen
