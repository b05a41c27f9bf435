// Every element is stored once: a store that does not run over an axis of the group is left to that
// axis' first item. Where a gate cannot be a block around the whole store, because there are
// barriers or loops inside, the loads behind it get it too.
//   before   store %out[%r], (reduce add %x[%r*8 + %i], %i)                       %i = range 8
//   group after    store %out[%r], (reduce add %x[%r*8 + %i], %i), gate (%i < 1)
#include <algorithm>

#include "codegen/gates.h"
#include "codegen/passes/passes.h"
#include "codegen/work_items.h"

namespace plugrad::codegen {
namespace {

bool decided_by_ids(const Graph& g, OpenRanges& open, Id condition) {
  return std::ranges::any_of(open.members(open[condition]), [&](Id r) {
    if (g[r].op != Op::Range) return false;
    const AxisKind kind = range_kind(g[r]);
    return kind == AxisKind::Global || is_item_axis(kind);
  });
}

Id for_first_items(Graph& g, OpenRanges& open, std::span<const ItemAxis> axes, Id store) {
  for (const ItemAxis& axis : axes) {
    const bool runs =
        std::ranges::any_of(axis.ranges, [&](Id r) { return open.depends(store, r); });
    if (!runs) store = with_gate(g, store, g.binary(Op::CmpLt, axis.ranges[0], g.index(1)));
  }
  return store;
}

}  // namespace

void gate_items(Kernel& kernel) {
  Graph& g = kernel.graph;
  OpenRanges open(g);
  const std::vector<ItemAxis> axes = item_axes(kernel, open);
  const std::vector<Id> before(g.sources(kernel.sink).begin(), g.sources(kernel.sink).end());
  std::vector<Id> stores;
  for (Id store : before) {
    Id gated = for_first_items(g, open, axes, store);
    if (g.sources(store).size() == 4 && !gate_encloses(g, open, gated))
      for (Id condition : conjuncts(g, g.sources(store)[3]))
        if (decided_by_ids(g, open, condition)) gated = gate_loads(g, open, gated, condition);
    stores.push_back(gated);
  }
  kernel.sink = g.add(Op::Sink, DType::Void, stores);
  compact(kernel);
}

}  // namespace plugrad::codegen
