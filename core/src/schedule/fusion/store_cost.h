// Compares the cost of storing a value with the cost of recomputing it wherever it is read, in
// bytes moved; an operation counts as a number of bytes.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "schedule/scheduler_state.h"

namespace plugrad::schedule {

/// The Reduces that the kernel of `node` computes, if each of them takes few elements, as pooling
/// does, and is no matmul; otherwise none.
std::vector<Id> light_reductions_below(const SchedulerState& state, Id node);

class StoreCost {
 public:
  explicit StoreCost(const SchedulerState& state)
      : state_(state), mark_(state.graph.size(), 0), reduced_(state.graph.size(), 0) {}

  /// Whether storing `node` costs less than computing it in each kernel that reads it, given the
  /// values stored now.
  bool pays(Id node);

 private:
  struct Below {
    std::vector<Id> leaves;
    double work = 0;
    bool heavy = false;  // a Reduce like a matmul, which is only fast in loops of its own
  };
  /// Identifies a kernel by its elements and the elements of its Reduces.
  using Loops = std::pair<int64_t, int64_t>;
  Below below(std::span<const Id> roots, Id except);
  bool find_readers(Id node);
  double bytes(Id leaf) const;

  const SchedulerState& state_;
  std::vector<uint32_t> mark_;
  uint32_t epoch_ = 0;
  std::vector<int64_t> reduced_;  // by id: elements of the largest Reduce on the path
  std::vector<Id> stack_;
  std::map<Loops, std::vector<Id>> readers_;
};

}  // namespace plugrad::schedule
