// The work-items of a group: which Local and Group ranges each axis of a group stands for.
#pragma once

#include <vector>

#include "codegen/analysis/access.h"
#include "codegen/kernel.h"

namespace plugrad::codegen {

/// One axis of a group. Ranges of one size share it where no value depends on two of them.
struct WorkItemAxis {
  int64_t size;
  std::vector<Id> ranges;
};

/// The axes of a group. Axis 0, along which neighbours run in step, is that of a tensor core's
/// team, otherwise that of the change made last.
std::vector<WorkItemAxis> work_item_axes(const Kernel& kernel, OpenRanges& open);

inline bool is_work_item_axis(AxisKind kind) {
  return kind == AxisKind::Local || kind == AxisKind::Group || kind == AxisKind::Warp;
}

/// Whether the Reduce combines what the work-items of a group have found.
bool is_group_reduce(const Graph& g, Id reduce);

/// Whether the store's gate can be a block around all that the store needs: only ids decide it, and
/// where that meets barriers or tensor cores it is the same for every item of a group.
bool gate_encloses(const Graph& g, OpenRanges& open, Id store);

}  // namespace plugrad::codegen
