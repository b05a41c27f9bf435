#include "schedule/fusion/cost.h"

#include <algorithm>

#include "schedule/fusion/store_cost.h"

namespace plugrad::schedule {
namespace {

uint32_t region_weight(const Graph& g, const Node& n) {
  return n.op == Op::Reduce ? RegionFinder::kTooHeavy : weight_of(g, n);
}

}  // namespace

Region RegionFinder::below(Id node) {
  ++epoch_;
  Region region;
  stack_.assign(1, node);
  epoch_of_[node] = epoch_;
  const Graph& g = state_.graph;
  while (!stack_.empty() && region.weight <= kTooHeavy) {
    const Id id = stack_.back();
    stack_.pop_back();
    ++state_.visits;
    if (id != node && state_.stored[id] != 0) {
      ++region.leaf_count;
      continue;
    }
    const Node& n = g[id];
    region.weight += region_weight(g, n);
    region.has_iota = region.has_iota || n.op == Op::Iota;
    for (Id s : g.sources(n))
      if (epoch_of_[s] != epoch_) {
        epoch_of_[s] = epoch_;
        stack_.push_back(s);
      }
  }
  return region;
}

void Demand::update(const SchedulerState& state, Id node) {
  ratio[node] = state.requested[node] != 0 ? 1.0f : 0.0f;
  operand[node] = 0;
  kernel[node] = kNoId;
  const float own = static_cast<float>(std::max<int64_t>(state.computed[node], 1));
  for (Id c : state.consumers.of(node)) {
    ++state.visits;
    const bool ends = state.stored[c] != 0, reduces = state.graph[c].op == Op::Reduce;
    const bool once = reduces || state.graph[c].op == Op::Pad;  // padding needs no evaluation
    const float grows = once ? 1.0f : static_cast<float>(state.computed[c]) / own;
    ratio[node] = std::max(ratio[node], (ends ? 1.0f : ratio[c]) * grows);
    operand[node] |= reduces ? state.like_matmul[c] : (ends ? uint8_t{0} : operand[c]);
    const Id by = ends ? c : kernel[c];
    kernel[node] = kernel[node] == kNoId || kernel[node] == by ? by : kMany;
  }
  if (state.of_rows[node] != 0) ratio[node] = std::min(ratio[node], 1.0f);
  if (state.stored[node] != 0) kernel[node] = node;
}

}  // namespace plugrad::schedule
