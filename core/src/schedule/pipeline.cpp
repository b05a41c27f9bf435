// The stages of the scheduler as a list, and the one loop that runs it.
#include <array>
#include <cstdio>
#include <string>

#include "base/clock.h"
#include "base/trace.h"
#include "schedule/draft.h"
#include "uop/printer.h"
#include "uop/verifier.h"

namespace plugrad::schedule {
namespace {

struct Stage {
  const char* name;
  void (*run)(Draft&);
  enum class Holds { TensorGraph, Kernels } holds;  // what is verified after it
  const char* meaning;
};

constexpr std::array<Stage, 5> kSchedule = {{
    {"simplify tensors", simplify_tensors, Stage::Holds::TensorGraph, "views merge; uniform values and empty tensors fold"},
    {"link consumers", link_consumers, Stage::Holds::TensorGraph, "who reads what, how large, on which device"},
    {"choose stored", choose_stored, Stage::Holds::TensorGraph, "which values get memory; the rest is computed where it is read"},
    {"assemble", assemble, Stage::Holds::Kernels, "each stored value is a kernel of loops, or a copy"},
    {"plan memory", plan_memory, Stage::Holds::Kernels, "temporaries share arenas"},
}};

}  // namespace

Plan make_plan(const Graph& graph, std::span<const Id> roots, std::span<const Id> inputs,
               uint32_t default_device, const Options& options) {
  Draft draft(graph, roots, inputs, default_device, options);
  for (const Stage& stage : kSchedule) {
    const uint64_t start = monotonic_ns();
    stage.run(draft);
    if (tracing()) trace_span("schedule", stage.name, start, {{"meaning", std::string_view(stage.meaning)}});
  }
  return std::move(draft.plan);
}

}  // namespace plugrad::schedule
