#include "codegen/analysis/access.h"

#include <algorithm>

#include "base/check.h"
#include "codegen/analysis/tensor_core.h"
#include "ir/facts.h"

namespace plugrad::codegen {
namespace {

std::optional<int64_t> product_stride(const Graph& g, Id a, Id b, Id variable) {
  const auto da = stride_of(g, a, variable), db = stride_of(g, b, variable);
  if (da == 0 && db == 0) return 0;
  if (da && db == 0 && is_const(g, b)) return *da * const_int(g, b);
  if (db && da == 0 && is_const(g, a)) return *db * const_int(g, a);
  return std::nullopt;
}

// id = rest + constant; the simplifier puts a sum's constant last.
struct SumParts {
  Id rest = kNoId;
  int64_t constant = 0;
};
SumParts sum_parts(const Graph& g, Id id) {
  if (is_const(g, id)) return {kNoId, const_int(g, id)};
  const Node& n = g[id];
  if (n.op == Op::Add && is_const(g, n.src[1])) return {n.src[0], const_int(g, n.src[1])};
  return {id, 0};
}

}  // namespace

std::optional<int64_t> stride_of(const Graph& g, Id index, Id variable) {
  if (index == variable) return 1;
  if (index < variable) return 0;  // an older node cannot depend on it
  const Node& n = g[index];
  if (n.op == Op::Range) return 0;  // its bounds may vary, its set of values does not
  if (n.op == Op::Mul) return product_stride(g, n.src[0], n.src[1], variable);
  if (n.op == Op::Add || n.op == Op::Sub) {
    const auto a = stride_of(g, n.src[0], variable), b = stride_of(g, n.src[1], variable);
    if (!a || !b) return std::nullopt;
    return n.op == Op::Add ? *a + *b : *a - *b;
  }
  for (Id s : g.sources(n))
    if (stride_of(g, s, variable) != 0) return std::nullopt;
  return 0;
}

std::optional<std::vector<int64_t>> index_steps(Graph& g, Simplifier& simplify, Id index,
                                                Id variable, int64_t count) {
  std::vector<int64_t> steps;
  const auto stride = stride_of(g, index, variable);
  SumParts first{};
  for (int64_t value = 0; value < count; ++value) {
    if (stride) {
      steps.push_back(value * *stride);
      continue;
    }
    const SumParts parts =
        sum_parts(g, simplify(substitute(g, index, {{variable, g.index(value)}})));
    if (value == 0) first = parts;
    if (parts.rest != first.rest) return std::nullopt;
    steps.push_back(parts.constant - first.constant);
  }
  return steps;
}

RangeSet OpenRanges::operator[](Id id) {
  while (by_id_.size() <= id) by_id_.push_back(compute(static_cast<Id>(by_id_.size())));
  return by_id_[id];
}

RangeSet OpenRanges::compute(Id id) {
  const Node& n = graph_[id];
  RangeSet open = n.op == Op::Range || n.op == Op::Iota ? bit(id) : 0;
  for (Id s : graph_.sources(n)) open |= by_id_[s];
  if (n.op == Op::Reduce || n.op == Op::Filled)
    for (Id s : graph_.sources(n))
      if (graph_[s].op == Op::Range) open &= ~bit(s);
  if (is_of_tiles(graph_, id))
    for (Id s : graph_.sources(n))
      if (is_element(graph_[s])) open &= ~bit(s);
  // A single lane does not vary over its vector's lanes; neither does an array.
  if ((n.op == Op::Lane && n.arg >> 16 == 1) || n.op == Op::Filled)
    for (Id member : members(open))
      if (graph_[member].op == Op::Iota) open &= ~bit(member);
  return open;
}

RangeSet OpenRanges::bit(Id range) {
  for (size_t i = 0; i < ranges_.size(); ++i)
    if (ranges_[i] == range) return RangeSet{1} << i;
  require(ranges_.size() < 128, "[codegen] a kernel has more than 128 ranges; split fewer axes");
  ranges_.push_back(range);
  return RangeSet{1} << (ranges_.size() - 1);
}

std::vector<Id> OpenRanges::members(RangeSet set) const {
  std::vector<Id> out;
  for (size_t i = 0; i < ranges_.size(); ++i)
    if (set >> i & 1) out.push_back(ranges_[i]);
  std::ranges::sort(out);
  return out;
}

bool may_repeat(const Graph& g, OpenRanges& open, std::span<const Id> stores, Id range) {
  const auto is_end = [&](Id id) { return g[id].op == Op::Reduce; };
  const auto stores_sums = [&](Id store) {
    if (!open.depends(store, range)) return true;
    bool sums = false;
    Reachable reachable;
    const Id value = g.sources(store)[2];
    for (Id id : reachable.from(g, std::span(&value, 1), is_end)) {
      sums |= g[id].op == Op::Reduce;
      if (g[id].op == Op::Load && open.depends(id, range)) return false;
    }
    const auto is_stored = [&](Id load) {
      return std::ranges::any_of(stores,
                                 [&](Id s) { return g.sources(s)[0] == g.sources(load)[0]; });
    };
    return sums && g.sources(store).size() == 3 &&
           std::ranges::none_of(nodes_of(g, store, Op::Load), is_stored);
  };
  return std::ranges::all_of(stores, stores_sums);
}

std::vector<Id> nodes_of(const Graph& g, Id root, Op op) {
  Reachable reachable;
  std::vector<Id> out;
  for (Id id : reachable.from(g, std::span(&root, 1)))
    if (g[id].op == op) out.push_back(id);
  return out;
}

}  // namespace plugrad::codegen
