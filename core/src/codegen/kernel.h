// A kernel on its way through codegen: its graph, its root and what has been decided so far.
#pragma once

#include <functional>
#include <vector>

#include "codegen/codegen.h"
#include "ir/kernel_ast.h"
#include "ir/range.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {

struct Kernel {
  Graph graph;
  Id sink = kNoId;
  const pgr_device_caps* caps = nullptr;
  Options options;
  std::vector<Id> axes;  // ranges in loop order: output axes, outermost first, then reduce axes
  KernelSchedule applied;
  uint32_t param_count = 0;      // of the AST; those that became unused keep their places
  std::vector<int64_t> scalars;  // of the AST, the most of each by number; unused ones as above

  /// Of a kernel that choices are made for.
  const cost::Machine& machine() const { return *options.machine; }
  RuleSet rules() const { return options.fast_math ? RuleSet::Fast : RuleSet::Strict; }
};

/// The kernel that the stage "apply schedule" is given.
Kernel kernel_before_schedule(const Graph& ast, Id sink, const pgr_device_caps& caps,
                              const Options& options);

/// Copies what is reachable from `root` of `from` into `to` and returns its id there.
Id copy_into(Graph& to, const Graph& from, Id root);

/// Leaves only what is reachable from the sink and lists the axes again.
void compact(Kernel& kernel);

/// The sink rebuilt after `old_to_new` replaced nodes; simplified and with axes listed again.
void replace(Kernel& kernel, std::span<const std::pair<Id, Id>> old_to_new);

/// `range` becomes `index`, an expression over `ranges`, which take its place where a Reduce closes
/// it.
struct RangeReplacement {
  Id range;
  Id index;
  std::vector<Id> ranges;
};
Id replace_ranges(Graph& g, Id root, std::span<const RangeReplacement> replacements);

inline bool is_output_axis(AxisKind kind) {
  return kind == AxisKind::Loop || kind == AxisKind::Global || kind == AxisKind::Local ||
         kind == AxisKind::Warp || kind == AxisKind::Block;
}
inline bool is_reduce_axis(AxisKind kind) {
  return kind == AxisKind::Reduce || kind == AxisKind::Group;
}

/// The value op (Add, Mul or Max) of a Reduce, how many of its sources are values (the others are
/// ranges).
struct ReduceParts {
  Op op;
  std::span<const Id> values, ranges;
};
ReduceParts reduce_parts(const Graph& g, Id reduce);
/// Whether the scheduler marked it (kIndexed in ir/kernel_ast.h).
bool is_indexed(const Graph& g, Id id);
Id make_reduce(Graph& g, Op op, std::span<const Id> values, std::span<const Id> ranges);
/// What a reduction over nothing gives: +0, 1, or the lowest value of the dtype.
Id reduce_identity(Graph& g, Op op, DType dtype);

/// Whether kernels for the device are spread over work-items that run in step, as on a GPU.
inline bool works_in_groups(const pgr_device_caps& caps) {
  return caps.has_local != 0 && caps.subgroup_size > 1;
}

inline AxisKind kind_of(const Kernel& kernel, size_t axis) {
  return range_kind(kernel.graph[kernel.axes[axis]]);
}
inline int64_t size_of_axis(const Kernel& kernel, size_t axis) {
  return range_size(kernel.graph, kernel.axes[axis]);
}

/// A kernel of one store of another.
Kernel part_of(const Kernel& kernel, Id store);

/// With what was applied to it, to try changes on.
Kernel copy_of(const Kernel& kernel);

/// Iterations of all axes.
double iterations_of(const Kernel& kernel);

/// A part of the size that leaves no rest where there is one that is not much smaller than `most`.
int64_t part_of_size(int64_t size, int64_t most);

/// The outermost output loop that may become group ids, of those that `allows`, where given, says
/// by their numbers; the number of axes for none.
size_t outermost_loop(const Kernel& kernel, const std::function<bool(uint32_t)>& allows = {});

}  // namespace plugrad::codegen
