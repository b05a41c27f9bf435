// How a kernel reads stored values: which of its loops run along each axis of each.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "schedule/scheduler_state.h"

namespace plugrad::schedule {

/// Loops as bits: the first ones are the axes of the kernel's output, then those of its Reduces.
using LoopSet = uint64_t;

struct AxisIndex {
  LoopSet loops = 0;
  bool plain = false;  // the index is the one loop, over the whole axis
  LoopSet near = 0;    // of the loops, the one whose next pass takes the next element
};

/// One value read from memory.
struct Access {
  Id node;
  Id view;  // the last node above it that has all of its elements and no more, maybe cast: what a
            // copy would store
  std::vector<AxisIndex> axes;       // of node
  std::vector<AxisIndex> view_axes;  // of view
  LoopSet around;                    // the loops that run around it
  int64_t elements;                  // of node
  // The node, of a half type, cast to a wider float, with all of its elements and no more; or none.
  Id cast_copy = kNoId;
  std::vector<AxisIndex> cast_copy_axes = {};
  bool is_constant = false;  // a copy of the view would be made once for many runs
};

/// A loop: an axis of the kernel's output, or one that a Reduce closes.
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
  // By loop with vectors along it, and at last without vectors: what a register tile holds of each
  // loop (layout_cost.h). A vector counts as one.
  std::vector<std::vector<double>> tiles = {};
};

/// The loops of the kernel that computes the stored value `output` alone. No reads where it has
/// more loops than a LoopSet holds.
LoopNest loop_nest(SchedulerState& state, Id output);

/// The axes of `access.cast_copy`, outermost first, as the value itself has them in memory; `orders`
/// are those of the values that are not row-major.
Dims cast_copy_order(const Access& access, const std::map<Id, Dims>& orders);

}  // namespace plugrad::schedule
