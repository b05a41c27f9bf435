#include "schedule/fusion/store_cost.h"

#include <algorithm>

#include "cost/work.h"
#include "schedule/fusion/cost.h"

namespace plugrad::schedule {
namespace {

constexpr double kWritten = 2;        // a cache line is read before it is written
constexpr int64_t kFewElements = 16;  // elements of a light Reduce
constexpr size_t kMostNodes = 256;    // nodes computed with light Reduces
constexpr size_t kMostReaders = 16;

}  // namespace

std::vector<Id> light_reductions_below(const SchedulerState& state, Id node) {
  const Graph& g = state.graph;
  std::vector<Id> reductions;
  Reachable& reachable = state.reachable;
  const auto is_read = [&](Id id) { return id != node && state.stored[id] != 0; };
  size_t entered = 0;
  const auto stops = [&](Id id) { return is_read(id) || ++entered > kMostNodes; };
  const std::vector<Id>& nodes = reachable.from(g, std::span(&node, 1), stops);
  state.visits += nodes.size();
  if (entered > kMostNodes) return {};
  for (Id id : nodes) {
    if (is_read(id) || g[id].op != Op::Reduce) continue;
    const bool few = state.counts[g[id].src[0]] <= kFewElements * state.counts[id];
    if (!few || state.like_matmul[id] != 0) return {};
    reductions.push_back(id);
  }
  return reductions;
}

double StoreCost::bytes(Id leaf) const {
  return static_cast<double>(state_.counts[leaf]) *
         static_cast<double>(size_of(state_.graph[leaf].dtype));
}

/// Reads and work of the kernel of `roots`, without nodes that only `except` needs. Stops at
/// kMostInstructions nodes.
StoreCost::Below StoreCost::below(std::span<const Id> roots, Id except) {
  Below found;
  const Graph& g = state_.graph;
  ++epoch_;
  stack_.assign(roots.begin(), roots.end());
  for (Id root : roots) mark_[root] = epoch_;
  for (uint32_t count = 0; !stack_.empty() && count < kMostInstructions; ++count) {
    const Id id = stack_.back();
    stack_.pop_back();
    ++state_.visits;
    if (state_.stored[id] != 0 && std::ranges::find(roots, id) == roots.end()) {
      found.leaves.push_back(id);
      continue;
    }
    const Node& n = g[id];
    const bool reduces = n.op == Op::Reduce;
    found.heavy = found.heavy || (reduces && state_.like_matmul[id] != 0);
    found.work += reduces ? static_cast<double>(state_.computed[n.src[0]])
                          : static_cast<double>(state_.computed[id]) * cost::op_weight(g, n);
    for (Id s : g.sources(n)) {
      if (s == except || mark_[s] == epoch_) continue;
      mark_[s] = epoch_;
      stack_.push_back(s);
    }
  }
  return found;
}

/// Finds the stored values whose kernels compute `node` as long as it is not stored, one entry for
/// each kernel. False if there are too many, if one is no kernel of loops, or if one is a sum of
/// products, which would compute `node` for each of its terms.
bool StoreCost::find_readers(Id node) {
  readers_.clear();
  ++epoch_;
  stack_.assign(1, node);
  reduced_[node] = 0;
  uint32_t visits = 0;
  while (!stack_.empty()) {
    const Id id = stack_.back();
    stack_.pop_back();
    for (Id c : state_.consumers.of(id)) {
      ++state_.visits;
      if (mark_[c] == epoch_) continue;
      mark_[c] = epoch_;
      if (++visits > kMostInstructions) return false;
      if (state_.like_matmul[c] != 0) return false;
      const Op op = state_.graph[c].op;
      const int64_t own = op == Op::Reduce ? state_.computed[id] : 0;
      reduced_[c] = std::max(reduced_[id], own);
      if (state_.stored[c] == 0) {
        stack_.push_back(c);
        continue;
      }
      if (op == Op::Copy || op == Op::Collective || op == Op::UserKernel ||
          readers_.size() == kMostReaders)
        return false;
      readers_[{state_.counts[c], reduced_[c]}].push_back(c);
    }
  }
  return true;
}

bool StoreCost::pays(Id node) {
  const Below own = below(std::span(&node, 1), kNoId);
  if (own.heavy) return true;
  const cost::Machine& machine = state_.options.machine;
  const double computed = machine.bytes_an_operation() * own.work;
  double stored = computed + kWritten * bytes(node), repeated = 0;
  for (Id leaf : own.leaves) stored += bytes(leaf);
  if (stored < machine.near_bytes || !find_readers(node)) return true;
  for (const auto& [loops, kernel] : readers_) {
    const Below other = below(kernel, node);
    stored += bytes(node);
    repeated += computed;
    for (Id leaf : own.leaves)
      if (std::ranges::find(other.leaves, leaf) == other.leaves.end()) repeated += bytes(leaf);
  }
  return stored < repeated;
}

}  // namespace plugrad::schedule
