// The pipeline of code generation: a table of stages.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "codegen/analysis/tensor_core.h"
#include "codegen/codegen.h"
#include "codegen/emit/emission.h"
#include "codegen/kernel.h"
#include "codegen/passes/passes.h"
#include "codegen/transforms/transforms.h"
#include "ir/text/printer.h"
#include "ir/verifier.h"

namespace plugrad::codegen {
namespace {

/// A kernel in the pipeline and its results.
struct Generation {
  Kernel kernel;
  Emission emission;
  KernelCode code;
};

template <void (*pass)(Kernel&)>
void on_kernel(Generation& generation) {
  pass(generation.kernel);
}
template <void (*stage)(Kernel&, Emission&)>
void emit(Generation& generation) {
  stage(generation.kernel, generation.emission);
}

void estimate_work(Generation& generation) {
  generation.code.estimates = estimate(generation.kernel);
}

void count_work(Generation& generation) {
  generation.code.work = executed_work(generation.kernel);
}

void name_kernel(Generation& generation) {
  KernelCode& code = generation.code;
  const std::string_view given = generation.kernel.options.name;
  code.colored_name = given.empty() ? kernel_name(generation.kernel, true) : std::string(given);
  code.name = given.empty() ? kernel_name(generation.kernel, false) : std::string(given);
}

void encode_ir(Generation& generation) {
  KernelCode& code = generation.code;
  code.ir = encode(generation.kernel, generation.emission, code.name);
  std::copy_n(generation.emission.size.group_count, 3, code.group_count);
  std::copy_n(generation.emission.size.local_size, 3, code.local_size);
  code.schedule = generation.kernel.applied;
  code.seconds = generation.kernel.seconds;
  code.is_frugal = generation.kernel.is_frugal;
}

constexpr Form kGraph = Form::KernelGraph, kIr = Form::KernelIr;

// clang-format off
constexpr std::array<Stage<Generation>, 25> kCodegen = {{
    {"estimate", estimate_work, kGraph, "minimum operations and bytes of the kernel"},
    {"eliminate reductions", on_kernel<eliminate_reductions>, kGraph,
     "closed forms and single loads replace reduce loops", true},
    {"index stores", on_kernel<index_stores>, kGraph,
     "indexed reductions store each term at its index"},
    {"simplify ranges", on_kernel<simplify_ranges>, kGraph,
     "adjacent ranges merge, divided ranges split", true},
    {"partition outputs", on_kernel<partition_outputs>, kGraph,
     "padding becomes stores of its own; halves that share work run in one loop", true},
    {"apply schedule", on_kernel<apply_schedule>, kGraph,
     "ranges become lanes, register tiles, group ids"},
    {"drop marks", on_kernel<drop_marks>, kGraph, "compute_at marks that no step used are gone"},
    {"lay out tiles", on_kernel<lay_out_tiles>, kGraph,
     "work-items hold the lanes of tensor core operands"},
    {"pipeline copies", on_kernel<place_pipelined_tiles>, kGraph,
     "local arrays hold the tiles of several iterations"},
    {"name kernel", name_kernel, kGraph, "the kernel is named by its axes"},
    {"dynamic bounds", on_kernel<set_dynamic_bounds>, kGraph,
     "loops end at counts loaded from memory"},
    {"tighten bounds", on_kernel<tighten_bounds>, kGraph,
     "reduce loops run only over terms that are not 0", true},
    {"expand", on_kernel<expand>, kGraph, "upcast, unroll and vector ranges are copies and lanes"},
    {"partition loops", on_kernel<partition_loops>, kGraph,
     "conditions are constant in the interior of a loop", true},
    {"predicate work-items", on_kernel<predicate_work_items>, kGraph,
     "one work-item stores each element"},
    {"vectorise", on_kernel<vectorise>, kGraph, "loads and stores have scalar indices and a width"},
    {"count work", count_work, kGraph, "operations that the kernel executes, bytes that it moves"},
    {"lower indices", on_kernel<lower_indices>, kGraph, "index arithmetic is i32 or i64"},
    {"decompose", on_kernel<decompose>, kGraph, "only ops that the device claims remain"},
    {"sink loads", emit<sink_loads>, kGraph,
     "loads that are added to a finished sum follow its loops"},
    {"write parameters", emit<write_parameters>, kIr, "buffers and scalars have numbers"},
    {"write launch ids", emit<write_launch_ids>, kIr, "parallel ranges become launch ids"},
    {"linearise", emit<linearise>, kIr,
     "loops, accumulators, group reductions, copies and stores in order"},
    {"emulate int64", emit<emulate_int64>, kIr,
     "64-bit integers are pairs of words on devices without them"},
    {"encode", encode_ir, kIr, "kernel IR is encoded for the plugin"},
}};
// clang-format on

void check_stage(Generation& generation, const Stage<Generation>& stage) {
  verify(generation.kernel.graph, generation.kernel.sink, Spec::Kernel, stage.name);
}

std::string text(Generation& generation, const Stage<Generation>& stage) {
  if (stage.form == kIr)
    return fmt::format("{} instructions", generation.emission.writer.inst_count());
  return print(generation.kernel.graph, generation.kernel.sink);
}

GraphView graph_of(const Generation& generation) {
  return {&generation.kernel.graph, {generation.kernel.sink}};
}

constexpr Pipeline<Generation> kPipeline = {"codegen", kCodegen, check_stage, text, graph_of};

void record_scalar(Kernel& kernel, Id scalar) {
  const size_t number = scalar_number(kernel.graph, scalar);
  if (kernel.scalars.size() <= number) kernel.scalars.resize(number + 1);
  kernel.scalars[number] = {kernel.graph[scalar].dtype, kernel.graph.arg_list(scalar)[1]};
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
      record_scalar(kernel, id);
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

Kernel kernel_before_schedule(const Graph& ast, Id sink, const pgr_device_caps& caps,
                              const Options& options) {
  Generation generation{kernel_of(ast, sink, caps, options), {}, {}};
  kPipeline.run_before(on_kernel<apply_schedule>, generation);
  return std::move(generation.kernel);
}

std::vector<StageInfo> stages() {
  return kPipeline.rows();
}

KernelCode generate(const Graph& ast, Id sink, const pgr_device_caps& caps,
                    const Options& options) {
  Generation generation{kernel_of(ast, sink, caps, options), {}, {}};
  generation.code.trace_run = kPipeline.run(generation);
  return std::move(generation.code);
}

}  // namespace plugrad::codegen
