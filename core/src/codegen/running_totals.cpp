#include "codegen/running_totals.h"

#include "codegen/kernel.h"
#include "uop/facts.h"

namespace plugrad::codegen {

RunningTotals::RunningTotals(const Graph& g, Id sink, Lanes& lanes)
    : begin_(g.size(), kNoId), sum_(g.size(), kNoId) {
  Reachable reachable;
  const std::vector<Id>& nodes = reachable.from(g, std::span(&sink, 1));
  std::vector<uint32_t> uses(g.size());
  for (Id id : nodes)
    for (Id s : g.sources(id)) ++uses[s];
  for (Id id : nodes) {
    const Node& n = g[id];
    if (n.src_count != 2 || (n.op != Op::Add && n.op != Op::Mul && n.op != Op::Max)) continue;
    for (int side : {0, 1}) {
      const Id reduce = n.src[side], other = n.src[1 - side];
      if (g[reduce].op != Op::Reduce || g[other].op != Op::Load || uses[reduce] != 1) continue;
      if (reduce_parts(g, reduce).op != n.op || lanes[reduce] != lanes[other]) continue;
      begin_[reduce] = other;
      sum_[id] = reduce;
    }
  }
}

}  // namespace plugrad::codegen
