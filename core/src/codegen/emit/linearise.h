// The last steps: a kernel graph becomes instructions in order, with explicit loops and
// accumulators. Each function is a stage of the pipeline.
#pragma once

#include <optional>
#include <string_view>

#include "codegen/analysis/access.h"
#include "codegen/analysis/late_loads.h"
#include "codegen/emit/ir_writer.h"
#include "codegen/emit/launch_ids.h"
#include "codegen/kernel.h"

namespace plugrad::codegen {

/// What these stages share.
struct Emission {
  IrWriter writer;
  LaunchSize size;              // the groups and work-items that the axes ask for
  std::vector<uint32_t> value;  // by node: its instruction, kNoInst before it is made
  std::optional<OpenRanges> open;
  std::optional<LateLoads> late_loads;
  std::vector<LaunchIds::WorkItemAxis> items;
  std::optional<uint32_t> inside;  // groups for which this is false have nothing to do
};
inline constexpr uint32_t kNoInst = UINT32_MAX;

/// Loads that wait until the sums before them are made.
void sink_loads(Kernel& kernel, Emission& emission);
/// The table of parameters and their instructions.
void write_parameters(Kernel& kernel, Emission& emission);
/// The ids of the launch, and what ranges are of them.
void write_launch_ids(Kernel& kernel, Emission& emission);
/// All other instructions: loops, sums, the group's reductions, copies and stores.
void linearise(Kernel& kernel, Emission& emission);
/// 64-bit integers are pairs of words where the device does not compute with them.
void emulate_int64(Kernel& kernel, Emission& emission);

/// The kernel IR block.
std::vector<std::byte> encode(const Kernel& kernel, const Emission& emission,
                              std::string_view name);

}  // namespace plugrad::codegen
