// How the ranges that run in parallel are read off the ids of a launch.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "codegen/analysis/work_items.h"
#include "codegen/emit/ir_writer.h"
#include "codegen/kernel.h"

namespace plugrad::codegen {

struct LaunchIds {
  struct WorkItemAxis {
    int64_t size;
    uint32_t id;             // instruction
    std::vector<Id> ranges;  // whose values it is
  };
  std::vector<std::pair<Id, uint32_t>> groups;  // Global ranges and their values
  std::vector<WorkItemAxis> items;              // by axis of the group
  std::optional<uint32_t> inside;               // groups for which this is false have nothing to do
};

/// Writes the ids and sets the size of the launch. Groups that the device cannot count along its
/// axes as the kernel does are counted in one number, which is then taken apart.
LaunchIds write_ids(const Kernel& kernel, OpenRanges& open, IrWriter& writer, LaunchSize& size);

}  // namespace plugrad::codegen
