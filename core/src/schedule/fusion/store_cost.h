// What a value costs in memory, against what it costs to compute it wherever it is read: in bytes
// moved, operations being worth so many.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "schedule/scheduler_state.h"

namespace plugrad::schedule {

/// Operations of one element, as a share of an add's.
uint32_t weight_of(const Graph& g, const Node& n);

/// The Reduces that the kernel of `node` computes, where all of them take few elements each, as
/// pools do, and are no matmuls; none where not.
std::vector<Id> light_reductions_below(const SchedulerState& state, Id node);

class StoreCost {
 public:
  explicit StoreCost(const SchedulerState& state)
      : state_(state), mark_(state.graph.size(), 0), reduced_(state.graph.size(), 0) {}

  /// Whether `node` is better stored than computed in each kernel that reads it, with what is
  /// stored now.
  bool pays(Id node);

 private:
  struct Below {
    std::vector<Id> leaves;
    double work = 0;
    bool heavy = false;  // a Reduce like matmul, whose loops are fast alone only
  };
  /// The values of one kernel, as far as can be seen: of so many elements, by Reduces of so many.
  using Loops = std::pair<int64_t, int64_t>;
  Below below(std::span<const Id> roots, Id except);
  bool find_readers(Id node);
  double bytes(Id leaf) const;

  const SchedulerState& state_;
  std::vector<uint32_t> mark_;
  uint32_t epoch_ = 0;
  std::vector<int64_t> reduced_;  // by id: elements of the largest Reduce on the way up
  std::vector<Id> stack_;
  std::map<Loops, std::vector<Id>> readers_;
};

}  // namespace plugrad::schedule
