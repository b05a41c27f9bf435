// The work-items of a workgroup: the Local and Group ranges of each of its axes.
#pragma once

#include <vector>

#include "codegen/analysis/access.h"
#include "codegen/kernel.h"

namespace plugrad::codegen {

/// One axis of a workgroup. Ranges of equal size share an axis if no value depends on two of them.
struct WorkItemAxis {
  int64_t size;
  std::vector<Id> ranges;
};

/// The axes of the workgroup. Adjacent work-items of axis 0 are in one subgroup; it is the axis of
/// a tensor core's team if there is one, otherwise that of the last step.
std::vector<WorkItemAxis> work_item_axes(const Kernel& kernel, OpenRanges& open);

inline bool is_work_item_axis(AxisKind kind) {
  return kind == AxisKind::Local || kind == AxisKind::Group || kind == AxisKind::Warp;
}

/// Whether the Reduce combines partial results of the group's work-items.
bool is_group_reduce(const Graph& g, Id reduce);

/// Whether the store's gate can be an If around everything that the store needs. The gate may
/// depend on ids only; if barriers or tensor cores stand inside, it must be uniform in the group.
bool gate_encloses(const Graph& g, OpenRanges& open, Id store);

}  // namespace plugrad::codegen
