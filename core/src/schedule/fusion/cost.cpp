#include "schedule/fusion/cost.h"

#include <algorithm>

#include "cost/work.h"

namespace plugrad::schedule {
namespace {

uint32_t region_weight(const Graph& g, const Node& n) {
  return n.op == Op::Reduce ? RegionFinder::kTooHeavy : cost::op_weight(g, n);
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

bool is_thin_frame(const SchedulerState& state, Id node) {
  const Node& n = state.graph[node];
  return n.op == Op::Pad && 4 * state.counts[node] <= 5 * state.counts[n.src[0]];
}

void Demand::update(const SchedulerState& state, Id node) {
  ratio[node] = state.requested[node] != 0 ? 1.0f : 0.0f;
  operand[node] = 0;
  kernel[node] = kNoId;
  summed[node] = 1;
  const float own = static_cast<float>(std::max<int64_t>(state.computed[node], 1));
  for (Id c : state.consumers.of(node)) {
    ++state.visits;
    const Op op = state.graph[c].op;
    const bool ends = state.stored[c] != 0, reduces = op == Op::Reduce;
    summed[node] &= reduces || (is_movement(op) && !ends && summed[c] != 0);
    // Sums skip the elements that a Pad adds (tighten_bounds in codegen).
    const bool once = reduces || is_thin_frame(state, c) || (op == Op::Pad && summed[c] != 0);
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
