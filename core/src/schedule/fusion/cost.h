// The cost of recomputing a value where it is read instead of storing it.
#pragma once

#include <optional>
#include <vector>

#include "schedule/scheduler_state.h"

namespace plugrad::schedule {

/// The part of the graph that would be recomputed: all nodes down to stored values.
struct Region {
  uint32_t weight = 0;      // of its operations; an add is 1
  uint32_t leaf_count = 0;  // distinct stored values read
  // a comparison with an Iota selects elements: such a sum often becomes one load
  bool has_iota = false;
};

/// Finds regions of single nodes. Stops where the weight exceeds kTooHeavy.
class RegionFinder {
 public:
  explicit RegionFinder(const SchedulerState& state)
      : state_(state), epoch_of_(state.graph.size(), 0) {}
  Region below(Id node);

  static constexpr uint32_t kTooHeavy = 64;

 private:
  const SchedulerState& state_;
  std::vector<uint32_t> epoch_of_;
  uint32_t epoch_ = 0;
  std::vector<Id> stack_;
};

/// How often, and for which purpose, kernels compute each element of a node.
struct Demand {
  std::vector<float> ratio;     // evaluations per element, in the kernel with most
  std::vector<uint8_t> summed;  // whether only views lie between the node and the sums that read it
  std::vector<uint8_t> operand;  // whether a Reduce like a matmul reads it as an operand
  std::vector<Id> kernel;        // the stored node whose kernel alone computes it; kMany
  static constexpr Id kMany = kNoId - 1;
  // By stored node: whether its kernel has a reduction like a matmul; computed lazily.
  std::vector<std::optional<bool>> has_product;

  explicit Demand(size_t size)
      : ratio(size), summed(size), operand(size), kernel(size), has_product(size) {}
  /// Computes the node's entries from those of its consumers: visit nodes in descending order.
  void update(const SchedulerState& state, Id node);
};

/// Whether the node is a Pad that adds few elements: computing its source for these, too, costs little.
bool is_thin_frame(const SchedulerState& state, Id node);

/// Whether the one kernel that reads the stored value can compute it outside its inner loops, e.g.
/// the maximum of each row. `demand` holds for the consumers.
bool computes_once(SchedulerState& state, Demand& demand, Id node);

/// Whether the kernel that reads rows of the stored value as an operand of a matmul should compute
/// them, in blocks. If so, the value and its exclusive intermediates become of_rows instead of
/// stored. `demand` holds for the consumers.
bool computes_in_blocks(SchedulerState& state, Demand& demand, Id node);

/// Stores values until no kernel reads more distinct stored values than Options::max_params allows.
/// Returns whether it stored any.
bool limit_kernels(SchedulerState& state);

/// Instructions for one element of the node on the CPUs measured: the statements of its
/// decomposition in codegen.
uint32_t instructions_of(const Graph& g, const Node& n);

/// Limit on one kernel: 1,000 additions for one read and one write, or 8 sines. LLVM compiles it in
/// 0.1 s, and needs more than twice the time for twice as many.
inline constexpr uint32_t kMostInstructions = 1000;

/// Stores values until the work of every kernel is at most kMostInstructions, as far as values can
/// be stored. Returns whether it stored any.
bool limit_work(SchedulerState& state);

/// Stores values until every kernel executes at most 1.25 times the operations of its nodes, each
/// computed once in the plan, and what hides behind the memory that it moves; sets `repeated` of the
/// plan. Returns whether it stored any.
bool limit_evaluations(SchedulerState& state);

/// Stores an expression that a long kernel would compute of many values, so that one kernel serves
/// all of them. Returns whether it stored any.
bool store_repeated_blocks(SchedulerState& state);

/// Chooses for every Reduce the stored value that it is fused into (fusion_roots.cpp). Sets
/// state.like_matmul.
void choose_fusion_roots(SchedulerState& state);

}  // namespace plugrad::schedule
