// The stages of codegen as a list, and the one loop that runs it.
#include <algorithm>
#include <array>

#include "codegen/linearise.h"
#include "codegen/passes/passes.h"
#include "codegen/report.h"

namespace plugrad::codegen {
namespace {

struct Stage {
  const char* name;
  void (*run)(Kernel&);
  const char* meaning;
};

constexpr std::array<Stage, 7> kCodegen = {{
    {"collapse loops", collapse_loops, "reductions that are closed forms or single loads lose their loop"},
    {"simplify ranges", simplify_ranges, "adjacent ranges merge, divided ranges split"},
    {"choose", choose, "ranges become lanes, register tiles, group ids"},
    {"expand", expand, "upcast, unroll and vector ranges are copies and lanes"},
    {"vectorise", vectorise, "loads and stores have scalar indices and a width"},
    {"lower indices", lower_indices, "index arithmetic is i32 or i64"},
    {"decompose", decompose, "only ops that the device claims remain"},
}};

}  // namespace

KernelCode generate(const Graph& ast, Id sink, const pgr_device_caps& caps, const Options& options) {
  Kernel kernel;
  kernel.caps = &caps;
  kernel.options = options;
  kernel.sink = copy_into(kernel.graph, ast, sink);
  for (Id id = 0; id < kernel.graph.size(); ++id)
    if (kernel.graph[id].op == Op::Param)
      kernel.param_count = std::max(kernel.param_count, param_info(kernel.graph, id).slot + 1);
  compact(kernel);
  KernelCode code;
  code.estimates = estimate(kernel);
  for (const Stage& stage : kCodegen) {
    stage.run(kernel);
    if (stage.run == choose) {
      code.colored_name = kernel_name(kernel, true);
      code.name = kernel_name(kernel, false);
    }
  }
  LaunchSize size;
  code.ir = linearise(kernel, code.name, size);
  std::copy_n(size.group_count, 3, code.group_count);
  std::copy_n(size.local_size, 3, code.local_size);
  code.optimisations = kernel.applied;
  return code;
}

}  // namespace plugrad::codegen
