// The rule tables of passes, each with the context that its rows ask.
#pragma once

#include "rewrite/rewrite.h"
#include "symbolic/bounds.h"

namespace plugrad::codegen {

struct IndexLowering {
  Bounds bounds;
  DType machine = DType::I32;
};
/// Floor division of nodes that have the machine's dtype already.
std::span<const Rule> index_lowering_rules();

std::span<const Rule> expansion_rules();    ///< reductions and arrays over ranges that are copied
std::span<const Rule> predication_rules();  ///< gates on loads
std::span<const Rule> copy_predication_rules();  ///< gates on what a group copies
std::span<const Rule> loop_bound_rules();        ///< reductions whose loop ends early
std::span<const Rule> dynamic_bound_rules();  ///< reductions that end where sizes that are data say
std::span<const Rule> closing_rules();        ///< reductions over work-items
std::span<const Rule> keep_mark_rules();      ///< marks that no transformation took
std::span<const Rule> pipelining_rules();     ///< arrays of several turns of a loop

}  // namespace plugrad::codegen
