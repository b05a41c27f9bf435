#include "codegen/analysis/predication.h"

#include <algorithm>

#include "codegen/analysis/access.h"
#include "codegen/analysis/work_items.h"
#include "codegen/kernel.h"
#include "codegen/passes/passes.h"
#include "ir/facts.h"
#include "ir/range.h"
#include "ir/scratch.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {

Id gated_load(Graph& g, Id load, Id gate) {
  std::vector<Id> sources = to_vector(g.sources(load));
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
bool depends_on_kind(const Graph& g, OpenRanges& open, Id gate, IsKind is_kind) {
  return std::ranges::any_of(open.members(open[gate]), [&](Id r) {
    return g[r].op == Op::Range && is_kind(range_kind(g[r]));
  });
}

// left - right for a comparison of indices.
std::optional<Linear> difference_of(const Graph& g, Id comparison) {
  const Node& n = g[comparison];
  if (n.op != Op::CmpLt || g[n.src[0]].dtype != DType::Index) return std::nullopt;
  auto left = linear_of(g, n.src[0]);
  const auto right = linear_of(g, n.src[1]);
  if (!left || !right) return std::nullopt;
  for (const Term& t : right->terms) left->add(t.id, -t.factor);
  left->constant -= right->constant;
  return left;
}

bool is_identity(const Graph& g, Id value, Id identity) {
  if (g[value].op != Op::Vector) return value == identity;
  return std::ranges::all_of(g.sources(value), [&](Id lane) { return lane == identity; });
}

using HasValue = std::function<bool(Id)>;

bool needs_loops(const Graph& g, Reachable& reachable, Id term, const HasValue& has_value) {
  return std::ranges::any_of(reachable.from(g, std::span(&term, 1), has_value), [&](Id id) {
    return (g[id].op == Op::Reduce || g[id].op == Op::Filled) && !has_value(id);
  });
}

bool reads_result_of(const Graph& g, Id store, const StoreGroup& group) {
  const std::vector<Id> loads = nodes_of(g, store, Op::Load);
  return std::ranges::any_of(group.stores, [&](Id other) {
    return std::ranges::any_of(loads,
                               [&](Id load) { return g.sources(load)[0] == g.sources(other)[0]; });
  });
}

}  // namespace

Id with_gate(Graph& g, Id store, Id gate) {
  std::vector<Id> sources = to_vector(g.sources(store));
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
  bool by_team;    // whether the gate depends on work-items of a tensor core's team
};

// Operands of a tensor core belong to the whole team, and copies into local memory to the whole
// group.
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
      depends_on_kind(g, open, gate, [](AxisKind kind) { return kind == AxisKind::Warp; });
  Gating gating{open, gate, open[gate], by_team};
  return rewrite(g, root, table, {.context = &gating});
}

std::vector<LoopBound> loop_bounds(const Graph& g, OpenRanges& open, Id reduce) {
  const ReduceParts parts = reduce_parts(g, reduce);
  std::vector<LoopBound> out;
  if (parts.op != Op::Add || parts.values.size() != 1) return out;
  const Node& value = g[parts.values[0]];
  if (value.op != Op::Where || !is_const(g, value.src[2]) || const_float(g, value.src[2]) != 0)
    return out;
  for (Id clause : conjuncts(g, value.src[0])) {
    const auto sum = difference_of(g, clause);
    if (!sum) continue;
    for (const Term& t : sum->terms) {
      if (std::ranges::find(parts.ranges, t.id) == parts.ranges.end()) continue;
      LoopBound bound{clause, t.id, t.factor, *sum};
      bound.rest.add(t.id, -t.factor);
      const bool once = std::ranges::none_of(
          bound.rest.terms, [&](const Term& other) { return open.depends(other.id, t.id); });
      if (once) out.push_back(std::move(bound));
    }
  }
  return out;
}

std::vector<TermBlock> term_blocks(Graph& g, Lanes& lanes, std::span<const Id> reduces,
                                   const HasValue& has_value) {
  std::vector<TermBlock> blocks;
  Reachable reachable;
  for (Id reduce : reduces) {
    const ReduceParts parts = reduce_parts(g, reduce);
    const Id identity = reduce_identity(g, parts.op, g[reduce].dtype);
    for (Id term : parts.values) {
      const Node n = g[term];
      if (n.op != Op::Where || has_value(term) || lanes[n.src[0]] != 1 || lanes[n.src[1]] == 1 ||
          !is_identity(g, n.src[2], identity) || needs_loops(g, reachable, term, has_value))
        continue;
      auto it = std::ranges::find(blocks, n.src[0], &TermBlock::condition);
      if (it == blocks.end()) it = blocks.insert(it, {n.src[0], {}});
      it->terms.push_back(term);
    }
  }
  return blocks;
}

std::vector<Id> needed_by_blocks_too(const Graph& g, std::span<const TermBlock> blocks,
                                     std::span<const Id> others, const HasValue& has_value) {
  std::vector<Id> out, chosen;
  for (const TermBlock& block : blocks) {
    out.push_back(block.condition);
    for (Id term : block.terms) chosen.push_back(g[term].src[1]);
  }
  Reachable by_terms, by_others;
  std::vector<bool> is_met(g.size(), false);
  for (Id id : by_terms.from(g, chosen, has_value)) is_met[id] = true;
  for (Id id : by_others.from(g, others, has_value))
    if (is_met[id]) out.push_back(id);
  return out;
}

std::vector<StoreGroup> store_groups(const Graph& g, OpenRanges& open, Id sink) {
  std::vector<StoreGroup> groups;
  for (Id store : g.sources(sink)) {
    const Id gate = gate_encloses(g, open, store) ? g.sources(store)[3] : kNoId;
    const auto written = std::find_if(groups.rbegin(), groups.rend(), [&](const StoreGroup& group) {
      return group.gate != gate && reads_result_of(g, store, group);
    });
    auto it = std::ranges::find(written.base(), groups.end(), gate, &StoreGroup::gate);
    if (it == groups.end()) it = groups.insert(it, {gate, {}});
    it->stores.push_back(store);
  }
  return groups;
}

}  // namespace plugrad::codegen
