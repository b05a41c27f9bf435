// The access patterns of a kernel: which of its loops index each axis of the stored values it
// reads.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "schedule/scheduler_state.h"

namespace plugrad::schedule {

/// Loops as bits: first the axes of the kernel's output, then those of its Reduces.
using LoopSet = uint64_t;

struct AxisIndex {
  LoopSet loops = 0;
  bool plain = false;  // the index is one loop, over the whole axis
  LoopSet near = 0;    // the loop among them with stride 1 along the axis
};

/// One stored value that is read.
struct Access {
  Id node;
  // the highest view or cast of it with all of its elements and no more: a copy would store it
  Id view;
  std::vector<AxisIndex> axes;       // of node
  std::vector<AxisIndex> view_axes;  // of view
  LoopSet around;                    // the loops around the read
  int64_t elements;                  // of node
  // A cast of the node from a half type to a larger float, with all of its elements and no more;
  // kNoId for none.
  Id cast_copy = kNoId;
  std::vector<AxisIndex> cast_copy_axes = {};
  bool is_constant = false;  // a copy of the view is made once for many runs
};

/// A loop: an axis of the kernel's output, or an axis of a Reduce.
struct Loop {
  Id owner;  // the kernel's output, or the Reduce
  uint32_t axis;
  int64_t size;
  bool reduces;
};

struct LoopNest {
  Id output;
  std::vector<Loop> loops;
  std::vector<Access> accesses;
  std::vector<LoopSet> bodies;  // of the output and of each Reduce: the loops around one evaluation
  // By vectorised loop, and last for scalar code: the iterations of each loop in a register tile
  // (layout_cost.h). A vector counts as one.
  std::vector<std::vector<double>> tiles = {};
};

/// The loops of the kernel that computes the stored value `output` alone. No accesses if it has
/// more loops than a LoopSet holds.
LoopNest loop_nest(SchedulerState& state, Id output);

/// The axes of `access.cast_copy`, outermost first, in the memory order of the value itself;
/// `orders` holds the values that are not row-major.
Dims cast_copy_order(const Access& access, const std::map<Id, Dims>& orders);

}  // namespace plugrad::schedule
