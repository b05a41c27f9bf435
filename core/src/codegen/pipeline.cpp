// The stages of codegen as a list, and the one loop that runs it.
#include <algorithm>
#include <array>

#include "codegen/emit/linearise.h"
#include "codegen/passes/passes.h"
#include "codegen/report.h"
#include "ir/text/printer.h"
#include "ir/verifier.h"
#include "rewrite/stage.h"

namespace plugrad::codegen {
namespace {

struct Stage {
  const char* name;
  void (*run)(Kernel&);
  Spec holds;  // after it
  const char* meaning;
};

constexpr std::array<Stage, 13> kCodegen = {{
    {"collapse loops", collapse_loops, Spec::Kernel,
     "reductions that are closed forms or single loads lose their loop"},
    {"index stores", index_stores, Spec::Kernel,
     "terms of marked reductions are stored by their index"},
    {"simplify ranges", simplify_ranges, Spec::Kernel,
     "adjacent ranges merge, divided ranges split"},
    {"split borders", split_borders, Spec::Kernel,
     "padding is stores of its own instead of conditions"},
    {"choose", choose, Spec::Kernel, "ranges become lanes, register tiles, group ids"},
    {"count loops", count_loops, Spec::Kernel, "loops end where sizes that are data say"},
    {"bound loops", bound_loops, Spec::Kernel, "loops run where their terms are not 0"},
    {"expand", expand, Spec::Kernel, "upcast, unroll and vector ranges are copies and lanes"},
    {"partition loops", partition_loops, Spec::Kernel,
     "inside of borders, conditions are constant"},
    {"gate items", gate_items, Spec::Kernel, "every element is stored by one work-item"},
    {"vectorise", vectorise, Spec::Kernel, "loads and stores have scalar indices and a width"},
    {"lower indices", lower_indices, Spec::Kernel, "index arithmetic is i32 or i64"},
    {"decompose", decompose, Spec::Kernel, "only ops that the device claims remain"},
}};

void note_scalar(Kernel& kernel, Id scalar) {
  const size_t number = scalar_number(kernel.graph, scalar);
  if (kernel.scalars.size() <= number) kernel.scalars.resize(number + 1);
  kernel.scalars[number] = kernel.graph.arg_list(scalar)[1];
}

Kernel kernel_of(const Graph& ast, Id sink, const pgr_device_caps& caps, const Options& options) {
  Kernel kernel;
  kernel.caps = &caps;
  kernel.options = options;
  if (!kernel.options.machine)
    kernel.options.machine = std::make_shared<cost::Machine>(cost::table_machine({}, caps));
  kernel.sink = copy_into(kernel.graph, ast, sink);
  for (Id id = 0; id < kernel.graph.size(); ++id)
    if (kernel.graph[id].op == Op::Param)
      kernel.param_count = std::max(kernel.param_count, param_info(kernel.graph, id).slot + 1);
    else if (kernel.graph[id].op == Op::Scalar)
      note_scalar(kernel, id);
  compact(kernel);
  return kernel;
}

}  // namespace

KernelCode describe(const Graph& ast, Id sink) {
  Kernel kernel;
  kernel.sink = copy_into(kernel.graph, ast, sink);
  compact(kernel);
  KernelCode code;
  code.name = kernel_name(kernel, false);
  code.colored_name = kernel_name(kernel, true);
  code.estimates = estimate(kernel);
  return code;
}

Kernel kernel_before_choice(const Graph& ast, Id sink, const pgr_device_caps& caps,
                            const Options& options) {
  Kernel kernel = kernel_of(ast, sink, caps, options);
  for (const Stage& stage : kCodegen) {
    if (stage.run == choose) break;
    stage.run(kernel);
  }
  return kernel;
}

KernelCode generate(const Graph& ast, Id sink, const pgr_device_caps& caps,
                    const Options& options) {
  Kernel kernel = kernel_of(ast, sink, caps, options);
  KernelCode code;
  code.estimates = estimate(kernel);
  for (const Stage& stage : kCodegen) {
    run_stage({"codegen", stage.name, [&] { stage.run(kernel); },
               [&] { verify(kernel.graph, kernel.sink, stage.holds, stage.name); },
               [&] { return print(kernel.graph, kernel.sink); }});
    if (stage.run == choose) {
      code.colored_name = options.name.empty() ? kernel_name(kernel, true) : options.name;
      code.name = options.name.empty() ? kernel_name(kernel, false) : options.name;
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
