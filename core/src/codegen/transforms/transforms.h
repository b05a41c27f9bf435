// The schedule steps: legal changes to a kernel's ranges. apply() checks the axis, dispatches and
// records the step in kernel.applied; each step has a file of its own.
#pragma once

#include <functional>
#include <optional>

#include "codegen/analysis/access.h"
#include "codegen/analysis/tensor_core.h"
#include "codegen/kernel.h"
#include "plugrad/error.h"

namespace plugrad::codegen {

/// Numbers the axes by their position in `order`.
void renumber(Kernel& kernel, const std::vector<Id>& order);

/// Whether the axis may be split: it is no serial loop and no group id, has no bounds and occurs in
/// none.
bool may_split(const Kernel& kernel, size_t axis);

/// `root` with `index` substituted for `range`.
Id at(Graph& g, Id root, Id range, Id index);

/// The parameter, marked as read by the kernel.
Id readable(Graph& g, Id param);

/// Whether the node is a Reduce or an array that closes the range.
bool closes(const Graph& g, Id node, Id range);

/// The Reduces of a store that close the range.
std::vector<Id> closing(const Graph& g, Id store, Id range);

/// Replaces every node that closes the range by the result of `change`.
void change_closing(Kernel& kernel, Id range, const std::function<Id(Id)>& change);

/// Whether some value runs along both the range and a vector axis: it cannot have lanes of both.
bool meets_lanes(const Kernel& kernel, Id range);

/// Whether an array is filled in each iteration of the range; lanes along it would need an array
/// each.
bool fills_arrays(const Kernel& kernel, Id range);

/// Errors: User if the step's amount is no position among the axes, or if each work-item would fill
/// an array of its own there.
void check_private_place(const Kernel& kernel, const ScheduleStep& change);

/// Errors: User if a split or a spread over work-items is not legal.
void check_split(const Kernel& kernel, const ScheduleStep& change);

/// upcast, unroll, vectorize and block: split a range in two.
void split(Kernel& kernel, const ScheduleStep& change);

/// stage(slot, place): copies the elements loaded from a parameter into a local buffer inside the
/// first `place` axes.
void cache_read(Kernel& kernel, const ScheduleStep& change);

/// stage(slot, place) of a stored parameter: collects the stored values in a local buffer first.
void cache_write(Kernel& kernel, const ScheduleStep& change);
bool is_written(const Kernel& kernel, uint32_t slot);

/// stage on devices with lockstep work-items: one copy for the group, in local memory. Ranges of
/// work-items and expanded ranges are inside at any place.
void cache_read_local(Kernel& kernel, const ScheduleStep& change);

/// ahead(slot, n): makes the copies of a parameter into local memory n iterations before their use.
void pipeline_copies(Kernel& kernel, const ScheduleStep& change);

/// Errors: User if the step cannot follow a copy into local memory.
void check_beside_local_copies(const Kernel& kernel, const ScheduleStep& change);

/// The largest expressions that depend on the step's parameter and run over the same inner ranges
/// as its loads. Errors: User if there are none.
std::vector<Id> find_operands(const Kernel& kernel, OpenRanges& open, const ScheduleStep& change,
                              RangeSet inside);

/// The lowest unused number of an array.
uint32_t next_array(const Kernel& kernel);

/// Errors: User, naming the step, if the kernel's arrays exceed max_local_buffer_bytes().
void check_local_buffers(const Kernel& kernel, const std::string& change);

/// keep(axis, place): computes a value that repeats along other loops once, into a local buffer,
/// inside the first `place` axes.
void compute_at(Kernel& kernel, const ScheduleStep& change);

/// Whether the value depends on a load from the parameter.
bool reads(const Graph& g, Id value, Id param);

/// Errors: User if a value kept in the output would be overwritten before its last use.
void check_compute_at(const Kernel& kernel, const ScheduleStep& change);

/// The largest value with a Keep mark that repeats along the axis, or whose rows are taken in
/// blocks.
struct Repeated {
  // Each occurrence, with the range that it is computed along; empty for none.
  std::vector<Id> values;
  bool in_blocks = false;  // a single occurrence: rows of a product's operand
};
Repeated find_repeated(const Kernel& kernel, size_t axis);
/// Removes the marks that no step used.
void drop_marks(Kernel& kernel);
uint64_t bytes_of_buffer(const Kernel& kernel, const Repeated& repeated, size_t place);

/// accumulate(axis, place): moves a reduce loop outside the output loops from `place` on.
void split_k(Kernel& kernel, const ScheduleStep& change);

/// Errors: User, naming the step and the axis, if the step is not legal.
void apply(Kernel& kernel, const ScheduleStep& change);

/// Applies a Local or Group step unless the group would exceed the device's limit.
void apply_if_it_fits(Kernel& kernel, const ScheduleStep& change);

/// Turns the axis into group ids. If the device launches fewer groups, only its outer part becomes
/// group ids. Returns false and leaves the kernel as it was if no part fits.
bool apply_thread(Kernel& kernel, size_t axis);

/// Returns the result of `change`; nothing, and the kernel as it was, if one of its steps is not
/// legal.
template <class Change>
std::optional<size_t> attempt(Kernel& kernel, const Change& change) {
  Kernel trial = copy_of(kernel);
  try {
    const size_t result = change(trial);
    kernel = std::move(trial);
    return result;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::User) throw;
    return std::nullopt;
  }
}

/// A matrix product in a store and the output axes of its rows and columns.
struct MatrixProduct {
  Id reduce, rows, columns;
  Id a, b;  // the factors, in the tensor core's input dtype
};

/// The product that the store sums over `k`; nothing, and the reason in `why`, if the tensor core
/// cannot compute it under the kernel's options.
std::optional<MatrixProduct> find_product(const Kernel& kernel, Id store, Id k,
                                          const TensorCore& core, std::string* why = nullptr);

/// Computes the reductions over the axis in tiles on tensor core `amount`.
void use_tensor_core(Kernel& kernel, const ScheduleStep& change);

/// Errors: User if the step cannot follow a tensor_core.
void check_beside_tensor_core(const Kernel& kernel, const ScheduleStep& change);

/// Bytes of the local array with all its tiles, before place_pipelined_tiles().
uint64_t bytes_of_copy(const Graph& g, Id filled);

/// Software pipelining: copies into local memory start some iterations of a loop before their use,
/// asynchronously if the device can. The array holds that many more tiles.
///   before   load (filled s[%e] = %a[%b*16 + %e], over %e)[%k]                 inside %b
///   after    load (filled s[(%b % 2)*16 + %e] = %a[%b*16 + %e], over %e)[(%b % 2)*16 + %k]
/// Both are the same value. For one iteration ahead linearise writes
///   copy the tile of iteration 0; commit
///   loop %b: wait for all copies; barrier; copy the tile of %b + 1 if any; commit; use tile %b
/// The barrier serves twice: all copies are visible after it, and no work-item still reads the tile
/// that is overwritten next.
void place_pipelined_tiles(Kernel& kernel);

/// The loop whose iterations the tiles are copied ahead of; kNoId for other arrays.
Id pipelined_loop(const Graph& g, OpenRanges& open, Id filled);

/// The load that the store copies asynchronously: `lanes` consecutive elements, zeros behind a
/// closed gate. kNoId if work-items must move the elements themselves.
Id asynchronous_load(const Graph& g, const pgr_device_caps& caps, Id store, uint32_t lanes);

}  // namespace plugrad::codegen
