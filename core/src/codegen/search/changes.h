// Changes that have a file of their own; apply() checks the axis and records them.
#pragma once

#include <functional>

#include "codegen/kernel.h"

namespace plugrad::codegen {

/// An axis number larger than all others, so that it is unique.
uint32_t new_axis(const Kernel& kernel);

/// Gives the axes the numbers of their places in `order`.
void renumber(Kernel& kernel, const std::vector<Id>& order);

/// Whether the axis may be taken apart: it has no bounds and is in none.
bool may_split(const Kernel& kernel, size_t axis);

/// The expression with `index` for `range`.
Id at(Graph& g, Id root, Id range, Id index);

/// Whether the node is a Reduce or an array that closes the range.
bool closes(const Graph& g, Id node, Id range);

/// Every node that closes the range becomes what `change` makes of it.
void change_closing(Kernel& kernel, Id range, const std::function<Id(Id)>& change);

/// Whether something runs along the range and along a vector axis too: it cannot have lanes of both.
bool meets_lanes(const Kernel& kernel, Id range);

/// Error(User) where a split or a spread over work-items is not legal.
void check_split(const Kernel& kernel, const Optimisation& change);

/// upcast, unroll, vectorize and block: a range becomes two.
void split(Kernel& kernel, const Optimisation& change);

/// stage(slot, place): what is loaded of a parameter is copied into scratch inside the first
/// `place` axes.
void stage(Kernel& kernel, const Optimisation& change);

/// Bytes of scratch that one work-item may have.
uint64_t most_scratch_bytes(const pgr_device_caps& caps);

/// accumulate(axis, place): a reduce loop runs outside of the output loops from `place` on.
void accumulate(Kernel& kernel, const Optimisation& change);

}  // namespace plugrad::codegen
