// Conditions on stores and loads: where a gate is closed, nothing is written and nothing is read.
#pragma once

#include "codegen/analysis/access.h"
#include "codegen/kernel.h"

namespace plugrad::codegen {

/// The store, for those ranges only for which the gate holds too.
Id with_gate(Graph& g, Id store, Id gate);

/// The conditions of which all must hold for a gate to be open.
std::vector<Id> conjuncts(const Graph& g, Id gate);

/// Whether the condition is on what is read along loops, such as an index: what it is read of may
/// be read whatever the condition says.
bool is_on_elements(const Graph& g, OpenRanges& open, Id condition);

/// Whether there are places that the store must not write, other than places that nobody looks at.
bool has_strict_gate(const Graph& g, Id store);

/// `root` with the gate at every load below it that depends on all ranges of the gate, but for
/// loads of what a group copies into local memory.
Id gate_loads(Graph& g, OpenRanges& open, Id root, Id gate);

}  // namespace plugrad::codegen
