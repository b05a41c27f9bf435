// The scheduler as a table of stages.
#include <array>

#include "ir/text/printer.h"
#include "ir/verifier.h"
#include "schedule/fusion/cost.h"
#include "schedule/scheduler_state.h"

namespace plugrad::schedule {
namespace {

// clang-format off
constexpr std::array<Stage<SchedulerState>, 13> kSchedule = {{
    {"simplify tensors", simplify_tensors, Form::TensorGraph,
     "views merge, uniform values and empty tensors fold, large reductions split"},
    {"make use lists", make_use_lists, Form::TensorGraph,
     "each value has its use list, element count and device"},
    {"store required", store_required, Form::TensorGraph,
     "outputs, both ends of copies and outputs of user kernels are materialised"},
    {"choose fusion roots", choose_fusion_roots, Form::TensorGraph,
     "the last value that each reduction can be fused with (its fusion root) is materialised"},
    {"materialise", materialise, Form::TensorGraph,
     "values that cost more to recompute than to store are materialised"},
    {"fuse row reductions", fuse_row_reductions, Form::TensorGraph,
     "reductions of rows join the kernel that reads the rows again", true},
    {"store repeated blocks", store_blocks, Form::TensorGraph,
     "expressions that a long kernel repeats are materialised: one kernel computes them", true},
    {"limit kernels", limit_all, Form::TensorGraph,
     "values are materialised where a kernel exceeds its limits of work, size or operands"},
    {"find bitwise comparable", find_bitwise_comparable, Form::TensorGraph,
     "values that several kernels must compute to the same bits are marked"},
    {"choose layouts", choose_layouts, Form::TensorGraph,
     "stored values get an order of axes in memory, operands may be packed", true},
    {"share kernels", share_kernels, Form::TensorGraph,
     "stored values that can be computed in the same loops share a kernel"},
    {"assemble", assemble, Form::Plan,
     "stored values become buffers, kernels (loops over scalars) and copies"},
    {"plan memory", plan_memory, Form::Plan, "temporaries share arenas"},
}};
// clang-format on

void check_stage(SchedulerState& state, const Stage<SchedulerState>& stage) {
  if (stage.form == Form::TensorGraph)
    return verify(state.graph, state.roots, Spec::Tensor, stage.name);
  for (const auto& ast : state.plan.asts)
    verify_kernel_ast(const_cast<Graph&>(ast->graph), ast->sink);
}

std::string text(SchedulerState& state, const Stage<SchedulerState>& stage) {
  return stage.form == Form::Plan ? to_string(state.plan) : print(state.graph, state.roots);
}

// Before the first stage, the graph to schedule.
GraphView graph_of(const SchedulerState& state) {
  if (state.roots.empty())
    return {&state.source, {state.source_roots.begin(), state.source_roots.end()}};
  return {&state.graph, state.roots};
}

constexpr Pipeline<SchedulerState> kPipeline = {"schedule", kSchedule, check_stage, text, graph_of};

}  // namespace

std::vector<StageInfo> stages() {
  return kPipeline.rows();
}

void run_until(SchedulerState& state, std::string_view end) {
  for (const Stage<SchedulerState>& stage : kSchedule) {
    if (stage.name == end) return;
    stage.run(state);
  }
}

Plan make_plan(const Graph& graph, std::span<const Id> roots, std::span<const Id> inputs,
               uint32_t default_device, const Options& options) {
  SchedulerState state(graph, roots, inputs, default_device, options);
  state.plan.trace_run = kPipeline.run(state);
  state.plan.visits = state.visits;
  if (options.keep_graph) state.plan.scheduled = keep_graph(state);
  return std::move(state.plan);
}

}  // namespace plugrad::schedule
