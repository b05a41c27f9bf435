// Changes that have a file of their own; apply() checks the axis and records them.
#pragma once

#include <functional>

#include "codegen/analysis/access.h"
#include "codegen/kernel.h"

namespace plugrad::codegen {

/// An axis number larger than all others, so that it is unique.
uint32_t new_axis(const Kernel& kernel);

/// Gives the axes the numbers of their places in `order`.
void renumber(Kernel& kernel, const std::vector<Id>& order);

/// Whether the axis may be taken apart: it is no serial loop and no group id, has no bounds and is
/// in none.
bool may_split(const Kernel& kernel, size_t axis);

/// The expression with `index` for `range`.
Id at(Graph& g, Id root, Id range, Id index);

/// The parameter as one that the kernel reads too.
Id readable(Graph& g, Id param);

/// Whether the node is a Reduce or an array that closes the range.
bool closes(const Graph& g, Id node, Id range);

/// The Reduces below a store that close the range.
std::vector<Id> closing(const Graph& g, Id store, Id range);

/// Every node that closes the range becomes what `change` makes of it.
void change_closing(Kernel& kernel, Id range, const std::function<Id(Id)>& change);

/// Whether something runs along the range and along a vector axis too: it cannot have lanes of
/// both.
bool meets_lanes(const Kernel& kernel, Id range);

/// Whether an array is filled in each iteration of the range: its lanes would be of different
/// arrays.
bool fills_arrays(const Kernel& kernel, Id range);

/// Error(User) where the change's amount is no place among the axes, or work-items would each fill
/// an array of their own there.
void check_private_place(const Kernel& kernel, const ScheduleStep& change);

/// Error(User) where a split or a spread over work-items is not legal.
void check_split(const Kernel& kernel, const ScheduleStep& change);

/// upcast, unroll, vectorize and block: a range becomes two.
void split(Kernel& kernel, const ScheduleStep& change);

/// stage(slot, place): what is loaded of a parameter is copied into scratch inside the first
/// `place` axes.
void cache_read(Kernel& kernel, const ScheduleStep& change);

/// stage(slot, place) of a parameter that is written: what is stored to it waits in scratch.
void cache_write(Kernel& kernel, const ScheduleStep& change);
bool is_written(const Kernel& kernel, uint32_t slot);

/// As stage, where work-items run in step: one copy for the group, in local memory. Ranges of items
/// and those that are expanded are inside wherever they stand.
void cache_read_local(Kernel& kernel, const ScheduleStep& change);

/// ahead(slot, n): what stage copies of a parameter into local memory is copied n turns before it
/// is used.
void pipeline_copies(Kernel& kernel, const ScheduleStep& change);

/// Error(User) where the change cannot follow a copy in local memory.
void check_beside_local_copies(const Kernel& kernel, const ScheduleStep& change);

/// The largest expressions that depend on the change's parameter and run over the same inner ranges
/// as what is loaded of it. Error(User) where there are none.
std::vector<Id> find_operands(const Kernel& kernel, OpenRanges& open, const ScheduleStep& change,
                              RangeSet inside);

/// A number for an array that no other has.
uint32_t next_array(const Kernel& kernel);

/// Bytes of scratch that one work-item may have.
uint64_t most_scratch_bytes(const pgr_device_caps& caps);

/// Error(User) where the kernel's arrays need more than that, by the change of this text.
void check_scratch(const Kernel& kernel, const std::string& change);

/// keep(axis, place): what is computed along a reduce loop and again along others is computed once,
/// into scratch, inside the first `place` axes.
void compute_at(Kernel& kernel, const ScheduleStep& change);

/// Whether the value is made of what the parameter holds.
bool reads(const Graph& g, Id value, Id param);

/// Error(User) where what waits in the output would be written over before it was used up.
void check_compute_at(const Kernel& kernel, const ScheduleStep& change);

/// The largest of the values that the scheduler marked which is computed along the axis and again
/// along others, or in blocks.
struct Repeated {
  std::vector<Id> values;  // each with the range that it is computed along; empty for none
  bool in_blocks = false;  // one value alone: rows of an operand of a product
};
Repeated find_repeated(const Kernel& kernel, size_t axis);
/// Marks that were not used, or no longer.
void drop_marks(Kernel& kernel);
uint64_t bytes_to_store(const Kernel& kernel, const Repeated& repeated, size_t place);

/// accumulate(axis, place): a reduce loop runs outside of the output loops from `place` on.
void split_k(Kernel& kernel, const ScheduleStep& change);

}  // namespace plugrad::codegen
