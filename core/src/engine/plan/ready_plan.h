// Makes plans ready to run, and holds the memory of their intermediates.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/devices.h"
#include "engine/execute/loop_body.h"
#include "engine/kernels/kernel_cache.h"
#include "engine/plan/plan_sharding.h"
#include "engine/plan/recorded_graph.h"
#include "engine/plan/size_checks.h"
#include "engine/report.h"
#include "engine/value.h"
#include "schedule/schedule.h"

namespace plugrad::engine {

/// The sub-buffers of a plan's temporaries in the arenas, by plan buffer; cleared when the arenas
/// are replaced.
struct Temporaries {
  std::vector<std::shared_ptr<runtime::Buffer>> buffers;
  uint64_t version = 0;  ///< incremented each time they are placed
};

class LaunchLog;
class PreparedSteps;
class Refinement;

struct ReadyPlan;

/// A loop of a plan: the plan of its body, shared by loops of any length.
struct ReadyLoop {
  LoopBodyPtr body;
  std::shared_ptr<ReadyPlan> plan;
};

/// Facts of a plan that only a trace uses.
struct PlanTrace {
  uint32_t id = 0;                                        // in the trace; 0: not defined yet
  std::shared_ptr<const schedule::ScheduledGraph> graph;  // null if it was planned without a trace
  std::vector<uint32_t> operations;                       // by value of the graph
  // Of a part of another plan: its steps and buffers as numbers of that plan, which has the graph.
  std::vector<uint32_t> steps, buffers;
  bool is_part = false;
  std::shared_ptr<const RecordedGraph> recorded{};  // null as `graph`, and for prepared constants
  std::shared_ptr<const PlanSharding> sharding{};   // null without sharded values
};

/// A plan with everything that does not change between runs.
struct ReadyPlan {
  schedule::Plan plan;
  std::vector<std::shared_ptr<ReadyKernel>> kernels;  // by step; null for copies and loops
  std::vector<ReadyLoop> loops;                       // by step; empty for other steps
  uint32_t depth = 0;                                 // nesting depth in loops
  std::vector<runtime::Device*> buffer_devices;       // by plan buffer
  std::vector<runtime::Device*> arena_devices;        // by arena
  std::vector<ValuePtr> constants;                    // of the plan, by number
  std::shared_ptr<Temporaries> temporaries;           // of the last run; null before the first
  std::vector<SizeUse> sizes;                         // sizes and reports that its runs check
  std::vector<Origins> origins;                       // distinct origins of roots
  std::vector<uint32_t> origins_of;                   // by root: index into origins
  uint32_t number = 0;                                // its ComputedNodes number; 0: never run
  // To store next time (note_computed()); shared with plans of the same graph for other lengths.
  std::shared_ptr<std::vector<uint32_t>> needed_again = std::make_shared<std::vector<uint32_t>>();
  bool is_recorded = false;                 // a recording replays it
  std::shared_ptr<PreparedSteps> prepared;  // null before the first run
  std::shared_ptr<Refinement> refinement;   // null if its kernels are final
  bool may_promote = true;                  // some kernels may be frugal
  bool is_promoting = false;                // full schedules of some are being made
  PlanTrace trace;
};

/// Whether an input's buffer may be donated to an output: a pair of the plan, and no later reader
/// needs the input's value.
using MayDonate = std::function<bool(const schedule::Donation&)>;

/// Memory for intermediates: one block for each device and arena, shared by all plans, since they
/// run one after another in the order of the device's queue. Grows to the size of the largest plan.
class ArenaPool {
 public:
  /// Sets the temporaries of the plan and its loops. Errors: OutOfMemoryError.
  void provide(ReadyPlan& plan);
  /// Frees the memory; plans get new temporaries at their next run.
  void release();
  uint64_t size_bytes() const;

 private:
  std::shared_ptr<runtime::Buffer>& block(runtime::Device& device, uint32_t index);
  void grow(const ReadyPlan& plan);
  void place(ReadyPlan& plan);
  void drop_those_of_dead_plans();
  void forget_temporaries();
  struct Block {
    runtime::Device* device;
    uint32_t index;
    std::shared_ptr<runtime::Buffer> buffer;
  };
  std::vector<Block> blocks_;
  std::vector<std::shared_ptr<Temporaries>> handed_out_;
};

/// Derives everything else from ready.plan: opens its devices, makes its kernels, those
/// that take numbers with the schedules of the plan `like`, step by step, if there is one. Kernels
/// that only move elements of the inputs `constants` (by number, ascending) become copies by the
/// host where it shares the device's memory. Errors: CompileError and others.
void prepare(ReadyPlan& ready, DeviceTable& devices, KernelCache& kernels,
             const UserKernelTable& user_kernels, const KernelOptions& options,
             const ReadyPlan* like = nullptr, std::span<const uint32_t> constants = {});

/// Sets the scalars of the next runs; `numbers`: bits, by number of Step::numbers.
void set_numbers(ReadyPlan& ready, std::span<const uint64_t> numbers);

/// Launches every step of a plan. `buffers` and `values`: by plan buffer; `values` has null for
/// temporaries and is empty for the body of a loop.
void give_steps(ReadyPlan& ready, std::span<runtime::Buffer* const> buffers,
                std::span<const ValuePtr> values, LaunchLog& log);

/// Allocates the outputs, launches every step, and returns a value for each root. If it throws,
/// donated inputs may be gone; nothing else has changed.
std::vector<ValuePtr> run_plan(ReadyPlan& ready, std::span<const ValuePtr> inputs,
                               const MayDonate& may_donate, ArenaPool& arenas, DeviceTable& devices,
                               Statistics& statistics);

/// Estimated bytes that the plan occupies while cached.
uint64_t size_of_plan(const ReadyPlan& ready);

/// Errors: Device if the value is gone.
void require_there(const Value& value);

/// The value's buffer; copies its host bytes to the device on first use. Errors: Device if it is
/// gone.
runtime::Buffer& buffer_of(Value& value, DeviceTable& devices);

}  // namespace plugrad::engine
