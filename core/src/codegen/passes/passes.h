// The passes of codegen, in the order of pipeline.cpp, and their rule tables. A pass keeps the
// meaning of the kernel.
#pragma once

#include "codegen/kernel.h"
#include "rewrite/rewrite.h"
#include "symbolic/bounds.h"

namespace plugrad::codegen {

/// Closed forms and single loads replace reduce loops.
void eliminate_reductions(Kernel& kernel);
/// Adjacent ranges merge; divided ranges split.
void simplify_ranges(Kernel& kernel);
/// Indexed reductions store each term at its index.
void index_stores(Kernel& kernel);
/// Padding becomes stores of its own; halves of a loop that share work run in one loop.
void partition_outputs(Kernel& kernel);
/// Applies the given schedule or the one that the heuristics and the cost model find.
void apply_schedule(Kernel& kernel);
/// Loops end at counts loaded from memory.
void set_dynamic_bounds(Kernel& kernel);
/// Reduce loops run only over terms that are not 0.
void tighten_bounds(Kernel& kernel);
/// Upcast, unroll and vector ranges become copies and lanes.
void expand(Kernel& kernel);
/// Conditions are constant in the interior of a loop.
void partition_loops(Kernel& kernel);
/// Every element is stored by one work-item.
void predicate_work_items(Kernel& kernel);
/// Loads and stores have scalar indices and a width.
void vectorise(Kernel& kernel);
/// Index arithmetic is plain i32 or i64, without Index, FloorDiv and FloorMod.
void lower_indices(Kernel& kernel);
/// Only ops that the device claims remain.
void decompose(Kernel& kernel);

/// Context of index_lowering_rules().
struct IndexLowering {
  Bounds bounds;
  DType machine = DType::I32;
};
/// Floor division of nodes that already have the machine's dtype.
std::span<const Rule> index_lowering_rules();
/// Reductions and arrays over expanded ranges.
std::span<const Rule> expansion_rules();
/// Gates on loads.
std::span<const Rule> predication_rules();
/// Gates on copies into local memory.
std::span<const Rule> copy_predication_rules();
/// Reductions with tightened bounds.
std::span<const Rule> loop_bound_rules();
/// Reductions that end at a count from memory.
std::span<const Rule> dynamic_bound_rules();
/// Reductions over work-items.
std::span<const Rule> closing_rules();
/// compute_at marks that no step used.
std::span<const Rule> keep_mark_rules();
/// Local arrays of several iterations.
std::span<const Rule> pipelining_rules();

}  // namespace plugrad::codegen
