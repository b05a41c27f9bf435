// Predication: gates on stores and loads, conditions on the terms of a sum, and the blocks that
// share a condition. A closed gate writes nothing and reads nothing.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "codegen/analysis/access.h"
#include "codegen/kernel.h"
#include "ir/graph.h"
#include "symbolic/linear.h"

namespace plugrad::codegen {

/// The store with `gate` added to its own gate.
Id with_gate(Graph& g, Id store, Id gate);

/// The conditions that a gate is the conjunction of.
std::vector<Id> conjuncts(const Graph& g, Id gate);

/// Whether the condition depends on a value loaded inside loops, e.g. an index. Loads that feed
/// such a condition must not be gated by it.
bool is_on_elements(const Graph& g, OpenRanges& open, Id condition);

/// Whether the gate protects elements that must not be written, rather than elements that are never
/// read.
bool has_strict_gate(const Graph& g, Id store);

/// Adds the gate to every load below `root` that depends on all ranges of the gate, except loads
/// that copy into local memory.
Id gate_loads(Graph& g, OpenRanges& open, Id root, Id gate);

/// factor * range + rest < 0: a clause of a sum's condition; terms outside it are 0.
struct LoopBound {
  Id clause, range;
  int64_t factor;
  Linear rest;
};

/// The bounds in a sum of where(condition, term, 0). A clause over two ranges of the sum is listed
/// for each.
std::vector<LoopBound> loop_bounds(const Graph& g, OpenRanges& open, Id reduce);

struct TermBlock {
  Id condition;
  std::vector<Id> terms;  // Where nodes
  bool has(Id id) const { return std::ranges::find(terms, id) != terms.end(); }
};

/// Terms of a sum that are a vector where a scalar condition holds, by condition:
///   reduce add (where %condition, %vector, 0)
/// One branch around such terms takes no registers; a select per factor would. Terms that have a
/// value already, or that need a loop or an array first, are not included.
std::vector<TermBlock> term_blocks(Graph& g, Lanes& lanes, std::span<const Id> reduces,
                                   const std::function<bool(Id)>& has_value);

/// The conditions, and the nodes without a value that both the blocks and `others` need.
std::vector<Id> needed_by_blocks_too(const Graph& g, std::span<const TermBlock> blocks,
                                     std::span<const Id> others,
                                     const std::function<bool(Id)>& has_value);

struct StoreGroup {
  Id gate;  // encloses the group; kNoId for none
  std::vector<Id> stores;
};

/// Stores grouped by gate, in the order of each group's first store in the sink. A store that reads
/// the results of another group comes after that group.
std::vector<StoreGroup> store_groups(const Graph& g, OpenRanges& open, Id sink);

}  // namespace plugrad::codegen
