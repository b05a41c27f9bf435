#include "codegen/analysis/late_loads.h"

#include "codegen/kernel.h"
#include "ir/facts.h"

namespace plugrad::codegen {

LateLoads::LateLoads(const Graph& g, Id sink) : sum_(g.size(), kNoId) {
  Reachable reachable;
  const std::vector<Id>& nodes = reachable.from(g, std::span(&sink, 1));
  std::vector<uint32_t> uses(g.size());
  for (Id id : nodes)
    for (Id s : g.sources(id)) ++uses[s];
  for (Id id : nodes) {
    const Node& n = g[id];
    if (n.src_count != 2 || (n.op != Op::Add && n.op != Op::Mul && n.op != Op::Max)) continue;
    for (int side : {0, 1}) {
      const Id reduce = n.src[side], load = n.src[1 - side];
      if (g[reduce].op != Op::Reduce || g[load].op != Op::Load) continue;
      if (uses[reduce] == 1 && uses[load] == 1) sum_[load] = reduce;
    }
  }
}

}  // namespace plugrad::codegen
