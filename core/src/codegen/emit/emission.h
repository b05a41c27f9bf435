// The stages that turn a kernel graph into kernel IR: parameters, launch ids, ordered instructions
// with explicit loops and accumulators.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/analysis/access.h"
#include "codegen/analysis/work_items.h"
#include "codegen/emit/ir_writer.h"
#include "codegen/kernel.h"
#include "ir/graph.h"

namespace plugrad::codegen {

class SunkLoads {
 public:
  SunkLoads(const Graph& g, Id sink);
  /// The Reduce that the load is sunk below; kNoId for other loads.
  Id sum(Id load) const { return sum_[load]; }

 private:
  std::vector<Id> sum_;  // by node; op(Reduce op ..., Load) with no other use of the Reduce
};

struct LaunchIds {
  struct WorkItemAxis {
    int64_t size;
    uint32_t id;             // instruction
    std::vector<Id> ranges;  // that take its values
  };
  std::vector<std::pair<Id, uint32_t>> groups;  // Global ranges and their values
  std::vector<WorkItemAxis> items;              // by axis of the workgroup
  std::optional<uint32_t> inside;               // false in groups without work
};

/// State that the stages share.
struct Emission {
  IrWriter writer;
  LaunchSize size;              // groups and work-items
  std::vector<uint32_t> value;  // by node: its instruction, kNoInst before it is written
  std::optional<OpenRanges> open;
  std::optional<SunkLoads> sunk_loads;
  std::vector<LaunchIds::WorkItemAxis> items;
  std::optional<uint32_t> inside;  // false in groups without work
};
inline constexpr uint32_t kNoInst = UINT32_MAX;

/// Load sinking: loads that are added to a finished sum wait until after its loops, so that they
/// take no registers inside and no iteration waits for memory.
void sink_loads(Kernel& kernel, Emission& emission);
/// Writes the parameter table and an instruction for each parameter.
void write_parameters(Kernel& kernel, Emission& emission);
/// Writes the launch ids and the ranges computed from them.
void write_launch_ids(Kernel& kernel, Emission& emission);
/// Writes all other instructions: loops, sums, group reductions, copies and stores.
void linearise(Kernel& kernel, Emission& emission);
/// Replaces 64-bit integers by pairs of words on devices without them.
void emulate_int64(Kernel& kernel, Emission& emission);

/// Returns the encoded kernel IR block.
std::vector<std::byte> encode(const Kernel& kernel, const Emission& emission,
                              std::string_view name);

}  // namespace plugrad::codegen
