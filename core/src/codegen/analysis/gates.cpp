#include "codegen/analysis/gates.h"

#include <algorithm>

#include "codegen/passes/tables.h"
#include "ir/facts.h"
#include "ir/range.h"
#include "ir/scratch.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {

Id gated_load(Graph& g, Id load, Id gate) {
  std::vector<Id> sources(g.sources(load).begin(), g.sources(load).end());
  if (sources.size() > 2) {
    sources[2] = g.binary(Op::And, sources[2], gate);
  } else {
    const Id zero = g.constant(g[load].dtype, int64_t{0});
    sources.push_back(gate);
    sources.push_back(g[load].arg > 1 ? g.add(Op::Vector, g[load].dtype, {zero}, g[load].arg)
                                      : zero);
  }
  return g.add(Op::Load, g[load].dtype, sources, g[load].arg);
}

template <class IsKind>
bool depends_on(const Graph& g, OpenRanges& open, Id gate, IsKind is_kind) {
  return std::ranges::any_of(open.members(open[gate]), [&](Id r) {
    return g[r].op == Op::Range && is_kind(range_kind(g[r]));
  });
}

}  // namespace

Id with_gate(Graph& g, Id store, Id gate) {
  std::vector<Id> sources(g.sources(store).begin(), g.sources(store).end());
  if (sources.size() == 4)
    sources[3] = g.binary(Op::And, sources[3], gate);
  else
    sources.push_back(gate);
  return g.add(Op::Store, g[store].dtype, sources);
}

std::vector<Id> conjuncts(const Graph& g, Id gate) {
  std::vector<Id> out, stack = {gate};
  while (!stack.empty()) {
    const Id id = stack.back();
    stack.pop_back();
    if (g[id].op == Op::And && g[id].dtype == DType::Bool)
      for (Id s : g.sources(id)) stack.push_back(s);
    else
      out.push_back(id);
  }
  return out;
}

bool is_on_elements(const Graph& g, OpenRanges& open, Id condition) {
  return std::ranges::any_of(nodes_of(g, condition, Op::Load),
                             [&](Id load) { return open[load] != 0; });
}

bool has_strict_gate(const Graph& g, Id store) {
  if (g.sources(store).size() < 4) return false;
  return std::ranges::any_of(conjuncts(g, g.sources(store)[3]),
                             [&](Id condition) { return g[condition].op != Op::Bounded; });
}

namespace {
using namespace rules;

struct Gating {
  OpenRanges& open;
  Id gate;
  RangeSet needs;  // ranges of the gate
  bool by_team;    // the gate is on items of a team
};

// What a tensor core takes of a work-item is not what it gives to it, and what a group copies for
// all is not its own.
bool is_of_others(const Graph& g, const Match& m) {
  const bool by_team = m.context<Gating>().by_team;
  return (by_team && g[m.before].op == Op::Wmma) || is_local(g, m.before);
}
Id unchanged(Graph&, const Match& m) {
  return m.before;
}

bool is_meant(const Graph&, const Match& m) {
  const auto& gating = m.context<Gating>();
  return (gating.open[m.before] & gating.needs) == gating.needs;
}
Id gate_load(Graph& g, const Match& m) {
  return gated_load(g, m.root, m.context<Gating>().gate);
}

// clang-format off
constexpr Rule kGates[] = {
    rule("keep-wmma-operands", any_of(x, Op::Wmma),   code<unchanged>, when(check<is_of_others>)),
    rule("keep-local-copies",  any_of(x, Op::Filled), code<unchanged>, when(check<is_of_others>)),
    rule("gate-load",          any_of(x, Op::Load),   code<gate_load>, when(check<is_meant>)),
};
// clang-format on
}  // namespace

std::span<const Rule> predication_rules() {
  return kGates;
}

Id gate_loads(Graph& g, OpenRanges& open, Id root, Id gate) {
  static const RuleTable table(kGates);
  const bool by_team =
      depends_on(g, open, gate, [](AxisKind kind) { return kind == AxisKind::Warp; });
  Gating gating{open, gate, open[gate], by_team};
  return rewrite(g, root, table, {.context = &gating});
}

}  // namespace plugrad::codegen
