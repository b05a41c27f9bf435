#include "codegen/analysis/term_blocks.h"

#include "codegen/analysis/access.h"
#include "codegen/kernel.h"
#include "ir/facts.h"

namespace plugrad::codegen {
namespace {

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

}  // namespace

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

}  // namespace plugrad::codegen
