// accumulate: moves a reduce loop outside the output loops; partial sums stay in the output between
// its iterations (sequential split-k). A schedule step, no local rewrite.
//   before   store %c[%i], (reduce add f(%i, %o, %k), %o, %k)
//   after    store %c[%i], (reduce add f(%i, %b, %k), %k) + (load %c[%i], 0 < %b, 0)
//            %b = range block
// Operations on the finished sum run in the last iteration.
#include <algorithm>

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "codegen/transforms/transforms.h"
#include "ir/facts.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {

// Why partial sums cannot be kept in the output; empty if they can.
std::string obstacle(const Kernel& kernel, Id store, const std::vector<Id>& reduces) {
  const Graph& g = kernel.graph;
  const Id target = g.sources(store)[0];
  if (reduces.size() != 1) return "a store needs two reductions over it";
  if (g[reduces[0]].dtype != g[target].dtype) return "the output is of another dtype than the sum";
  if (reads(g, kernel.sink, target)) return "the kernel reads the output";
  for (Id filled : nodes_of(g, store, Op::Filled))
    if (depends_on(g, filled, reduces[0])) return "a value made of the sum is in a local buffer";
  // A surrounding reduction would include the partial sum.
  for (Id other : nodes_of(g, store, Op::Reduce))
    if (other != reduces[0] && depends_on(g, other, reduces[0]))
      return "another reduction contains it";
  return {};
}

Id without_range(Graph& g, Id reduce, Id range, Id block) {
  const ReduceParts parts = reduce_parts(g, reduce);
  const Op op = parts.op;
  std::vector<Id> values, ranges;
  for (Id v : parts.values) values.push_back(substitute(g, v, {{range, block}}));
  for (Id r : parts.ranges)
    if (r != range) ranges.push_back(r);
  return make_reduce(g, op, values, ranges);
}

Id accumulating(Graph& g, Id store, Id reduce, Id range, Id block) {
  const Op op = reduce_parts(g, reduce).op;
  const DType dtype = g[reduce].dtype;
  std::vector<Id> sources = to_vector(g.sources(store));
  const Id memory = sources[0], value = sources[2];
  Id later = g.binary(Op::CmpLt, g.index(0), block);
  if (sources.size() == 4) later = g.binary(Op::And, later, sources[3]);
  const Id before =
      g.add(Op::Load, dtype, {memory, sources[1], later, reduce_identity(g, op, dtype)});
  const Id sum = g.binary(op, without_range(g, reduce, range, block), before);
  const Id finished = substitute(g, value, {{reduce, sum}});
  const Id last = g.binary(Op::CmpEq, block, g.index(range_size(g, range) - 1));
  sources[2] = finished == sum ? sum : g.where(last, finished, sum);
  return g.add(Op::Store, DType::Void, sources);
}

}  // namespace

void split_k(Kernel& kernel, const ScheduleStep& change) {
  Graph& g = kernel.graph;
  const std::string text = to_string({change});
  const Id range = kernel.axes[change.axis];
  const auto outputs = static_cast<int64_t>(
      std::ranges::count_if(kernel.axes, [&](Id r) { return is_output_axis(range_kind(g[r])); }));
  require(range_kind(g[range]) == AxisKind::Reduce, "[codegen] {}: axis {} is no reduce loop", text,
          change.axis);
  require(change.amount >= 0 && change.amount <= outputs, "[codegen] {}: there are {} output loops",
          text, outputs);
  const Id block = make_range(g, range_size(g, range), new_axis(kernel), AxisKind::Block);
  std::vector<Id> stores;
  std::vector<std::pair<Id, Id>> targets;
  for (Id store : to_vector(g.sources(kernel.sink))) {
    const std::vector<Id> reduces = closing(g, store, range);
    if (!reduces.empty()) {
      const std::string problem = obstacle(kernel, store, reduces);
      require(problem.empty(), "[codegen] {}: {}", text, problem);
      targets.emplace_back(g.sources(store)[0], readable(g, g.sources(store)[0]));
      store = accumulating(g, store, reduces[0], range, block);
    }
    stores.push_back(store);
  }
  kernel.sink = g.add(Op::Sink, DType::Void, stores);
  replace(kernel, targets);
  // The new axis has the largest number, so it stands last among the output loops.
  std::vector<Id> order = kernel.axes;
  const auto end = order.begin() + outputs + 1;
  std::rotate(order.begin() + change.amount, end - 1, end);
  renumber(kernel, order);
}

}  // namespace plugrad::codegen
