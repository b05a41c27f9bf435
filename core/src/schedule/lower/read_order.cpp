#include "schedule/lower/read_order.h"

#include <algorithm>

#include "ir/kernel_ast.h"
#include "plugrad/plugin_api/kernel_ir.h"
#include "schedule/scheduler_state.h"

namespace plugrad::schedule {
namespace {

bool is_read_alone(const Graph& g, Id param) {
  return (param_info(g, param).flags & PGR_PARAM_WRITE) == 0;
}

uint64_t own_hash(const Graph& g, Id id) {
  const Node& n = g[id];
  uint64_t hash = mixed(static_cast<uint64_t>(n.op), static_cast<uint64_t>(n.dtype));
  if (op_info(n.op).arg != ArgKind::List) return mixed(hash, n.arg);
  const bool has_slot = n.op == Op::Param && is_read_alone(g, id);
  for (int64_t value : g.arg_list(id).subspan(has_slot ? 1 : 0))
    hash = mixed(hash, static_cast<uint64_t>(value));
  return hash;
}

uint64_t order_hash(const Graph& g, Id id, std::span<const uint64_t> below) {
  const Node& n = g[id];
  uint64_t hash = own_hash(g, id);
  const auto sources = g.sources(n);
  if (is_commutative(n.op) && sources.size() == 2) {
    const auto [low, high] = std::minmax(below[sources[0]], below[sources[1]]);
    return mixed(mixed(hash, low), high);
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    const bool is_index = n.op == Op::Load && i == 1;
    const Id source = is_index ? split_index(g, sources[i]).base : sources[i];
    hash = mixed(hash, source == kNoId ? 0 : below[source]);
  }
  return hash;
}

}  // namespace

SplitIndex split_index(const Graph& g, Id index) {
  if (is_const(g, index)) return {kNoId, const_int(g, index)};
  const Node& n = g[index];
  if (n.op == Op::Add && is_const(g, n.src[1])) return {n.src[0], const_int(g, n.src[1])};
  return {index, 0};
}

/// Depth first; sources of commutative ops in the order of their hashes.
ReadOrder::ReadOrder(const KernelAst& ast) {
  const Graph& g = ast.graph;
  std::vector<uint64_t> hashes(g.size());
  Reachable reachable;
  for (Id id : reachable.from(g, std::span(&ast.sink, 1))) hashes[id] = order_hash(g, id, hashes);
  std::vector<bool> seen(g.size());
  std::vector<Id> stack = {ast.sink};
  while (!stack.empty()) {
    const Id id = stack.back();
    stack.pop_back();
    if (seen[id]) continue;
    seen[id] = true;
    const Op op = g[id].op;
    if (op == Op::Load) loads.push_back(id);
    if (op == Op::Param && is_read_alone(g, id)) params.push_back(id);
    const auto sources = g.sources(id);
    const auto first = stack.insert(stack.end(), sources.begin(), sources.end());
    if (is_commutative(op))
      std::stable_sort(first, stack.end(), [&](Id a, Id b) { return hashes[a] < hashes[b]; });
  }
  hash = mixed(mixed(hashes[ast.sink], loads.size()), params.size());
}

}  // namespace plugrad::schedule
