// Terms of a sum that are counted where a condition holds, for all lanes at once:
//   reduce add (where %condition, %vector, 0)
// A branch around them takes no registers, as a choice for each of their factors would.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "codegen/analysis/lanes.h"
#include "ir/graph.h"

namespace plugrad::codegen {

struct TermBlock {
  Id condition;
  std::vector<Id> terms;  // each a Where
  bool has(Id id) const { return std::ranges::find(terms, id) != terms.end(); }
};

/// By their conditions. A term that has a value, or that needs a loop or an array first, is in
/// none.
std::vector<TermBlock> term_blocks(Graph& g, Lanes& lanes, std::span<const Id> reduces,
                                   const std::function<bool(Id)>& has_value);

/// The conditions, and what both the blocks' terms and `others` need and has no value.
std::vector<Id> needed_by_blocks_too(const Graph& g, std::span<const TermBlock> blocks,
                                     std::span<const Id> others,
                                     const std::function<bool(Id)>& has_value);

}  // namespace plugrad::codegen
