// Predicates stores so that each element is stored by one work-item: a store that does not run
// along an axis of the group is made by the axis' first work-item. If barriers or loops stand
// inside and the gate cannot enclose them, the loads get the gate too.
//   before   store %out[%r], (reduce add %x[%r*8 + %i], %i)
//            %i = range 8 group
//   after    store %out[%r], (reduce add %x[%r*8 + %i], %i), gate (%i < 1)
#include <algorithm>
#include <map>
#include <set>

#include "codegen/analysis/predication.h"
#include "codegen/analysis/work_items.h"
#include "codegen/passes/passes.h"
#include "ir/facts.h"
#include "ir/scratch.h"

namespace plugrad::codegen {
namespace {
using namespace rules;

// Whether the condition is uniform in the group.
bool decided_by_groups(const Graph& g, OpenRanges& open, Id condition) {
  const std::vector<Id> members = open.members(open[condition]);
  return !members.empty() && std::ranges::all_of(members, [&](Id r) {
    return g[r].op == Op::Range && range_kind(g[r]) == AxisKind::Global;
  });
}

bool decided_by_ids(const Graph& g, OpenRanges& open, Id condition) {
  if (is_on_elements(g, open, condition)) return false;
  return std::ranges::any_of(open.members(open[condition]), [&](Id r) {
    if (g[r].op != Op::Range) return false;
    const AxisKind kind = range_kind(g[r]);
    return kind == AxisKind::Global || is_work_item_axis(kind);
  });
}

// Whether the stored value differs between work-items of the axis. Data that the group copied is
// the same for all.
bool differs_along(const Graph& g, OpenRanges& open, const WorkItemAxis& axis, Id store) {
  RangeSet ranges = 0;
  for (Id r : axis.ranges) ranges |= open.bit(r);
  const auto is_same = [&](Id id) {
    return (open[id] & ranges) == 0 || (g[id].op == Op::Filled && is_local(g, id));
  };
  Reachable reachable;
  return std::ranges::any_of(reachable.from(g, std::span(&store, 1), is_same), [&](Id id) {
    return std::ranges::find(axis.ranges, id) != axis.ranges.end();
  });
}

Id for_first_work_items(Graph& g, OpenRanges& open, std::span<const WorkItemAxis> axes, Id store) {
  for (const WorkItemAxis& axis : axes) {
    if (!differs_along(g, open, axis, store))
      store = with_gate(g, store, g.binary(Op::CmpLt, axis.ranges[0], g.index(1)));
  }
  return store;
}

struct CopyGates {
  OpenRanges& open;
  const std::map<Id, std::vector<Id>>& asked;  // by array
};

Id gate_copy(Graph& g, const Match& m) {
  const auto& [open, asked] = m.context<CopyGates>();
  const auto it = asked.find(m.before);
  if (it == asked.end()) return kNoMatch;
  const FilledParts parts = filled_parts(g, m.root);
  const std::vector<Id> ranges = to_vector(parts.ranges);
  std::vector<Id> copies = to_vector(parts.stores);
  for (Id& copy : copies)
    for (Id condition : it->second) copy = gate_loads(g, open, copy, condition);
  return make_filled(g, copies, ranges);
}

// A copy is gated by the conditions that all stores reading it have in common.
void gate_copies(Kernel& kernel, OpenRanges& open, std::span<const WorkItemAxis> axes,
                 const RuleTable& copies) {
  Graph& g = kernel.graph;
  std::map<Id, std::vector<Id>> asked;  // by array
  std::set<Id> outside;                 // conditions of enclosing blocks
  const std::vector<Id> stores = to_vector(g.sources(kernel.sink));
  for (Id store : stores) {
    std::vector<Id> own;
    if (g.sources(store).size() == 4) own = conjuncts(g, g.sources(store)[3]);
    std::erase_if(own, [&](Id condition) { return !decided_by_groups(g, open, condition); });
    std::ranges::sort(own);
    const bool encloses = gate_encloses(g, open, for_first_work_items(g, open, axes, store));
    for (Id filled : nodes_of(g, store, Op::Filled)) {
      if (!is_local(g, filled)) continue;
      const auto [at, is_first] = asked.emplace(filled, own);
      std::erase_if(at->second,
                    [&](Id condition) { return std::ranges::find(own, condition) == own.end(); });
      if (!encloses) outside.insert(filled);
    }
  }
  std::erase_if(asked, [&](const auto& entry) {
    return entry.second.empty() || !outside.contains(entry.first);
  });
  if (asked.empty()) return;
  CopyGates gates{open, asked};
  kernel.sink = rewrite(g, kernel.sink, copies, {.context = &gates});
}

constexpr Rule kCopyGates[] = {
    rule("gate-copy", any_of(x, Op::Filled), code<gate_copy>),
};

}  // namespace

std::span<const Rule> copy_predication_rules() {
  return kCopyGates;
}

void predicate_work_items(Kernel& kernel) {
  static const RuleTable copies(kCopyGates);
  Graph& g = kernel.graph;
  OpenRanges open(g);
  const std::vector<WorkItemAxis> axes = work_item_axes(kernel, open);
  gate_copies(kernel, open, axes, copies);
  const std::vector<Id> before = to_vector(g.sources(kernel.sink));
  std::vector<Id> stores;
  for (Id store : before) {
    Id gated = for_first_work_items(g, open, axes, store);
    if (g.sources(store).size() == 4 && !gate_encloses(g, open, gated))
      for (Id condition : conjuncts(g, g.sources(store)[3]))
        if (decided_by_ids(g, open, condition)) gated = gate_loads(g, open, gated, condition);
    stores.push_back(gated);
  }
  kernel.sink = g.add(Op::Sink, DType::Void, stores);
  compact(kernel);
}

}  // namespace plugrad::codegen
