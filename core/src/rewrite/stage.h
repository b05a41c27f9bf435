// Runs pipelines: a compiler is a table of stages over one state.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace plugrad {

/// The form of a compiler's state after a stage.
enum class Form : uint8_t { TensorGraph, Plan, KernelGraph, KernelIr };
const char* name_of(Form form);

/// One row of a pipeline.
template <class State>
struct Stage {
  const char* name;
  void (*run)(State&);
  Form form;  // after it
  const char* meaning;
  bool is_optional = false;  // results are right without it: PLUGRAD_DISABLE may name it
};

/// A row for display.
struct StageInfo {
  const char* name;
  Form form;
  const char* meaning;
  bool is_optional = false;
};

/// The graph of a compiler's state; null where it has none.
struct GraphView {
  const Graph* graph = nullptr;
  std::vector<Id> roots = {};
};
/// Whether PLUGRAD_DISABLE names the stage. Errors: User for a stage that must run.
bool is_left_out(const char* stage, bool is_optional);

/// A stage with its state bound.
struct StageRun {
  const char* category;  ///< "schedule" or "codegen"
  StageInfo stage;
  std::function<void()> run_it;
  std::function<void()> verify;       ///< after it, with PLUGRAD_VERIFY
  std::function<std::string()> text;  ///< the IR after it, for DEBUG=4, PLUGRAD_DUMP and traces
  std::function<GraphView()> graph;   ///< for traces
  uint32_t run;                       ///< of the pipeline, in the trace; 0: not recorded
};

/// Runs the stage. PLUGRAD_TRACE records its time and, with PLUGRAD_TRACE_RULES, its graphs and
/// every rewrite between them; PLUGRAD_VERIFY verifies its result; DEBUG=4, or its name in
/// PLUGRAD_DUMP, prints the IR and the rules that applied.
void run_stage(const StageRun& stage);

/// Whether stages must run so that DEBUG=4, PLUGRAD_DUMP, PLUGRAD_VERIFY or PLUGRAD_TRACE_RULES can
/// show or verify them.
bool are_stages_observed();

/// The number of a new run of a pipeline, if the trace records its stages; else 0.
uint32_t new_run();

/// A compiler: its stages in order, and how to verify and print its state in each form.
template <class State>
struct Pipeline {
  const char* category;
  std::span<const Stage<State>> stages;
  void (*verify)(State&, const Stage<State>&);
  std::string (*text)(State&, const Stage<State>&);
  GraphView (*graph)(const State&);

  /// Returns new_run().
  uint32_t run(State& state) const {
    const uint32_t run = new_run();
    for (const Stage<State>& stage : stages)
      run_stage({category,
                 {stage.name, stage.form, stage.meaning, stage.is_optional},
                 [&] { stage.run(state); },
                 [&] { verify(state, stage); },
                 [&] { return text(state, stage); },
                 [&] { return graph(state); },
                 run});
    return run;
  }
  /// The stages in front of `end`, without trace or text: a search begins there for each kernel.
  void run_before(void (*end)(State&), State& state) const {
    for (const Stage<State>& stage : stages) {
      if (stage.run == end) return;
      if (!is_left_out(stage.name, stage.is_optional)) stage.run(state);
    }
  }
  std::vector<StageInfo> rows() const {
    std::vector<StageInfo> out;
    for (const Stage<State>& s : stages) out.push_back({s.name, s.form, s.meaning, s.is_optional});
    return out;
  }
};

}  // namespace plugrad
