// The state of the scheduler's stages: one tensor graph on its way to a plan.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "ir/facts.h"
#include "ir/structural_hash.h"
#include "schedule/schedule.h"
#include "schedule/visit_count.h"

namespace plugrad::schedule {

using Dims = std::vector<int64_t>;

/// The consumers of each live node: one array of ids, and an offset for each node.
struct UseLists {
  std::vector<uint32_t> begin;
  std::vector<Id> ids;
  std::span<const Id> of(Id id) const {
    return {ids.data() + begin[id], ids.data() + begin[id + 1]};
  }
};

/// Only the first `count` indices of an axis of a value are read; `count` is an i32 of shape ().
struct Limit {
  size_t axis;
  Id count;
  bool operator==(const Limit&) const = default;
};

/// A Buffer of `graph` with constant elements, in the encoding of a Const node's arg.
struct ConstantBuffer {
  Id node;
  std::vector<uint64_t> bits;
};

class Materialiser;

/// Facts are vectors by id of `graph`, in which ascending ids are a topological order.
struct SchedulerState {
  // Input.
  const Graph& source;
  std::span<const Id> source_roots, source_inputs;
  uint32_t default_device = 0;
  const Options& options;

  // simplify_tensors
  Graph graph;
  Shapes shapes{graph};
  std::vector<Id> roots;           // of `graph`: stored nodes, or Buffers
  std::vector<Id> inputs;          // of `graph`, by input number; kNoId where no root needs it
  std::vector<uint8_t> requested;  // a root, or made contiguous
  std::vector<ConstantBuffer> constants;
  std::vector<Id> source_of;  // by id: a node of `source` that it simplifies; for keep_graph
  uint32_t joined_on = 0;     // device of the parts being joined, for their constants

  std::map<Id, uint32_t> constant_roots;  // computed of constants alone, to be on this device
  std::vector<Id> collectives;  // run even if a rewrite found that this process reads none of them

  // find_limits
  std::map<Id, std::vector<Limit>> limits;  // of nodes with axes of variable size
  // ascending: Wheres that replace elements beyond a variable size by a neutral value
  std::vector<Id> masks;

  // make_use_lists
  std::vector<Id> live;  // ascending
  UseLists consumers;
  std::vector<int64_t> counts;  // elements of each node
  // of Reduces whose terms are stored by an index (indexed_sums.cpp): 1 more than the axis of the
  // index; 0 for others
  std::vector<uint8_t> indexed;
  std::vector<uint64_t> picked;  // of Reduces: axes along which one term is not neutral, as bits
  std::vector<double> work;   // operations of each node, each element computed once (cost/work.h)
  std::vector<int64_t> once;  // elements of each node that are then computed
  // computed elements of each node; a value that only indexed Reduces read is computed once for all
  // rows
  std::vector<int64_t> computed;
  std::vector<uint32_t> devices;  // of each node; for constants, the device of the first consumer
  std::vector<uint8_t> constant;  // depends on Options::constants, and on no other input

  // materialisation: store_required to find_bitwise_comparable
  std::shared_ptr<Materialiser> materialiser;  // shared by these stages
  std::vector<uint8_t> stored;       // materialised: a Buffer, or the result of a kernel or copy
  std::vector<uint8_t> like_matmul;  // of Reduces: reads its operands repeatedly, as a matmul does
  std::vector<uint8_t>
      of_rows;  // not stored, but computed once, outside the inner loops of its reader
  std::vector<uint8_t> in_blocks;  // its kernel computes blocks of rows of an operand
  // several kernels compute it and must agree
  std::vector<uint8_t> bitwise_comparable;
  std::vector<uint8_t> ends_kernel;  // its kernel is at the limit of work: readers do not join it

  // choose_layouts
  std::map<Id, Dims> order;  // of stored values that are not row-major: axes, outermost first
  // Of those, values whose innermost axis is cut into blocks of so many elements. The block number
  // is the outermost axis, the index inside the block the innermost.
  std::map<Id, int64_t> blocks;
  std::map<Id, Dims> loop_order;  // of Reduces: indices of their axes, outermost loop first

  // share_kernels
  std::vector<std::vector<Id>> buckets;  // of Collectives: each starts as one, in this order
  std::vector<std::vector<Id>> kernels;  // in execution order: the values that each kernel stores

  mutable VisitCount visits;    // node visits of walks below single nodes
  mutable Reachable reachable;  // memory of walks below single nodes

  // assemble
  std::vector<uint32_t> buffer_of;  // index into plan.buffers, by id; kNoBuffer: none
  Plan plan;

  /// Whether only indexed Reduces read the value, as a condition or choice of terms: it is never
  /// stored.
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

// The stages, in order (pipeline.cpp), and their parts.
void simplify_tensors(SchedulerState& state);
/// `new_id`: the node of `graph` for each node of `source`.
void find_limits(SchedulerState& state, std::span<const Id> new_id);
/// The Buffers that the count of a Limit is computed from.
std::vector<Id> leaves_of_count(const Graph& graph, Id count);
void make_use_lists(SchedulerState& state);
/// Fills `indexed`, `computed` and the plan's operations.
void find_indexed(SchedulerState& state);
void store_required(SchedulerState& state);
void materialise(SchedulerState& state);
void fuse_row_reductions(SchedulerState& state);
void store_blocks(SchedulerState& state);
void limit_all(SchedulerState& state);
void find_bitwise_comparable(SchedulerState& state);
void choose_layouts(SchedulerState& state);
std::vector<std::vector<Id>> collective_buckets(const SchedulerState& state);
void share_kernels(SchedulerState& state);
void assemble(SchedulerState& state);
/// By step: its kernel; null for steps without one.
using StepKernels = std::span<std::shared_ptr<KernelAst>>;
void find_donations(SchedulerState& state, StepKernels kernels);
void join_programs(SchedulerState& state, StepKernels kernels);
void plan_memory(SchedulerState& state);

/// Takes the graph out of the state.
std::shared_ptr<const ScheduledGraph> keep_graph(SchedulerState& state);

/// Kernels with equal hashes are one program.
NodeHash hash_of(const KernelAst& ast);
inline uint64_t mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

/// A copy in `to` of node `id` of `from`, with sources in `to`.
inline Id copied_node(Graph& to, const Graph& from, Id id, std::span<const Id> sources) {
  const Node& n = from[id];
  const bool has_list = op_info(n.op).arg == ArgKind::List;
  return to.add(n.op, n.dtype, sources, has_list ? to.list(from.arg_list(id)) : n.arg);
}

/// A kernel rebuilt node by node: `make(graph, id, sources, new_ids)` makes the node for `id`.
template <class Make>
std::shared_ptr<KernelAst> rebuilt(const KernelAst& ast, Make make) {
  auto made = std::make_shared<KernelAst>();
  std::vector<Id> new_ids(ast.graph.size(), kNoId), sources;
  Reachable reachable;
  for (Id id : reachable.from(ast.graph, std::span(&ast.sink, 1))) {
    sources.clear();
    for (Id source : ast.graph.sources(id)) sources.push_back(new_ids[source]);
    new_ids[id] = make(made->graph, id, sources, new_ids);
  }
  made->sink = new_ids[ast.sink];
  made->param_count = ast.param_count;
  made->is_exact = ast.is_exact;
  return made;
}

/// A reshape, permutation, flip or shrink: reads each element of its source at most once.
bool is_plain_view(Op op);

}  // namespace plugrad::schedule
