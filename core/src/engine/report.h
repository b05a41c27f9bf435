// Reports of the session: kernels for users and tools, counters for tests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plugrad/kernel.h"

namespace plugrad {
struct KernelAst;
}

namespace plugrad::detail {

/// One kernel of a plan. Here because the public Kernel declares it.
struct KernelReport {
  std::string device;
  std::string name;                 // C identifier
  std::string colored_name;         // axis sizes in their colours
  std::string optimisations;        // printed schedule, accepted as an override
  std::string ast;                  // textual IR
  std::vector<KernelRange> ranges;  // of the AST
  std::string source;  // rendered text; empty where the plugin compiles kernel IR itself
  uint64_t group_count[3] = {1, 1, 1};
  uint32_t local_size[3] = {1, 1, 1};
  int64_t flops = 0, bytes = 0;
  int64_t work = 0;                          // operations executed; 0 before code generation
  std::shared_ptr<const KernelAst> planned;  // null for a user-written kernel
};

}  // namespace plugrad::detail

namespace plugrad::engine {

using detail::KernelReport;

/// Operations (cost/work.h) that the kernels of plans execute, and those of their graphs with each
/// node computed once. A loop's body counts once. Beyond a quarter more, and a launch's worth, kernels
/// repeat what hides behind the memory that they move, or would take longer to store: `allowed`.
struct PlanWork {
  int64_t executed = 0, graph = 0;
  double allowed = 0;
  bool is_bounded() const {
    return static_cast<double>(executed) <= 1.25 * static_cast<double>(graph) + 4096 + allowed;
  }
};
struct ReadyPlan;
PlanWork work_of(const ReadyPlan& ready);

/// Counters since the process began or reset_statistics(); gauges show the current state.
struct Statistics {
  uint64_t kernels_launched = 0;
  uint64_t copies = 0;              // between devices
  uint64_t collectives = 0;         // between processes; a bucket counts once
  uint64_t collective_bytes = 0;    // that this process gave to them
  uint64_t collective_wait_ns = 0;  // wall time in which plans waited for them
  uint64_t plans_run = 0;
  uint64_t plans_made = 0;         // schedule-cache misses
  uint64_t plans_from_disk = 0;    // of these, those that an earlier process planned
  uint64_t recordings_copied = 0;  // calls whose nodes were copied from those of an earlier call
  uint64_t plan_cache_hits = 0;
  uint64_t planned_nodes = 0;     // of the graphs that plans were made of
  uint64_t planning_visits = 0;   // of nodes, by the stages of planning (schedule::Plan::visits)
  uint64_t kernels_compiled = 0;  // distinct kernels made in this process
  uint64_t collections = 0;
  uint64_t compile_ns = 0;   // wall time of code generation and compiling
  uint64_t codegen_ns = 0;   // of that, code generation alone, summed over threads
  uint64_t schedule_ns = 0;  // wall time of planning
  uint64_t lookup_ns = 0;    // wall time of copying out, hashing and looking up plans
  uint64_t run_ns = 0;       // wall time of launching and running
  // Gauges.
  uint64_t graph_nodes = 0;
  uint64_t live_values = 0;     // nodes with a value
  uint64_t value_bytes = 0;     // memory of those values
  uint64_t arena_bytes = 0;     // memory for intermediates
  uint64_t constant_bytes = 0;  // memory of what recordings compute once (prepared_constants.h)
  uint64_t plans_kept = 0, kernels_kept = 0;
  uint64_t kept_bytes = 0;  // memory of the plans and kernels, an estimate
};

}  // namespace plugrad::engine
