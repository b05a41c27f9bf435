// The short stages of emission; linearise.cpp has the long one.
#include "codegen/emit/linearise.h"
#include "codegen/emit/param_table.h"
#include "codegen/lowering/int64_emulation.h"

namespace plugrad::codegen {

void sink_loads(Kernel& kernel, Emission& emission) {
  emission.late_loads.emplace(kernel.graph, kernel.sink);
}

void write_parameters(Kernel& kernel, Emission& emission) {
  emission.value.assign(kernel.graph.size(), kNoInst);
  for (const auto& [param, number] : write_params(kernel, emission.writer))
    emission.value[param] = number;
}

void write_launch_ids(Kernel& kernel, Emission& emission) {
  emission.open.emplace(kernel.graph);
  LaunchIds ids = write_ids(kernel, *emission.open, emission.writer, emission.size);
  for (const auto& [range, number] : ids.groups) emission.value[range] = number;
  for (const LaunchIds::WorkItemAxis& item : ids.items)
    for (Id range : item.ranges) emission.value[range] = item.id;
  emission.items = std::move(ids.items);
  emission.inside = ids.inside;
}

void emulate_int64(Kernel& kernel, Emission& emission) {
  if (needs_int64_emulation(emission.writer, *kernel.caps))
    emission.writer = emulate_int64(emission.writer, *kernel.caps);
}

std::vector<std::byte> encode(const Kernel& kernel, const Emission& emission,
                              std::string_view name) {
  return emission.writer.finish(name, emission.size,
                                kernel.options.contract ? PGR_IR_FLAG_CONTRACT : 0);
}

}  // namespace plugrad::codegen
