// A kernel in codegen (its graph, its root and the schedule steps applied so far) and queries on the
// device that it is for.
#pragma once

#include <functional>
#include <vector>

#include "codegen/codegen.h"
#include "ir/kernel_ast.h"
#include "ir/op.h"
#include "ir/range.h"
#include "plugrad/dtype.h"
#include "plugrad/plugin_api/device.h"
#include "plugrad/plugin_api/kernel_ir.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {

struct Kernel {
  Graph graph;
  Id sink = kNoId;
  const pgr_device_caps* caps = nullptr;
  Options options;
  std::vector<Id> axes;  // ranges in loop order: output axes, outermost first, then reduce axes
  KernelSchedule applied;
  double seconds = 0;        // of a launch, as predicted where the heuristic chose; else 0
  bool is_frugal = false;    // the schedule
  uint32_t param_count = 0;  // of the AST; parameters that became unused keep their indices
  struct ScalarInfo {
    DType dtype = DType::Index;
    int64_t most = 0;  // of an Index
  };
  std::vector<ScalarInfo> scalars;  // of the AST, by number

  /// Requires options.machine, which generate() sets.
  const cost::Machine& machine() const { return *options.machine; }
  RuleSet rules() const { return options.fast_math ? RuleSet::Fast : RuleSet::Strict; }
};

/// The kernel before the stage "apply schedule".
Kernel kernel_before_schedule(const Graph& ast, Id sink, const pgr_device_caps& caps,
                              const Options& options);

/// Copies the nodes reachable from `root` into `to`; returns the new id of `root`.
Id copy_into(Graph& to, const Graph& from, Id root);

/// Drops nodes that the sink does not reach and rebuilds `axes`.
void compact(Kernel& kernel);

/// Rebuilds the sink with `old_to_new` substituted, simplifies it and rebuilds `axes`.
void replace(Kernel& kernel, std::span<const std::pair<Id, Id>> old_to_new);

/// Substitutes `index`, an expression over `ranges`, for `range`. A Reduce that closes `range` then
/// closes `ranges`.
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
inline bool is_expanded(AxisKind kind) {
  return kind == AxisKind::Upcast || kind == AxisKind::Unroll || kind == AxisKind::Vector;
}
inline bool is_reduce_axis(AxisKind kind) {
  return kind == AxisKind::Reduce || kind == AxisKind::Group;
}

/// The op of a Reduce (Add, Mul or Max), its values and the ranges that it closes.
struct ReduceParts {
  Op op;
  std::span<const Id> values, ranges;
};
ReduceParts reduce_parts(const Graph& g, Id reduce);
/// Whether the scheduler marked the Reduce with kIndexed (ir/kernel_ast.h).
bool is_indexed(const Graph& g, Id id);
Id make_reduce(Graph& g, Op op, std::span<const Id> values, std::span<const Id> ranges);
/// The identity of the op: +0, 1, or the lowest value of the dtype.
Id reduce_identity(Graph& g, Op op, DType dtype);

/// Whether the device runs work-items in lockstep subgroups, as a GPU.
inline bool works_in_groups(const pgr_device_caps& caps) {
  return caps.has_local != 0 && caps.subgroup_size > 1;
}

/// A copy of `ids` that outlives changes of the graph.
inline std::vector<Id> to_vector(std::span<const Id> ids) {
  return {ids.begin(), ids.end()};
}

/// An axis number larger than all others.
uint32_t new_axis(const Kernel& kernel);
/// The index in `axes` of the axis with this number; axes.size() if there is none.
size_t axis_with_number(const Kernel& kernel, uint32_t number);

inline AxisKind kind_of(const Kernel& kernel, size_t axis) {
  return range_kind(kernel.graph[kernel.axes[axis]]);
}
inline int64_t size_of_axis(const Kernel& kernel, size_t axis) {
  return range_size(kernel.graph, kernel.axes[axis]);
}

/// A kernel with one of the stores of another.
Kernel part_of(const Kernel& kernel, Id store);

/// A copy, with the applied steps, for trying further steps.
Kernel copy_of(const Kernel& kernel);

/// Iterations of all axes together.
double iterations_of(const Kernel& kernel);

/// The largest divisor of `size` in (most / 2, most]; `most` if there is none.
int64_t part_of_size(int64_t size, int64_t most);

/// The outermost output loop that may become group ids and that `allows` (by axis number) if given;
/// the number of axes if there is none.
size_t outermost_loop(const Kernel& kernel, const std::function<bool(uint32_t)>& allows = {});

/// "r" with a reduction, "E" without, then the size of each axis; in colour each size shows its
/// axis kind.
std::string kernel_name(const Kernel& kernel, bool in_color);
/// Floating-point operations (a multiply-add counts as two) and the bytes moved at least, before
/// the schedule is applied.
Estimates estimate(Kernel& kernel);
/// Counts a kernel after the stage "vectorise".
ExecutedWork executed_work(const Kernel& kernel);

inline bool claims(const pgr_device_caps& caps, Op op, DType dtype) {
  const auto number = static_cast<size_t>(op), type = static_cast<size_t>(dtype);
  return number < 64 && type < PGR_DTYPE_COUNT && (caps.op_dtypes[number] >> type & 1) != 0;
}

/// Whether the dtype may be stored in memory and moved by kernels.
inline bool claims_storage(const pgr_device_caps& caps, DType dtype) {
  return claims(caps, Op::Load, dtype) && claims(caps, Op::Store, dtype);
}

inline bool is_64_bit_integer(DType dtype) {
  return dtype == DType::I64 || dtype == DType::U64;
}

}  // namespace plugrad::codegen
