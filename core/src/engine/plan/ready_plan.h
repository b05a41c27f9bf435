// Plans made ready to run, and the memory of their intermediates.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/devices.h"
#include "engine/execute/loop_body.h"
#include "engine/kernels/kernel_cache.h"
#include "engine/plan/size_checks.h"
#include "engine/report.h"
#include "engine/value.h"
#include "schedule/schedule.h"

namespace plugrad::engine {

/// The places of a plan's temporaries in the arenas, by plan buffer; emptied when the arenas are
/// replaced.
struct Temporaries {
  std::vector<std::shared_ptr<runtime::Buffer>> buffers;
  uint64_t version = 0;  ///< counts how often they were placed
};

class LaunchLog;
class PreparedSteps;
class Refinement;

struct ReadyPlan;

/// A loop of a plan: the plan of its body, which loops of any length share.
struct ReadyLoop {
  LoopBodyPtr body;
  std::shared_ptr<ReadyPlan> plan;
};

/// A plan with everything decided that does not change from run to run.
struct ReadyPlan {
  schedule::Plan plan;
  std::vector<std::shared_ptr<ReadyKernel>> kernels;  // by step; null for copies, loops
  std::vector<ReadyLoop> loops;                       // by step; empty for all others
  uint32_t depth = 0;                                 // of loops around it
  std::vector<runtime::Device*> buffer_devices;       // by plan buffer
  std::vector<runtime::Device*> arena_devices;        // by arena
  std::vector<ValuePtr> constants;                    // of the plan, by number
  std::shared_ptr<Temporaries> temporaries;           // of the last run, null before
  std::vector<SizeUse> sizes;                         // that its kernels run to
  std::vector<Origins> origins;                       // distinct ones
  std::vector<uint32_t> origins_of;                   // by root
  uint32_t number = 0;                                // of ComputedNodes; 0: it did not run yet
  std::vector<uint32_t> needed_again;                 // canonical numbers of nodes, see learn()
  bool is_recorded = false;                           // it will run again and again
  std::shared_ptr<PreparedSteps> prepared;            // null before the first run
  std::shared_ptr<Refinement> refinement;             // null where its kernels stay
};

/// Whether an input's buffer may be donated to an output: a pair of the plan, and no later reader
/// needs the input's value.
using MayDonate = std::function<bool(const schedule::InPlace&)>;

/// Memory for intermediates: one block a device and arena, shared by all plans, since they run one
/// after another in the order of the device's queue. Grows to the largest plan.
class ArenaPool {
 public:
  /// Sets temporaries of the plan and of its loops. Errors: OutOfMemoryError.
  void provide(ReadyPlan& plan);
  /// Gives the memory back; plans get new temporaries at their next run.
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

/// Fills what belongs to ready.plan: opens its devices, makes its kernels. Errors: CompileError and
/// others.
void prepare(ReadyPlan& ready, DeviceTable& devices, KernelCache& kernels,
             const UserKernelTable& user_kernels, const KernelOptions& options);

/// Gives every step of a plan to its device. `buffers` and `values`: by plan buffer; of buffers
/// that are no inputs, and of the body of a loop, there are no values.
void give_steps(ReadyPlan& ready, std::span<runtime::Buffer* const> buffers,
                std::span<const ValuePtr> values, LaunchLog& log);

/// Allocates the outputs, launches every step, and returns a value for each root. When it throws,
/// what outputs took the memory of may be gone; nothing else has changed.
std::vector<ValuePtr> run_plan(ReadyPlan& ready, std::span<const ValuePtr> inputs,
                               const MayDonate& may_donate, ArenaPool& arenas, DeviceTable& devices,
                               Statistics& statistics);

/// Memory that it takes while it is kept, an estimate.
uint64_t size_of_plan(const ReadyPlan& ready);

/// Errors: Device where the value is gone.
void require_there(const Value& value);

/// The value's buffer, made of its host bytes on first need. Errors: Device where it is gone.
runtime::Buffer& buffer_of(Value& value, DeviceTable& devices);

}  // namespace plugrad::engine
