// A kernel on its way through codegen: its graph, its root and what has been decided so far.
#pragma once

#include <vector>

#include "codegen/codegen.h"
#include "symbolic/symbolic.h"
#include "uop/kernel_ast.h"
#include "uop/range.h"

namespace plugrad::codegen {

struct Kernel {
  Graph graph;
  Id sink = kNoId;
  const pgr_device_caps* caps = nullptr;
  Options options;
  std::vector<Id> axes;  // ranges in loop order: output axes, outermost first, then reduce axes
  std::vector<Optimisation> applied;
  uint32_t param_count = 0;      // of the AST; those that became unused keep their places
  std::vector<int64_t> scalars;  // of the AST, the most of each by number; unused ones as above

  /// Of a kernel that choices are made for.
  const cost::Machine& machine() const { return *options.machine; }
  RuleSet rules() const { return options.fast_math ? RuleSet::Fast : RuleSet::Strict; }
};

/// The kernel that the stage "choose" is given.
Kernel kernel_before_choice(const Graph& ast, Id sink, const pgr_device_caps& caps,
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
/// Whether the scheduler marked it (kIndexed in uop/kernel_ast.h).
bool is_indexed(const Graph& g, Id id);
Id make_reduce(Graph& g, Op op, std::span<const Id> values, std::span<const Id> ranges);
/// What a reduction over nothing gives: +0, 1, or the lowest value of the dtype.
Id reduce_identity(Graph& g, Op op, DType dtype);

}  // namespace plugrad::codegen
