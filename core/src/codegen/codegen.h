// Turns one kernel AST (ir/kernel_ast.h) into kernel IR for a target. A function from graph to
// bytes: it sees no device, only the capabilities of one.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "ir/graph.h"
#include "plugrad/plugin_api/device.h"
#include "rewrite/stage.h"

namespace plugrad::codegen {

/// Lower bounds of a kernel's work, for reports.
struct Estimates {
  int64_t flops = 0;
  int64_t bytes = 0;
};

/// Operations and bytes of one launch. A multiply-add counts as two operations, others by their weights
/// (cost/work.h); bytes are of loads and stores, whatever caches hold.
struct ExecutedWork {
  int64_t operations = 0;
  int64_t bytes = 0;
};

/// One change to a kernel's ranges, e.g. {Upcast, axis 1, 4}. Printed as "upcast(1, 4)" and parsed
/// back (schedule_text.cpp has the printed names). docs/optimisations.md describes each.
struct ScheduleStep {
  enum class Kind : uint8_t {
    Upcast,
    Unroll,
    Vectorize,
    Local,
    Group,
    Thread,
    Swap,
    TensorCore,
    Block,
    SplitK,     ///< printed as "accumulate"
    CacheRead,  ///< printed as "stage"; of a parameter that the kernel stores to: cache_write
    ComputeAt,  ///< printed as "keep"
    Pipeline    ///< printed as "ahead"
  };
  Kind kind;
  uint32_t axis = 0;
  int64_t amount = 0;

  /// Whether `axis` is the number of a parameter.
  bool names_parameter() const { return kind == Kind::CacheRead || kind == Kind::Pipeline; }
};

/// The schedule of a kernel: steps in the order in which they are applied.
using KernelSchedule = std::vector<ScheduleStep>;
std::string to_string(const KernelSchedule& schedule);
/// Errors: User if the text is no schedule.
KernelSchedule parse_schedule(std::string_view text);

struct Options {
  bool no_opt = false;     // NOOPT; not with a schedule
  bool fast_math = false;  // adds the rule set `fast`
  bool contract = true;    // a multiply-add may round once
  bool tf32 = false;       // TF32: products of f32 may round their factors to 10 bits of fraction
  bool frugal = false;     // little code for kernels that are short even so; on CPUs
  const KernelSchedule* schedule = nullptr;  // null: the heuristic's
  std::string_view name = {};                // a C identifier; empty: derived from the axes
  std::shared_ptr<const cost::Machine> machine = nullptr;  // null: the table entry for `caps`
};

/// Everything needed to compile and launch one kernel.
struct KernelCode {
  std::string name;           // C identifier, unique by content: "r_128_8_16_1f3a"
  std::string colored_name;   // sizes of the axes in their colours
  std::vector<std::byte> ir;  // kernel IR block
  uint64_t group_count[3] = {1, 1, 1};
  uint32_t local_size[3] = {1, 1, 1};
  KernelSchedule schedule;
  Estimates estimates;
  ExecutedWork work;
  double seconds = 0;      // of a launch, as predicted where the heuristic chose; else 0
  bool is_frugal = false;  // the schedule
  uint32_t trace_run = 0;  // of its stages in a trace; 0: not recorded
};

/// Name and estimates of a kernel before code generation.
KernelCode describe(const Graph& ast, Id sink);

/// Copies `ast` into a scratch graph; threads may share `ast`.
KernelCode generate(const Graph& ast, Id sink, const pgr_device_caps& caps, const Options& options);

std::vector<StageInfo> stages();

}  // namespace plugrad::codegen
