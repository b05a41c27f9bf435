// What it costs to compute a value again where it is read, instead of storing it.
#pragma once

#include <optional>
#include <vector>

#include "schedule/scheduler_state.h"

namespace plugrad::schedule {

/// The part of the graph that would be computed again: everything down to stored values.
struct Region {
  uint32_t weight = 0;      // of its operations; an add is 1
  uint32_t leaf_count = 0;  // distinct stored values read
  bool has_iota = false;  // a comparison with it picks elements: such a sum often becomes one load
};

/// Looks below single nodes; stops where the weight exceeds `kTooHeavy`.
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

/// How often each element of a node is computed by the kernels that read it, and for what.
struct Demand {
  std::vector<float> ratio;  // evaluations an element, in the kernel with most
  std::vector<uint8_t>
      operand;  // of a Reduce that reads its leaves repeatedly, as matmul and convolution do
  std::vector<Id> kernel;  // the stored node whose kernel alone computes it; kMany
  static constexpr Id kMany = kNoId - 1;
  // Of kernels, by what they store: whether a reduction of theirs is like a matmul, once asked for.
  std::vector<std::optional<bool>> has_product;

  explicit Demand(size_t size) : ratio(size), operand(size), kernel(size), has_product(size) {}
  /// From the consumers' entries, which stand already: nodes are visited from the last to the
  /// first.
  void update(const SchedulerState& state, Id node);
};

/// Whether the one kernel that reads the stored value can compute it outside of its inner loops, as
/// the maximum of each row in the kernel that reads the row again. `demand` holds for its
/// consumers.
bool computes_once(SchedulerState& state, Demand& demand, Id node);

/// Whether the kernel that reads the rows of the stored value as an operand of a matmul is to
/// compute them too, a few at a time. Where it is, the value and what nothing else reads of its
/// making are no longer stored, but of_rows. `demand` holds for the consumers.
bool computes_in_blocks(SchedulerState& state, Demand& demand, Id node);

/// Most distinct stored values that a kernel may read: stores values inside until every kernel
/// keeps to it. Returns whether anything was stored.
bool limit_kernels(SchedulerState& state);

/// Instructions for one element of the node on the CPUs measured, as its decomposition in codegen
/// has statements.
uint32_t instructions_of(const Graph& g, const Node& n);

/// Of one kernel: 1,000 additions for one read and one write, or 8 sines. LLVM takes 0.1 s for it,
/// and more than twice as long for twice as many.
inline constexpr uint32_t kMostInstructions = 1000;

/// Stores values inside until the work of every kernel is about kMostInstructions at most. Returns
/// whether anything was stored.
bool limit_work(SchedulerState& state);

/// Stores values inside that a kernel would compute at too many indices. Returns whether anything
/// was stored.
bool limit_indices(SchedulerState& state);

/// Stores expressions that a long kernel would compute of many values each, so that they become one
/// kernel. Returns whether anything was stored.
bool store_repeated_blocks(SchedulerState& state);

/// Decides for every Reduce where its value is stored: it flows on through what can share its
/// loops. Sets state.like_matmul.
void choose_fusion_roots(SchedulerState& state);

}  // namespace plugrad::schedule
