// Turns stored values into loops over scalars (ir/kernel_ast.h).
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "schedule/lower/indexing.h"
#include "schedule/scheduler_state.h"

namespace plugrad {
class RangeSets;
class Simplifier;
}  // namespace plugrad

namespace plugrad::schedule {

/// A kernel, by parameter the stored node of the scheduler's graph, and its scalars as in Step::numbers.
struct LoweredKernel {
  std::shared_ptr<KernelAst> ast;
  std::vector<Id> params;
  std::vector<uint32_t> numbers;
};

/// Lowers kernels one after another; keeps its memory between them.
class KernelLowering {
 public:
  explicit KernelLowering(SchedulerState& state) : state_(state) {}

  /// The kernel that computes the stored nodes `outputs`, ascending. Their shapes differ in axes of
  /// size 1 only.
  LoweredKernel lower(const std::vector<Id>& outputs);

 private:
  // A node evaluated at one index, under one gate, inside one set of reduce loops.
  struct Instance {
    Id node;
    ListId index;         // one index expression for each axis
    Id gate;              // the value is only needed where this condition holds; kNoId: everywhere
    uint32_t loops;       // the reduce loops around it
    uint32_t next;        // another instance of the node, or kNone
    uint32_t number = 1;  // instances of the node up to this one
    Id value = kNoId;     // its node in the kernel
    bool entered = false;
    // The same for its sources.
    ListId inner_index = 0;
    Id inner_gate = kNoId;
    uint32_t inner_loops = 0;
    Id valid = kNoId;  // of a Pad
  };
  // The loops of Reduces over the same sizes inside the same loops: they share them.
  struct Loops {
    uint32_t outer;
    ListId sizes;
    uint32_t phase;  // differs for nested Reduces
    std::vector<Id> ranges;
  };
  // An output, with the index and, once lowered, the value of its element.
  struct Output {
    Id node, index, value;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  void begin(const std::vector<Id>& outputs, Graph& graph, Simplifier& simplifier);
  Dims axis_order(Id node) const;
  void make_output_loops(Id output);
  std::vector<Id> output_index(Id output);
  Id element(Id node, std::span<const Id> index);
  Id store(Id output);
  Id with_limits(Id store, Id output);
  Id lower_count(Id count);
  bool may_read(std::span<const Id> leaves) const;
  Id lower_value(Id root, ListId index);
  bool is_one_element(ListId index) const;
  uint32_t instance(Id node, ListId index, Id gate, uint32_t loops);
  uint32_t source_instance(const Instance& at, Id source);
  void enter(Instance& at);
  void enter_movement(Instance& at);
  void enter_padding(Instance& at, std::span<Id> inner);
  void enter_reduce(Instance& at);
  Id finish(const Instance& at);
  Id load(const Instance& at);
  Id number(Id scalar);
  Id padded(const Instance& at, Id value);
  Id reduced(const Instance& at, Id value);
  bool zero_outside(Id value, Id gate) const;
  bool differ_in_loops(const Instance& a, const Instance& b);
  bool is_part_of_buffered(Id node, const std::vector<Id>& buffered) const;
  std::vector<std::vector<Id>> values_of(Id node);
  bool are_rows_of_operand(Id value, RangeSets& open);
  Id mark_local_buffers(Id sink);
  bool is_leaf(Id node) const;
  const Output* output(Id node) const;
  uint32_t loops_for(uint32_t outer, const Dims& sizes, const Dims& order, uint32_t phase);
  uint32_t loops_around(ListId index, Id gate, uint32_t loops);
  uint64_t runs_along(Id id);
  void find_phases(const std::vector<Id>& outputs);
  Id param(Id node);
  uint32_t slot_of(Id node) {
    const auto [at, is_new] = slots_.try_emplace(node, static_cast<uint32_t>(params_.size()));
    if (is_new) params_.push_back(node);
    return at->second;
  }
  ListId index_list(std::span<const Id> index);
  std::vector<Id> index_of(ListId list) const;

  SchedulerState& state_;
  std::vector<Output> outputs_;
  std::vector<Id> ranges_;  // the loops of the outputs
  uint32_t device_ = 0;
  uint32_t next_axis_ = 0;
  Graph* graph_ = nullptr;
  std::unique_ptr<Indexing> indexing_;
  std::function<Id(Id)> simplify_;
  std::vector<uint32_t> first_;  // by tensor node: its first instance
  std::vector<Id> touched_;
  std::vector<Instance> instances_;
  std::vector<uint32_t> stack_;
  std::vector<Loops> loops_;
  std::vector<uint32_t> phase_;  // by tensor node: nested Reduces on the longest path down
  std::vector<uint64_t> runs_;   // by node of the kernel
  std::vector<Id> params_;
  std::unordered_map<Id, uint32_t> slots_;  // by node: its index in params_
  std::vector<uint32_t> numbers_;           // by scalar of the kernel: as Step::numbers
  bool is_exact_ = false;
};

}  // namespace plugrad::schedule
