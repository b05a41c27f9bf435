// What the stages of the scheduler work on: one tensor graph on its way to a plan.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "ir/facts.h"
#include "schedule/schedule.h"

namespace plugrad::schedule {

using Dims = std::vector<int64_t>;

/// UseLists of every node among the live ones, as one array of ids and an offset a node.
struct UseLists {
  std::vector<uint32_t> begin;
  std::vector<Id> ids;
  std::span<const Id> of(Id id) const {
    return {ids.data() + begin[id], ids.data() + begin[id + 1]};
  }
};

/// Only the first `count` places along the axis of a value are ever looked at; an i32 of shape ().
struct Limit {
  size_t axis;
  Id count;
  bool operator==(const Limit&) const = default;
};

/// A Buffer of `graph` whose elements are known: each as a Const node has it in its arg.
struct ConstantBuffer {
  Id node;
  std::vector<uint64_t> bits;
};

class Materialiser;

/// Facts are vectors by id of `graph`, in which ascending ids are a topological order.
struct SchedulerState {
  // What was asked for.
  const Graph& source;
  std::span<const Id> source_roots, source_inputs;
  uint32_t default_device = 0;
  const Options& options;

  // simplify_tensors
  Graph graph;
  Shapes shapes{graph};
  std::vector<Id> roots;           // of `graph`: nodes that are stored, or Buffers
  std::vector<Id> inputs;          // of `graph`, by input number; kNoId where no root needs it
  std::vector<uint8_t> requested;  // a root, or made contiguous
  std::vector<ConstantBuffer> constants;
  uint32_t joined_on = 0;  // device of the parts being joined, for their constants

  // find_limits
  std::map<Id, std::vector<Limit>> limits;  // of nodes with axes of variable sizes
  std::vector<Id> masks;  // Wheres that put something harmless behind such a size, ascending

  // make_use_lists
  std::vector<Id> live;  // ascending
  UseLists consumers;
  std::vector<int64_t> counts;  // elements of each node
  std::vector<uint8_t>
      indexed;  // of Reduces: terms are found by an index (schedule/indexed_sums.h)
  std::vector<int64_t> computed;  // elements that are computed: what only such Reduces look at,
                                  // once for all rows
  std::vector<uint32_t> devices;  // that compute each node; of constants, the first that needs them
  std::vector<uint8_t> constant;  // depends on Options::constants, and on no other input

  // materialisation: store_required to find_exact
  std::shared_ptr<Materialiser> materialiser;  // what these stages share
  std::vector<uint8_t> stored;  // has memory of its own: computed by a kernel or copy, or a Buffer
  std::vector<uint8_t> like_matmul;  // of Reduces: reads its leaves repeatedly
  std::vector<uint8_t>
      of_rows;  // not stored, and yet computed once: outside of its reader's inner loops
  std::vector<uint8_t> in_blocks;    // its kernel makes rows of an operand itself, a few at a time
  std::vector<uint8_t> exact;        // computed by several kernels that must agree on the last bit
  std::vector<uint8_t> ends_kernel;  // its kernel is as long as it may be: not merged with readers

  // choose_layouts
  std::map<Id, Dims> order;  // of stored values that are not row-major: their axes, outermost first
  // Of those, the ones whose innermost axis is cut into blocks of so many elements: the blocks are
  // the outermost axis, and each is the innermost of all its own.
  std::map<Id, int64_t> blocks;
  std::map<Id, Dims> loop_order;  // of Reduces: numbers of their axes, the outermost loop first

  // share_kernels
  std::vector<std::vector<Id>> kernels;  // in the order of execution: the values that each stores

  mutable uint64_t visits = 0;  // of nodes below others, counted by whoever walks there
  mutable Reachable reachable;  // working memory of walks below single nodes

  // assemble
  std::vector<uint32_t> buffer_of;  // index into plan.buffers, by id; kNoBuffer when none
  Plan plan;

  /// Whether the value is only a condition or a choice of terms that are stored by an index: it
  /// never has memory.
  bool is_for_rows(Id id) const { return computed[id] != counts[id]; }

  SchedulerState(const Graph& from, std::span<const Id> root_ids, std::span<const Id> input_ids,
                 uint32_t device, const Options& opts)
      : source(from),
        source_roots(root_ids),
        source_inputs(input_ids),
        default_device(device),
        options(opts) {}
  SchedulerState(const SchedulerState&) = delete;
  SchedulerState& operator=(const SchedulerState&) = delete;
};
inline constexpr uint32_t kNoBuffer = UINT32_MAX;

/// Runs the stages before `end`.
void run_until(SchedulerState& state, std::string_view end);

// The stages, in order (pipeline.cpp).
void simplify_tensors(SchedulerState& state);
/// A part of it: `new_id` says which node of the scheduler state each node of the source became.
void find_limits(SchedulerState& state, std::span<const Id> new_id);
/// The Buffers that a count of a Limit is made of.
std::vector<Id> leaves_of_count(const Graph& graph, Id count);
void make_use_lists(SchedulerState& state);
void store_required(SchedulerState& state);
void materialise(SchedulerState& state);
void fuse_row_reductions(SchedulerState& state);
void store_blocks(SchedulerState& state);
void limit_all(SchedulerState& state);
void find_exact(SchedulerState& state);
void choose_layouts(SchedulerState& state);
void share_kernels(SchedulerState& state);
void assemble(SchedulerState& state);
void plan_memory(SchedulerState& state);

/// A reshape, permutation, flip or shrink: reads each element of its source at most once.
bool is_plain_view(Op op);

}  // namespace plugrad::schedule
