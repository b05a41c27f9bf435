// The stages of the scheduler as a list, and the one loop that runs it: times, checks, prints and
// records each.
#include <array>

#include "base/clock.h"
#include "base/log.h"
#include "base/trace.h"
#include "ir/text/printer.h"
#include "ir/verifier.h"
#include "rewrite/trace.h"
#include "schedule/draft.h"

namespace plugrad::schedule {
namespace {

enum class Result : uint8_t { TensorGraph, Plan };

struct Stage {
  const char* name;
  void (*run)(Draft&);
  Result result;  // what is checked and printed after it
  const char* meaning;
};

// clang-format off
constexpr std::array<Stage, 7> kSchedule = {{
    {"simplify tensors", simplify_tensors, Result::TensorGraph,
     "views merge, uniform values and empty tensors fold, large reductions split"},
    {"link consumers", link_consumers, Result::TensorGraph,
     "who reads what, how large, on which device"},
    {"choose stored", choose_stored, Result::TensorGraph,
     "which values get memory; the rest is computed where it is read"},
    {"choose layouts", choose_layouts, Result::TensorGraph,
     "in which order the elements of each stored value lie, and which operands are packed"},
    {"share kernels", share_kernels, Result::TensorGraph,
     "stored values that can be computed in the same loops share a kernel"},
    {"assemble", assemble, Result::Plan, "each kernel is loops over scalars"},
    {"plan memory", plan_memory, Result::Plan, "temporaries share arenas"},
}};
// clang-format on

void check(Draft& draft, const Stage& stage) {
  if (stage.result == Result::TensorGraph)
    return verify(draft.graph, draft.roots, Spec::Tensor, stage.name);
  for (const auto& ast : draft.plan.asts)
    verify_kernel_ast(const_cast<Graph&>(ast->graph), ast->sink);
}

std::string dump(const Draft& draft, const Stage& stage) {
  const std::string body =
      stage.result == Result::Plan ? to_string(draft.plan) : print(draft.graph, draft.roots) + "\n";
  return fmt::format("--- schedule: {} ({})\n{}", stage.name, stage.meaning, body);
}

void record(const Stage& stage, uint64_t start_ns, const RewriteTrace& rewrites) {
  trace_span("schedule", stage.name, start_ns, {{"meaning", std::string_view(stage.meaning)}});
  for (const TraceEvent& e : rewrites.events)
    trace_instant("rewrite", "rule",
                  {{"stage", std::string_view(stage.name)},
                   {"rule", std::string_view(e.rule->name)},
                   {"from", int64_t{e.from}},
                   {"to", int64_t{e.to}}});
}

void run_traced(Draft& draft, const Stage& stage) {
  RewriteTrace rewrites;
  const uint64_t start = monotonic_ns();
  {
    const TraceScope scope(rewrites);
    stage.run(draft);
  }
  record(stage, start, rewrites);
}

}  // namespace

Plan make_plan(const Graph& graph, std::span<const Id> roots, std::span<const Id> inputs,
               uint32_t default_device, const Options& options) {
  Draft draft(graph, roots, inputs, default_device, options);
  const bool print_all = debugging(4);
  for (const Stage& stage : kSchedule) {
    if (tracing())
      run_traced(draft, stage);
    else
      stage.run(draft);
    if (settings().verify) check(draft, stage);
    if (print_all || settings().dump == stage.name) debug_write(dump(draft, stage));
  }
  draft.plan.visits = draft.visits;
  return std::move(draft.plan);
}

}  // namespace plugrad::schedule
